import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import type { StoredKey } from '../identity/index.js'
import { eventLoopTurn } from '../kernel/index.js'
import { manualClock } from '../testing/index.js'
import { FinishedNames, InProcessQueue, insideOperation, refuseReentry, type Visitor } from './in-process.js'

const id = 'record' as StoredKey

interface Lead {
  claimed(): void
  done(told?: string): void
}
type Entered = { readonly lead: Lead } | { readonly told: string }

function world() {
  const clock = manualClock()
  const queue = new InProcessQueue<string>(clock)
  const visitor = (more: Partial<Visitor> = {}): Visitor => ({
    fingerprint: 'a',
    refusesDuplicates: false,
    mostWaiting: 100,
    waitUntilMs: clock.monotonicMs() + 5_000,
    deadline: { expiresAtMs: clock.monotonicMs() + 10_000 },
    signal: undefined,
    ...more,
  })
  const leadOf = (leader: Visitor): Lead => ({
    claimed: () => queue.claimed(id, leader),
    done: (told) => queue.done(id, leader, told),
  })
  const lead = (more: Partial<Visitor> = {}): Lead => {
    const leader = visitor(more)
    if (queue.enter(id, leader) !== undefined) return expect.unreachable('it was to lead')
    return leadOf(leader)
  }
  const enter = async (more: Partial<Visitor> = {}): Promise<Entered> => {
    const visiting = visitor(more)
    const told = await queue.enter(id, visiting)
    return told === undefined ? { lead: leadOf(visiting) } : { told }
  }
  return { clock, queue, lead, enter }
}

const code = (expected: string) => expect.objectContaining({ code: expected })

it('lets one who would rather be refused wait only until a store had the time to say whose the key is', async () => {
  const { clock, lead, enter } = world()
  const first = lead()
  const refused = expect(enter({ refusesDuplicates: true })).rejects.toEqual(code('OPERATION_IN_FLIGHT'))
  const waits = enter()
  await clock.advance(250)
  await refused
  const told = enter({ refusesDuplicates: true })
  await clock.advance(249)
  first.done('stored')
  expect([await waits, await told]).toEqual([{ told: 'stored' }, { told: 'stored' }])
})

describe('a leader', () => {
  it('is the first one, and leaves nothing behind', async () => {
    const { queue, lead } = world()
    const first = lead()
    expect(queue.size).toBe(1)
    first.done('stored')
    expect(queue.size).toBe(0)
    first.done()
    expect(queue.size).toBe(0)
  })

  it('tells all who wait', async () => {
    const { clock, queue, lead, enter } = world()
    const first = lead()
    const waiting = [enter(), enter(), enter()]
    expect(queue.waiting(id)).toBe(3)
    first.done('stored')
    expect(await Promise.all(waiting)).toEqual([{ told: 'stored' }, { told: 'stored' }, { told: 'stored' }])
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0])
  })

  it('without an outcome is followed by the one who waited longest, and by it alone', async () => {
    const { queue, lead, enter } = world()
    const first = lead()
    const [second, third] = [enter(), enter()]
    first.done()
    const next = await second
    expect(next).toHaveProperty('lead')
    expect(queue.waiting(id)).toBe(1)
    if ('lead' in next) next.lead.done('stored')
    expect(await third).toEqual({ told: 'stored' })
  })
})

describe('who waits', () => {
  it('is refused when its own wait is over, and no other', async () => {
    const { clock, queue, lead, enter } = world()
    const first = lead()
    const short = expect(enter({ waitUntilMs: 100 })).rejects.toEqual(code('OPERATION_IN_FLIGHT'))
    const late = expect(enter({ deadline: { expiresAtMs: 200 } })).rejects.toEqual(code('DEADLINE_EXCEEDED'))
    const patient = enter()
    await clock.advance(200)
    await Promise.all([short, late])
    expect(queue.waiting(id)).toBe(1)
    first.done('stored')
    expect(await patient).toEqual({ told: 'stored' })
  })

  it('is let go by its own signal, and the others stay', async () => {
    const { queue, lead, enter } = world()
    const first = lead()
    const control = new AbortController()
    const leaving = expect(enter({ signal: control.signal })).rejects.toBe('gone')
    const staying = enter()
    control.abort('gone')
    await leaving
    await expect(enter({ signal: control.signal })).rejects.toBe('gone')
    expect(queue.waiting(id)).toBe(1)
    first.done('stored')
    expect(await staying).toEqual({ told: 'stored' })
  })

  it('is not more than may wait', async () => {
    const { lead, enter } = world()
    lead()
    void enter({ mostWaiting: 1 })
    await expect(enter({ mostWaiting: 1 })).rejects.toEqual(code('QUEUE_FULL'))
  })
})

