// A COMMIT that several share, cut off: its sync fails, or the process is killed before, in or after it. All of it is
// there or nothing, and with their keys all members have one effect each in the end.

import { describe, expect, it } from 'vitest'
import { bundle, freshFile, rowsIn, start, type Traced, traced } from './files.js'

const program = 'shared-commit.mjs'

// Made by a process that is gone, so that nothing of this one keeps the index of the log alive.
async function itemFile(): Promise<string> {
  const file = freshFile()
  await start(program, [await bundle(), file, '0']).rest()
  return file
}

const effects = (file: string) => rowsIn(file, 'SELECT note, count(*) FROM item GROUP BY note')
const effectsOf = (count: number) => Array.from({ length: count }, (_, number) => [`note ${number}`, 1])
const inOrder = (rows: unknown[]) => (rows as [string, number][]).sort(([a], [b]) => a.localeCompare(b))
const shareOnce = (count: number) => ['wrong 0', `bodies ${count}`, `shared ${count}`]

/** Another process with the same keys: all are told their own result, and what is there stays as it is. */
async function takeUp(file: string, count: number, there: number): Promise<void> {
  const [wrong, bodies] = await start(program, [await bundle(), file, String(count)]).rest()
  expect([wrong, bodies]).toEqual(['wrong 0', `bodies ${count - there}`])
  expect(inOrder(effects(file))).toEqual(inOrder(effectsOf(count)))
}

describe.each([2, 16, 64])('a COMMIT that %i share', (count) => {
  let whole: Traced | undefined
  // The same program without a failure tells which calls there are; the last sync is the one of the COMMIT.
  const wholeRun = async (): Promise<Traced> => {
    whole ??= await traced(program, await itemFile(), [String(count)])
    expect(whole.lines).toEqual(shareOnce(count))
    expect(whole.syncs).toBeGreaterThan(0)
    return whole
  }

  it('whose sync fails is resolved by each key: every body runs again, and every effect is there once', async () => {
    const { syncs } = await wholeRun()
    const file = await itemFile()
    const { lines, failed } = await traced(program, file, [String(count)], `fsync,fdatasync:error=EIO:when=${syncs}`)
    expect(failed).toBe(1)
    expect(lines).toEqual(['wrong 0', `bodies ${2 * count}`, `shared ${count}`])
    expect(inOrder(effects(file))).toEqual(inOrder(effectsOf(count)))
  })

  it('is there as a whole or not at all, wherever in it the process is killed', async () => {
    const { writes, syncs } = await wholeRun()
    const deaths = [
      ...[1, Math.ceil(writes / 2), writes].map((number) => `pwrite64,write:signal=SIGKILL:when=${number}`),
      `fsync,fdatasync:signal=SIGKILL:when=${syncs}`,
    ]
    const left = new Set<number>()
    for (const death of deaths) {
      const file = await itemFile()
      expect((await traced(program, file, [String(count)], death)).lines).toEqual([])
      const there = effects(file).length
      left.add(there)
      await takeUp(file, count, there)
    }
    // Some of the deaths came before the commit was whole in the log, and some after; none in between.
    expect([...left].sort((a, b) => a - b)).toEqual([0, count])
  })

  it.each([
    ['transaction.body-done', Math.floor(count / 2), 0],
    ['transaction.before-commit', count - 1, 0],
    ['sqlite.sharing', 0, 0],
    ['sqlite.shared', 0, count],
  ])('at %s, passed %i times before, leaves its part in %i of them', async (point, passes, there) => {
    const file = await itemFile()
    const lines = await start(program, [await bundle(), file, String(count), String(point), String(passes)]).rest()
    expect(lines).toEqual([])
    expect(effects(file)).toHaveLength(Number(there))
    await takeUp(file, count, Number(there))
  })
})
