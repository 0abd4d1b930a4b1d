import { describe, expect, it } from 'vitest'
import { ioInMemory, type Seen } from '../../../test/cli/io-in-memory.js'
import { readOptions } from '../option-table.js'
import { jitterCommand } from './jitter-command.js'

async function run(line: string, io: Seen = ioInMemory()): Promise<Seen> {
  await jitterCommand.run(readOptions(line.split(' ').filter(Boolean), jitterCommand.options), io)
  return io
}

describe('simulate jitter', () => {
  const jitter = '--clients 5,10 --trials 3'

  it('is a table of all kinds', async () => {
    const { out } = await run(jitter)
    const rows = out.split('\n').map((line) => line.split(/\s{2,}/)[0])
    expect(rows.slice(0, 6)).toEqual(['calls / time', 'none', 'exponential', 'equal', 'full', 'decorrelated'])
  })

  it('shows progress and bars in a terminal', async () => {
    const { out } = await run(jitter, ioInMemory({ columns: 60 }))
    expect(out).toContain('\r██')
    expect(out).toContain('calls of 10 clients\n')
  })

  it.each([10, 20, 30, 39, 60, 100])('draws no line longer than %d columns', async (columns) => {
    const { out } = await run('--clients 5,10,40 --trials 2', ioInMemory({ columns, color: true }))
    const escapes = new RegExp(`${'\u001b'}\\[\\d*[mK]`, 'g')
    for (const line of out.replace(escapes, '').split(/[\r\n]/)) expect(line.length).toBeLessThanOrEqual(columns)
    expect(out.replace(/\s/g, '')).toContain(columns < 60 ? 'full:calls,time' : 'calls/time')
    expect(out.includes('calls of 40 clients')).toBe(columns >= 30)
  })

  it('can be one kind, and one’s own', async () => {
    const io = ioInMemory()
    io.files.set('own.json', '{ "backoff": { "kind": "full", "baseMs": 100, "capMs": 1000 } }')
    const { out, files } = await run(
      `${jitter} --backoff full --base-ms 20 --cap-ms 500 --policy own.json --svg a.svg`,
      io,
    )
    expect(out).toMatch(/^full .*\nyours /m)
    expect(files.get('a.svg')).toContain('>yours<')
  })

  it('is JSON when asked, and the same for the same seed', async () => {
    const first = await run(`${jitter} --seed 4 --json`)
    expect(JSON.parse(first.out)).toMatchObject({ settings: { clients: [5, 10], trials: 3, seed: 4 } })
    expect((await run(`${jitter} --seed 4 --json`)).out).toBe(first.out)
  })
})