describe('other content, and who does not want to wait', () => {
  it('are refused at once when the key is claimed, other content first', async () => {
    const { lead, enter } = world()
    const first = lead()
    first.claimed()
    await expect(enter({ fingerprint: 'b', refusesDuplicates: true })).rejects.toEqual(code('OPERATION_MISMATCH'))
    await expect(enter({ refusesDuplicates: true })).rejects.toEqual(code('OPERATION_IN_FLIGHT'))
  })

  it('wait until it is known who has the key, since the leader may be the one who is wrong', async () => {
    const { lead, enter } = world()
    const wrong = lead({ fingerprint: 'b' })
    const honest = enter({ refusesDuplicates: true })
    const alike = expect(enter({ fingerprint: 'b' })).rejects.toEqual(code('OPERATION_MISMATCH'))
    wrong.done()
    const next = await honest
    if ('told' in next) expect.unreachable('it was to lead')
    else {
      next.lead.claimed()
      await alike
      next.lead.done('stored')
    }
  })
})

const step = fc.record({
  act: fc.constantFrom('enter', 'done', 'fail', 'claim', 'abort', 'advance'),
  which: fc.nat(7),
  fingerprint: fc.constantFrom('a', 'b'),
  refusesDuplicates: fc.boolean(),
})

property(
  'leads one at a time, forgets nobody, and leaves nothing behind, whatever comes in which order',
  [fc.array(step, { maxLength: 40 })],
  async (steps) => {
    const { clock, queue, enter } = world()
    const leads: Lead[] = []
    const controls: AbortController[] = []
    let [entered, ended, leading, most] = [0, 0, 0, 0]
    const end = (told?: string): void => {
      const lead = leads.shift()
      if (lead === undefined) return
      leading -= 1
      lead.done(told)
    }
    for (const { act, which, fingerprint, refusesDuplicates } of steps) {
      if (act === 'enter') {
        const control = new AbortController()
        controls.push(control)
        entered += 1
        enter({ fingerprint, refusesDuplicates, signal: control.signal, mostWaiting: 3 }).then(
          (result) => {
            ended += 1
            if ('told' in result) return
            leads.push(result.lead)
            leading += 1
            most = Math.max(most, leading)
          },
          () => {
            ended += 1
          },
        )
      } else if (act === 'done') end('stored')
      else if (act === 'fail') end()
      else if (act === 'claim') leads[0]?.claimed()
      else if (act === 'abort') controls[which]?.abort()
      else await clock.advance(which * 100)
      for (let turn = 0; turn < 4; turn++) await Promise.resolve()
    }
    while (leads.length > 0) {
      end()
      for (let turn = 0; turn < 4; turn++) await Promise.resolve()
    }
    expect({ ended, size: queue.size, timers: clock.pendingTimers }).toEqual({ ended: entered, size: 0, timers: 0 })
    expect(most).toBeLessThanOrEqual(1)
  },
  { cases: 2_000 },
)

describe('finished names', () => {
  const name = (number: number) => String(number) as StoredKey

  it('are the last ones, at least half of those that may be remembered and no more than all', () => {
    const names = new FinishedNames(4)
    const known = (most: number) =>
      Array.from({ length: most }, (_, number) => number).filter((n) => names.has(name(n)))
    for (let number = 0; number < 4; number++) names.add(name(number))
    expect(known(4)).toEqual([0, 1, 2, 3])
    names.add(name(3))
    expect(known(4)).toEqual([0, 1, 2, 3])
    names.add(name(4))
    expect(known(5)).toEqual([2, 3, 4])
    names.delete(name(2))
    names.delete(name(4))
    expect(known(5)).toEqual([3])
    for (let number = 5; number < 9; number++) names.add(name(number))
    for (let number = 9; number < 100; number++) {
      names.add(name(number))
      expect([3, 4]).toContain(known(100).length)
    }
  })
})

describe('a call from inside an operation', () => {
  const [queue, other] = [{}, {}]
  const [a, b] = ['a' as StoredKey, 'b' as StoredKey]
  const reentered = expect.objectContaining({ code: 'OPERATION_REENTERED' })

  it('sees every operation around it, of the same domain and key, and no other', async () => {
    await insideOperation(queue, a, async () => {
      await insideOperation(queue, b, async () => {
        await eventLoopTurn()
        expect(() => refuseReentry(queue, a)).toThrow(reentered)
        expect(() => refuseReentry(queue, b)).toThrow(reentered)
        refuseReentry(other, a)
      })
      refuseReentry(queue, b)
    })
    refuseReentry(queue, a)
  })

  it('sees nothing any more in what was left running', async () => {
    let left: Promise<void> | undefined
    await insideOperation(queue, a, async () => {
      left = eventLoopTurn().then(() => refuseReentry(queue, a))
    })
    await expect(left).resolves.toBeUndefined()
  })
})
