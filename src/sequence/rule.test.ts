// The rule on numbers, alone and in a small world: producers that die and come back, a network that loses, repeats and
// delays, and a store that forgets idle producers.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { property } from '../../test/property.js'
import { type ProducerRow, ruleOnNumber, type SequenceRuling } from './rule.js'

describe('ruleOnNumber', () => {
  const row: ProducerRow = { epoch: 7, number: 3, fingerprint: 'f', value: '1' }

  it.each<[string, ProducerRow | undefined, number, number, SequenceRuling]>([
    ['the next number', row, 7, 4, { is: 'new' }],
    ['the first number', { ...row, number: 0 }, 7, 1, { is: 'new' }],
    ['the last number', row, 7, 3, { is: 'duplicate', isLast: true }],
    ['an older number', row, 7, 1, { is: 'duplicate', isLast: false }],
    ['a number beyond the next', row, 7, 5, { is: 'gap', next: 4 }],
    ['an older epoch', row, 6, 4, { is: 'fenced', open: 7 }],
    ['a later epoch than the open one', row, 8, 1, { is: 'fenced', open: 7 }],
    ['the first number of a producer that is not remembered', undefined, 7, 1, { is: 'fenced', open: undefined }],
  ])('rules upon %s', (_, remembered, epoch, number, ruling) => {
    expect(ruleOnNumber(remembered, { epoch, number })).toEqual(ruling)
  })

  it('compares the content of the last number only, and only where both are known', () => {
    const differs = () => false
    expect(ruleOnNumber(row, { epoch: 7, number: 3 }, differs)).toEqual({ is: 'mismatch' })
    expect(ruleOnNumber(row, { epoch: 7, number: 2 }, differs)).toEqual({ is: 'duplicate', isLast: false })
    expect(ruleOnNumber(row, { epoch: 7, number: 4 }, differs)).toEqual({ is: 'new' })
    const unknown = { ...row, fingerprint: undefined }
    expect(ruleOnNumber(unknown, { epoch: 7, number: 3 }, differs)).toEqual({ is: 'duplicate', isLast: true })
  })
})

type Rule = (row: ProducerRow | undefined, at: { epoch: number; number: number }) => SequenceRuling

/** One message on its way. Every process sends an intent of its own under each number. */
interface Sent {
  readonly process: number
  readonly epoch: number
  readonly number: number
}

// A store with one producer, and the processes that send in its name, one after the other.
class World {
  readonly tally = new Map<string, number>()
  readonly #rule: Rule
  readonly #restartsEpochs: boolean
  #row: ProducerRow | undefined
  #lastEpoch = 0
  #processes = 0
  /** The process at work: its epoch, and the number it wants accepted. */
  #sender: Sent | undefined
  readonly #onTheWay: Sent[] = []
  readonly #effects: Sent[] = []

  constructor(rule: Rule, restartsEpochs: boolean) {
    this.#rule = rule
    this.#restartsEpochs = restartsEpochs
  }

  step(command: number): void {
    const kind = command % 16
    if (kind === 0) this.#begin()
    else if (kind === 1) this.#forget()
    else if (kind < 7) this.#send()
    else this.#deliver(command >> 4, kind)
  }

