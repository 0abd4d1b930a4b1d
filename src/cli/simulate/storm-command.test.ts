import { describe, expect, it } from 'vitest'
import { ioInMemory, type Seen } from '../../../test/cli/io-in-memory.js'
import { hedging, retryPolicy } from '../../retry/index.js'
import type { StormReport } from '../../simulator/index.js'
import { readOptions } from '../option-table.js'
import { stormCommand } from './storm-command.js'

async function run(line: string, io: Seen = ioInMemory()): Promise<Seen> {
  await stormCommand.run(readOptions(line.split(' ').filter(Boolean), stormCommand.options), io)
  return io
}

const storm = '--seconds 40 --trigger-at 5 --trigger-seconds 5 --load 70 --capacity 100'

describe('simulate storm', () => {
  // Not as a literal: it begins with a control character.
  const upward = new RegExp(`${'\u001b'}\\[\\d+F`)

  const visible = (text: string): string => text.replace(new RegExp(`${'\u001b'}\\[\\d*[mFK]`, 'g'), '')

  it('ends with what became of the service', async () => {
    const bare = await run(`${storm} --attempts 6 --budget none`)
    expect(bare.out.trimEnd().split('\n').at(-1)).toMatch(/^STORM, METASTABLE: 20 s after the trigger/)
    const limited = await run(`${storm} --attempts 6`)
    expect(limited.out.trimEnd().split('\n').at(-1)).toMatch(/^Recovered \d+ s after the trigger\.$/)
    expect(limited.out).toContain('6 attempts, backoff full 50..2000 ms, token budget 10/0.1')
  })

  it('does not say that a service is down which was never in trouble', async () => {
    const { out } = await run('--trigger-at 100 --seconds 30')
    expect(out.trimEnd().split('\n').at(-1)).toMatch(/^No trouble: goodput never fell; the trigger .* after the end/)
    expect(out).not.toMatch(/down/i)
  })

  it('is a table without a terminal', async () => {
    const { out } = await run(storm)
    expect(out).toMatch(/^seconds +offered\/s/m)
    expect(out).not.toContain('\u001b')
  })

  it('is a plot that grows in a terminal', async () => {
    const { out } = await run(storm, ioInMemory({ columns: 80, color: true }))
    const frames = out.split(upward)
    expect(frames).toHaveLength(20)
    const lines = (frames[3] as string).split('\n').length
    expect(out).toContain(`\u001b[${lines - 1}F`)
    expect(frames[19]).toContain('40/40 s')
    expect(out).not.toMatch(/^seconds/m)
  })

  it('writes SVG and JSON files', async () => {
    const { files, out } = await run(`${storm} --svg a.svg --json a.json`)
    expect(files.get('a.svg')).toMatch(/^<svg .*<\/svg>\n$/s)
    const report = JSON.parse(files.get('a.json') ?? '') as StormReport
    expect(report.series).toHaveLength(40)
    expect(report.settings.policy.attempts).toBe(3)
    expect(out).toContain('Recovered')
  })

  it('writes nothing but JSON to the output when asked', async () => {
    const report = JSON.parse((await run(`${storm} --json`)).out) as StormReport
    expect(report.findings.outcome).toBe('recovered')
  })

  it('hands the scene on', async () => {
    const line = `${storm} --service-ms 20 --queue-limit 9 --refusal unsent --clients 3 --trigger-capacity 0.5`
    const { settings } = JSON.parse(
      (await run(`${line} --not-idempotent --unguarded --seed 9 --json`)).out,
    ) as StormReport
    expect(settings).toMatchObject({
      load: 70,
      capacity: 100,
      serviceMs: 20,
      queueLimit: 9,
      refusal: 'unsent',
      clients: 3,
      triggerAtSeconds: 5,
      triggerSeconds: 5,
      triggerCapacity: 0.5,
      idempotent: false,
      guarded: false,
      seed: 9,
    })
  })

  it('runs a policy from a file, with what the options change', async () => {
    const io = ioInMemory()
    io.files.set('own.json', JSON.stringify(retryPolicy({ attempts: 5 }).toJSON()))
    const { out } = await run(`${storm} --policy own.json --budget none --json`, io)
    const { policy } = (JSON.parse(out) as StormReport).settings
    expect(policy).toMatchObject({ attempts: 5 })
    expect(policy.budget).toBeUndefined()
  })

  it('refuses a policy that hedges, and plays it without its hedges when told to', async () => {
    const io = ioInMemory()
    io.files.set('own.json', JSON.stringify(retryPolicy({ attempts: 5, hedge: hedging({ after: 100 }) }).toJSON()))
    await expect(run(`${storm} --policy own.json`, io)).rejects.toMatchObject({
      code: 'SIMULATION_UNSUPPORTED',
      message: 'Hedging is not simulated; leave it out of the policy to see the rest of it. Here that is --no-hedge.',
    })
    expect(io.out).toBe('')
    const { out } = await run(`${storm} --policy own.json --no-hedge --json`, io)
    const { policy } = (JSON.parse(out) as StormReport).settings
    expect(policy.attempts).toBe(5)
    expect(policy).not.toHaveProperty('hedgeAfterMs')
  })

  it('runs the policy of a gRPC service config', async () => {
    const io = ioInMemory()
    const retryPolicy = {
      maxAttempts: 4,
      initialBackoff: '0.1s',
      maxBackoff: '1s',
      backoffMultiplier: 2,
      retryableStatusCodes: ['UNAVAILABLE'],
    }
    const methodConfig = [{ name: [{ service: 'shop.Orders' }], retryPolicy }]
    io.files.set('grpc.json', JSON.stringify({ methodConfig, retryThrottling: { maxTokens: 20, tokenRatio: 0.5 } }))
    const { out } = await run(`${storm} --policy grpc.json --method shop.Orders/Find`, io)
    expect(out).toContain('shop.Orders/Find: 4 attempts, backoff grpc 100..1000 ms, token budget 20/0.5, no breaker')
    await expect(run(`${storm} --method shop.Orders/Find`)).rejects.toThrowError('--method needs --policy')
  })

  it('plays the quota of other clients in place of the budget', async () => {
    const { out } = await run(`${storm} --peer-budget quota --quota-capacity 100 --quota-cost 5 --json`)
    const { settings, series } = JSON.parse(out) as StormReport
    expect(settings.peerBudget).toEqual({ kind: 'quota', capacity: 100, cost: 5, gain: 1 })
    expect(series[0]?.tokens).toBe(100)
    const both = run(`${storm} --peer-budget quota --budget token`)
    await expect(both).rejects.toThrowError('--peer-budget stands in place of --budget; give one of them')
    const stray = run(`${storm} --quota-cost 5`)
    await expect(stray).rejects.toThrowError('--quota-cost needs --peer-budget quota; it is none here')
  })

  it.each([8, 15, 20, 30, 39, 40, 80])('draws no line longer than %d columns', async (columns) => {
    for (const color of [true, false]) {
      const { out } = await run(`${storm} --attempts 6 --budget none`, ioInMemory({ columns, color }))
      const lines = visible(out).split('\n')
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns)
      expect(visible(out).replace(/\s+/g, ' ')).toContain(columns < 16 ? 'capacity' : '40/40 s')
      if (columns >= 16) expect(out).toContain('│')
      if (columns >= 16) expect(lines.some((line) => line.endsWith('STORM METASTABLE'))).toBe(true)
      expect(out.replace(/\s/g, '')).toContain('STORM,METASTABLE:')
    }
  })
})
