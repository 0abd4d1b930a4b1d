// The time on a processor, of this process and of others: what a shared machine cannot take away.

import { readdirSync, readFileSync } from 'node:fs'

/** The time that this process has spent on processors, in us. */
export function ownProcessorUs() {
  const { user, system } = process.cpuUsage()
  return user + system
}

/**
 * The time that processes have spent on a processor, all their threads, in us; 0 where the system does not tell.
 * @param {readonly number[]} pids
 */
export function processorUs(pids) {
  let nanoseconds = 0
  for (const pid of pids) {
    try {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0])
      }
    } catch {
      // Not Linux, or the process has ended.
    }
  }
  return nanoseconds / 1e3
}