  // A process starts: it opens the next epoch. The one before it may live on as a zombie: what it sent is on its way.
  #begin(): void {
    this.#lastEpoch += 1
    this.#processes += 1
    this.#row = { epoch: this.#lastEpoch, number: 0, fingerprint: undefined, value: undefined }
    this.#sender = { process: this.#processes, epoch: this.#lastEpoch, number: 1 }
    this.#count('processes')
  }

  #forget(): void {
    if (this.#row === undefined) return
    this.#row = undefined
    if (this.#restartsEpochs) this.#lastEpoch = 0
    this.#count('producers forgotten')
  }

  // The same number again until it is answered.
  #send(): void {
    if (this.#sender !== undefined && this.#onTheWay.length < 20) this.#onTheWay.push(this.#sender)
  }

  #deliver(choice: number, kind: number): void {
    const place = this.#onTheWay.length === 0 ? -1 : choice % this.#onTheWay.length
    const sent = this.#onTheWay[place]
    if (sent === undefined) return
    // Some are lost, some arrive twice.
    if (kind !== 8) this.#onTheWay.splice(place, 1)
    if (kind === 7) {
      this.#count('messages lost')
      return
    }
    const ruling = this.#rule(this.#row, sent)
    this.#count(ruling.is)
    if (ruling.is === 'new') {
      this.#effects.push(sent)
      this.#row = { epoch: sent.epoch, number: sent.number, fingerprint: undefined, value: undefined }
    }
    const isAnswered = kind !== 9
    const isSenders = this.#sender?.process === sent.process && this.#sender.number === sent.number
    if (isAnswered && isSenders && (ruling.is === 'new' || ruling.is === 'duplicate')) {
      this.#sender = { ...sent, number: sent.number + 1 }
    }
    if (ruling.is === 'fenced' && isSenders) this.#sender = undefined
  }

  /** What must hold, whatever happened. */
  check(): string[] {
    const wrong: string[] = []
    const seen = new Set<string>()
    let [process, number] = [0, 0]
    for (const effect of this.#effects) {
      const intent = `${effect.process}/${effect.number}`
      if (seen.has(intent)) wrong.push(`${intent} took effect twice`)
      seen.add(intent)
      if (effect.process < process) wrong.push(`a zombie, ${intent}, took effect`)
      if (effect.number !== (effect.process === process ? number + 1 : 1)) wrong.push(`${intent} is out of order`)
      ;[process, number] = [effect.process, effect.number]
    }
    return wrong
  }

  #count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1)
  }
}

const commands = fc.array(fc.noBias(fc.nat(16 * 60)), { minLength: 20, maxLength: 80, size: 'max' })

function run(drawn: readonly number[], rule: Rule, restartsEpochs = false): World {
  const world = new World(rule, restartsEpochs)
  world.step(0)
  for (const command of drawn) world.step(command)
  return world
}

describe('producers that die and come back', () => {
  const tally = new Map<string, number>()

  property('take effect once and in order, and never after their epoch is over', [commands], (drawn) => {
    const world = run(drawn, ruleOnNumber)
    for (const [what, times] of world.tally) tally.set(what, (tally.get(what) ?? 0) + times)
    expect(world.check()).toEqual([])
  })

  it('went through all of it', () => {
    const kinds = ['new', 'duplicate', 'fenced', 'messages lost', 'processes', 'producers forgotten']
    expect(kinds.filter((kind) => !((tally.get(kind) ?? 0) > 100))).toEqual([])
  })

  // Each of them is a rule that somebody may think is enough.
  const planted: Readonly<Record<string, readonly [rule: Rule, restartsEpochs?: boolean]>> = {
    'a producer that was forgotten begins anew': [
      (row, at) => (row === undefined && at.number === 1 ? { is: 'new' } : ruleOnNumber(row, at)),
    ],
    'any number of a producer that was forgotten is new': [
      (row, at) => (row === undefined ? { is: 'new' } : ruleOnNumber(row, at)),
    ],
    'an older epoch is not looked at': [
      (row, at) => ruleOnNumber(row === undefined ? undefined : { ...row, epoch: at.epoch }, at),
    ],
    'the last number is new again': [
      (row, at) => (row?.epoch === at.epoch && row.number === at.number ? { is: 'new' } : ruleOnNumber(row, at)),
    ],
    'epochs begin anew after a purge': [ruleOnNumber, true],
  }

  it.each(Object.keys(planted))('are seen to go wrong where %s', (bug) => {
    const [rule, restarts] = planted[bug] as (typeof planted)[string]
    const found = fc
      .sample(commands, { numRuns: 3_000, seed: 11 })
      .some((drawn) => run(drawn, rule, restarts).check().length > 0)
    expect(found).toBe(true)
  })
})
