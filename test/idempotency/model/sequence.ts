// A sequence: numbers that say who acts next, and with what luck. Two owners, a sweep, a person, clocks, and the end,
// at which everybody must be able to go on.

import type { SettleEvent } from '../../../src/idempotency/machine.js'
import { Call, type End } from './call.js'
import { Violation } from './oracle.js'
import { leaseMs, realSubject, type Subject, skewMs, windowMs } from './subject.js'
import { type Fate, recoveries, type Setting, type Tally, World } from './world.js'

/** The numbers of a command are below this. */
export const commandLimit = 2 ** 20

/** What a sequence is run with. */
export interface SequenceOptions {
  readonly subject?: Subject
  readonly clockIsSound?: boolean
  /** What is not drawn, but set. */
  readonly setting?: Partial<Setting>
  readonly tally?: Tally
  readonly trace?: string[]
}

/** Runs a sequence. Throws a {@link Violation} when something happens that must not. */
export function runSequence(commands: readonly number[], options: SequenceOptions = {}): void {
  const { subject = realSubject, clockIsSound = true, tally = new Map(), trace } = options
  const setting = { ...settingOf(commands[0] ?? 0, clockIsSound), ...options.setting }
  const world = new World(subject, setting, tally, trace)
  world.say(() => `recovery ${world.setting.recovery.kind}, owners ${world.setting.modes.join(' and ')}`)
  world.count('sequence')
  const actors = new Actors(world)
  for (const command of commands) actors.act(command)
  actors.mustGoOn()
}

/** The same, and a violation tells its whole story. */
export function holds(commands: readonly number[], options: SequenceOptions = {}): void {
  try {
    runSequence(commands, options)
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    throw new Violation(`${error.message}\n${storyOf(commands, options).join('\n')}`)
  }
}

/** What happens in a sequence, line by line, up to the violation. */
export function storyOf(commands: readonly number[], options: SequenceOptions = {}): readonly string[] {
  const trace: string[] = []
  try {
    runSequence(commands, { ...options, tally: new Map(), trace })
  } catch (error) {
    if (!(error instanceof Violation)) throw error
    trace.push(error.message)
  }
  return trace
}

const settings: readonly (readonly [0 | 1 | 2, Setting['modes']])[] = [
  [0, ['leased', 'leased']],
  [1, ['leased', 'leased']],
  [2, ['leased', 'leased']],
  [0, ['leased', 'leased']],
  [1, ['leased', 'leased']],
  [0, ['leased', 'atomic']],
  [1, ['leased', 'atomic']],
  [0, ['atomic', 'atomic']],
]

function settingOf(command: number, clockIsSound: boolean): Setting {
  const [recovery, modes] = settings[(command >> 5) % settings.length] as (typeof settings)[number]
  return {
    recovery: recoveries[recovery] as Setting['recovery'],
    modes,
    clockIsSound,
    startsAheadMs: (command >> 8) % (skewMs + 1),
  }
}

const fates: readonly Fate[] = [
  'ok',
  'ok',
  'ok',
  'ok',
  'ok',
  'written, answer lost',
  'not written, answer lost',
  'late',
]

class Actors {
  readonly #world: World
  readonly #calls: [Call | undefined, Call | undefined, Call | undefined] = [undefined, undefined, undefined]
  #person: (() => void) | undefined

  constructor(world: World) {
    this.#world = world
  }

  act(command: number): void {
    const who = command % 32
    const fate = fates[(command >> 5) % 8] as Fate
    const luck = command >> 8
    const world = this.#world
    if (who < 9) this.#step(0, fate, luck)
    else if (who < 17) this.#step(1, fate, luck)
    else if (who < 20) this.#sweep(fate, luck)
    else if (who < 21) this.#settle(fate, luck)
    else if (who < 23) this.#calls[who - 21]?.heartbeat(fate)
    else if (who < 28) this.#pass([1, 6, leaseMs + skewMs, 3 * leaseMs, windowMs][who - 23] as number)
    else if (who < 29) this.#crash(luck % 2)
    else if (who < 30) {
      if (world.late.length > 0) world.deliver(luck)
    } else if (who < 31) world.purge()
    else if (luck % 2) world.jump(luck >> 1)
    else {
      world.ownerOffsetsMs[(luck >> 1) % 2] = ((luck >> 2) % 201) - 100
      world.count('jump of an owner’s clock')
    }
  }

