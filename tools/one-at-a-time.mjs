// A lock between processes: two commands started at once on a fresh clone must not install or build over each other.
//
// The lock is a directory that holds its owner's process id. It is made elsewhere and moved into place, which is atomic
// and fails when a lock is there. The owner refreshes the file while it works, so that a lock left by a killed process,
// or by another machine on a shared disk, is recognised and taken over.

import { mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { say } from './process.mjs'

const refreshMs = 2_000
const staleAfterMs = 20_000
const pollMs = 150

/** Does something that fails when another process was quicker, and says whether it succeeded. */
function succeeds(/** @type {() => void} */ step) {
  try {
    step()
    return true
  } catch (error) {
    const { code = '' } = /** @type {NodeJS.ErrnoException} */ (error)
    if (['EEXIST', 'ENOTEMPTY', 'EPERM', 'ENOENT'].includes(code)) return false
    throw error
  }
}

function ageMs(/** @type {string} */ path) {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}

/** Whether a process of this machine still exists. */
function alive(/** @type {number} */ pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM'
  }
}

/** @returns {{ pid: number, host: string } | undefined} */
function ownerOf(/** @type {string} */ lock) {
  try {
    return JSON.parse(readFileSync(join(lock, 'owner'), 'utf8'))
  } catch {
    return undefined // released meanwhile
  }
}

function isStale(/** @type {string} */ lock) {
  const owner = ownerOf(lock)
  if (owner === undefined) return false
  if (owner.host === hostname() && !alive(owner.pid)) return true
  return ageMs(join(lock, 'owner')) > staleAfterMs
}

const us = JSON.stringify({ pid: process.pid, host: hostname() })

/** A path beside the lock that no other process uses. */
const beside = (/** @type {string} */ lock) => `${lock}-${hostname()}-${process.pid}`

/** Puts a lock of ours into place, unless there is one. */
function taken(/** @type {string} */ lock) {
  const ours = beside(lock)
  mkdirSync(ours, { recursive: true })
  writeFileSync(join(ours, 'owner'), us)
  const placed = succeeds(() => renameSync(ours, lock))
  if (!placed) rmSync(ours, { recursive: true, force: true })
  return placed
}

/**
 * Takes a stale lock over in place. Of several that try, the one that makes `takeover` wins, and it looks again:
 * the lock may have changed hands between the first look and the winning.
 */
function takenOver(/** @type {string} */ lock) {
  const mark = join(lock, 'takeover')
  if (!succeeds(() => mkdirSync(mark))) {
    if (ageMs(mark) > staleAfterMs) succeeds(() => rmdirSync(mark)) // its maker died on the way
    return false
  }
  const ours = isStale(lock) && succeeds(() => writeFileSync(join(lock, 'owner'), us))
  succeeds(() => rmdirSync(mark))
  return ours
}

/** Moves the lock away before removing it: removing takes several steps, and another process may come in between. */
function release(/** @type {string} */ lock) {
  if (ownerOf(lock)?.pid !== process.pid) return // taken over, because we were asleep for too long
  const gone = beside(lock)
  if (succeeds(() => renameSync(lock, gone))) rmSync(gone, { recursive: true, force: true })
}

/**
 * Does the work while no other process does work under the same lock; waits for its turn and says so.
 * @template Result
 * @param {string} lock path of the lock directory
 * @param {string} doing what the others are told to wait for
 * @param {() => Promise<Result>} work
 * @returns {Promise<Result>}
 */
export async function oneAtATime(lock, doing, work) {
  mkdirSync(dirname(lock), { recursive: true })
  let told = false
  for (;;) {
    if (taken(lock) || (isStale(lock) && takenOver(lock))) break
    if (!told) {
      say(`waiting for another run (process ${ownerOf(lock)?.pid ?? 'unknown'}) that is ${doing}`)
      told = true
    }
    await sleep(pollMs)
  }
  const refresh = setInterval(() => {
    try {
      utimesSync(join(lock, 'owner'), new Date(), new Date())
    } catch {
      // Somebody removed the lock by hand; the work goes on.
    }
  }, refreshMs)
  try {
    return await work()
  } finally {
    clearInterval(refresh)
    release(lock)
  }
}
