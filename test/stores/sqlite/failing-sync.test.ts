// The one COMMIT of SQLite whose outcome nobody knows: its sync fails. Proved with a failure that strace puts into the
// system call.

import { beforeAll, describe, expect, it } from 'vitest'
import { bundle, freshFile, rowsIn, start, traced } from './files.js'

const ghosts = (file: string) => rowsIn(file, 'SELECT count(*) FROM item')

// Made by a process that is gone: a connection of this one would keep the index of the log alive, and nothing would be
// recovered.
async function itemFile(): Promise<string> {
  const file = freshFile()
  await start('failing-sync.mjs', [await bundle(), file, 'setup']).rest()
  return file
}

const run = (file: string, then: string, failure?: string) => traced('failing-sync.mjs', file, [then], failure)

const failingSync = (number: number | undefined) => `fsync,fdatasync:error=EIO:when=${number}`

describe('a sync that fails at COMMIT', () => {
  const commitSync: Record<string, number> = {}

  // The same program without a failure tells which sync is the one of the COMMIT: the last.
  beforeAll(async () => {
    for (const then of ['nothing', 'transact']) {
      const file = await itemFile()
      const { lines, syncs } = await run(file, then)
      expect(lines.slice(0, 1)).toEqual([then === 'nothing' ? 'committed' : 'bodies 1'])
      expect(syncs).toBeGreaterThan(0)
      commitSync[then] = syncs
    }
  })

  it.each([
    ['nothing is done about it', 'nothing'],
    ['connections are closed and nothing more', 'discard'],
  ])('comes back from the dead when %s', async (_, then) => {
    const file = await itemFile()
    const { lines, failed } = await run(file, then, failingSync(commitSync['nothing']))
    expect(failed).toBe(1)
    // The process that failed does not see the row, and told its caller that the outcome is unknown.
    expect(lines).toEqual(['SQLITE_IOERR_FSYNC unknown', 'seen [[0]]'])
    expect(ghosts(file)).toEqual([[1]])
  })

  it('leaves nothing in the log that could come back after a sync that failed', async () => {
    const file = await itemFile()
    const { lines, failed } = await run(file, 'heal', failingSync(commitSync['nothing']))
    expect(failed).toBe(1)
    expect(lines).toEqual(['SQLITE_IOERR_FSYNC unknown', 'seen [[0]]'])
    expect(ghosts(file)).toEqual([[0]])
    expect(rowsIn(file, 'SELECT name, value FROM reprise_meta')).toEqual([['heals', '1']])
  })

  it('is resolved by the key: the body runs again, and its effect is there once', async () => {
    const file = await itemFile()
    const { lines, failed } = await run(file, 'transact', failingSync(commitSync['transact']))
    expect(failed).toBe(1)
    expect(lines).toEqual(['bodies 2', 'seen [[1]]'])
    expect(ghosts(file)).toEqual([[1]])
    expect(rowsIn(file, 'SELECT count(*) FROM reprise_marker')).toEqual([[1]])
  })
})

it('is stored once, wherever in its COMMIT the process is killed', async () => {
  const left = new Set<unknown>()
  const killAtEach = async (calls: string): Promise<void> => {
    for (let number = 1; number < 40; number += 1) {
      const file = await itemFile()
      const killed = await run(file, 'transact', `${calls}:signal=SIGKILL:when=${number}`)
      // No call of that number any more: the program went through.
      if (killed.lines.length > 0) return
      const [[count] = []] = ghosts(file) as number[][]
      left.add(count)
      const again = await run(file, 'transact')
      expect(again.lines[0]).toBe(count === 0 ? 'bodies 1' : 'bodies 0')
      expect(ghosts(file)).toEqual([[1]])
    }
  }
  await killAtEach('pwrite64,write')
  await killAtEach('fsync,fdatasync')
  // Some of the deaths came before the commit was whole in the log, and some after.
  expect([...left].sort()).toEqual([0, 1])
})