  #step(owner: 0 | 1, fate: Fate, luck: number): void {
    const { modes } = this.#world.setting
    const content = luck % 16 === 15 ? 'other' : 'same'
    this.#calls[owner] ??= new Call(this.#world, owner, modes[owner], content)
    this.#stepCall(owner, fate, luck)
  }

  #sweep(fate: Fate, luck: number): void {
    const world = this.#world
    if (this.#calls[2] === undefined) {
      const look = new Call(world, luck, 'leased', 'same', true)
      if (!world.due(look)) return
      world.say(() => `the sweep ${look.token} takes what is due`)
      world.count('taken as due')
      // The answer to it may get lost as well.
      if (fate !== 'ok') return
      this.#calls[2] = look
    }
    this.#stepCall(2, fate, luck)
  }

  #stepCall(index: 0 | 1 | 2, fate: Fate, luck: number): void {
    const call = this.#calls[index]
    call?.step(fate, luck)
    if (call?.end === undefined) return
    this.#world.count(`${index === 2 ? 'look' : 'call'} ended: ${call.end}`)
    this.#calls[index] = undefined
  }

  #crash(owner: number): void {
    const call = this.#calls[owner]
    if (call === undefined) return
    this.#world.count(`crash at ${call.phase}`)
    this.#world.say(() => `${call.token} crashes`)
    this.#calls[owner] = undefined
  }

  #pass(byMs: number): void {
    this.#world.realMs += byMs
    const paused = this.#calls.filter((call) => call !== undefined && call.phase !== 'read').length
    if (byMs >= leaseMs && paused > 0) this.#world.count('pause longer than a lease')
  }

  // A person looks first, and writes some time later; says what is so.
  #settle(fate: Fate, luck: number) {
    const world = this.#world
    if (this.#person !== undefined) {
      this.#person()
      this.#person = undefined
      return
    }
    const { record } = world
    const { effects, value } = world.oracle.epoch
    const succeeded = { state: 'succeeded', codec: undefined, value, rememberedMs: windowMs } as const
    const failed = { state: 'failed', codec: undefined, value: '"a person says no"', rememberedMs: windowMs } as const
    const decision: SettleEvent['decision'] = effects > 0 ? succeeded : luck % 2 ? failed : { state: 'released' }
    const event: SettleEvent = { kind: 'settle', marginMs: world.subject.marginMs, decision }
    const decided = world.subject.decide(record, event, world.decidesAt(world.storeNow(), 0))
    if (decided.act !== 'write' && decided.act !== 'remove') return world.count('settlement refused')
    const change = decided.act === 'write' ? decided.change : null
    const by = { token: world.newToken() }
    const write = (): void => {
      const written = world.send({ by, purpose: 'settle', over: record, change }, fate)
      world.count(written === false ? 'settlement overtaken' : 'settled')
    }
    this.#person = write
  }

  /** Everybody is gone, and leases are over: whoever comes can go on, or it is unknown and a person can. */
  mustGoOn(): void {
    const world = this.#world
    world.late.length = 0
    this.#calls.fill(undefined)
    this.#person = undefined
    world.ownerOffsetsMs.fill(0)
    world.say(() => 'everybody is gone; time passes')
    const dueAtMs = world.record?.dueAtMs ?? 0
    world.realMs += Math.max(0, dueAtMs - world.storeNow()) + leaseMs + skewMs + 1
    for (let round = 0; round < 4; round += 1) {
      const end = this.#freshCall()
      if (end === 'completed' || end === 'replayed') {
        if (this.#freshCall() !== 'replayed') throw new Violation('an outcome is not replayed')
        return
      }
      if (end === 'unknown') {
        this.#settle('ok', 0)
        if (this.#person === undefined) throw new Violation('what is unknown cannot be settled')
        this.#settle('ok', 0)
      } else if (end !== 'released') throw new Violation(`nobody can go on: ${end}`)
    }
    throw new Violation('nobody comes to an end')
  }

  #freshCall(): End | undefined {
    const world = this.#world
    const call = new Call(world, 0, world.record?.mode ?? 'leased', world.record?.fingerprint ?? 'same')
    for (let steps = 0; steps < 12 && call.end === undefined; steps += 1) call.step('ok', 0)
    return call.end
  }
}
