// One call of an operation, or one look of a sweep, in steps between which anything else may happen. It does what a
// runner does, and no more.

import type { Expected, RecordDraft, RecordMode } from '../../../src/atomicity/index.js'
import type { ClaimEvent, Decision, LookEvent, OwnerEvent, Refusal } from '../../../src/idempotency/machine.js'
import type { Claimant, Purpose } from './oracle.js'
import { leaseMs, windowMs } from './subject.js'
import type { Fate, World, Write } from './world.js'

/** What a call can end with. */
export type End = 'completed' | 'replayed' | 'released' | 'lost' | 'stale' | 'deadline' | 'idle' | Refusal

type Phase = 'read' | 'write' | 'send' | 'ask' | 'close' | 'closing'

type Closing = OwnerEvent extends infer Event
  ? Event extends OwnerEvent
    ? Omit<Event, 'token' | 'fence'>
    : never
  : never

/** A call. */
export class Call implements Claimant {
  readonly token: string
  end: End | undefined
  phase: Phase = 'read'
  readonly #world: World
  readonly #owner: number
  readonly #mode: RecordMode
  readonly #content: string
  readonly #isLook: boolean
  readonly #deadlineMs: number
  #fence = 0
  #write: Write | undefined
  #afterWrite: 'send' | 'ask' | End = 'send'
  #sendByMs = Number.POSITIVE_INFINITY
  #freshUntilMs = 0
  #maybeSent = false
  #asked = false
  #closing: Closing | undefined

  constructor(world: World, owner: number, mode: RecordMode, content: string, isLook = false) {
    this.#world = world
    this.#owner = owner
    this.#mode = mode
    this.#content = content
    this.#isLook = isLook
    this.token = world.newToken()
    this.#deadlineMs = world.realMs + windowMs
  }

  /** Does the next thing. `fate` is the store's, `luck` the receiver's. */
  step(fate: Fate, luck: number): void {
    // A call has a deadline, and it is shorter than the window: whoever wakes up later asks nothing more.
    if (this.#world.realMs >= this.#deadlineMs || this.#outlivedItsWindow()) {
      this.#world.count(`deadline passed at ${this.phase}`)
      this.#end('deadline')
      return
    }
    if (this.phase === 'read') this.#read()
    else if (this.phase === 'write') this.#writeClaim(fate)
    else if (this.phase === 'send') this.#send(luck)
    else if (this.phase === 'ask') this.#ask(luck)
    else if (this.phase === 'close') this.#decideEnd()
    else this.#writeEnd(fate)
  }

  // Where the store's clock jumps past a window, a call can find that its own outcome is forgotten. Nothing is said
  // about such a call.
  #outlivedItsWindow(): boolean {
    const { setting, committed, record } = this.#world
    return !setting.clockIsSound && committed.has(this.token) && record?.token !== this.token
  }

  /** Renews the lease, as a timer does beside the work. */
  heartbeat(fate: Fate): void {
    if (this.phase === 'read' || this.phase === 'write' || this.#mode === 'atomic') return
    const decision = this.#decide({ kind: 'renew', leaseMs })
    if (decision.act === 'stale') {
      this.#world.count('stale renewal refused')
      this.#end('stale')
    } else if (decision.act === 'write') {
      const over = this.#world.record
      const written = this.#world.send({ by: this, purpose: 'renew', over, change: decision.change }, fate)
      if (written) this.#freshUntilMs = this.#world.realMs + leaseMs
    }
  }

  #read() {
    const { record, subject } = this.#world
    const nowMs = this.#world.decidesAt(this.#world.storeNow(), this.#owner)
    const decision = subject.decide(record, this.#event(), nowMs)
    this.#world.say(() => `${this.token} reads ${record?.state ?? 'nothing'}: ${decision.act}`)
    const over = record
    switch (decision.act) {
      case 'insert':
        return this.#claim({ by: this, purpose: 'claim', insert: this.#draft() }, 'send')
      case 'execute':
        if (decision.how === 'rerun') this.#sendByMs = this.#world.realMs + decision.sendWithinMs
        this.#world.count(decision.how === 'rerun' ? 'takeover to run again' : 'key used anew')
        if (record?.mode !== this.#mode) this.#world.count('key used anew in another mode')
        return this.#claim({ by: this, purpose: 'claim', over, change: decision.change }, 'send')
      case 'ask':
        this.#world.count('takeover to ask')
        return this.#claim({ by: this, purpose: 'claim', over, change: decision.change }, 'ask')
      case 'own':
        this.#world.count(`own claim recognised, to ${decision.how}`)
        if (decision.how === 'rerun') this.#sendByMs = this.#world.realMs + decision.sendWithinMs
        return this.#claim(
          { by: this, purpose: 'renew', over, change: decision.change },
          decision.how === 'ask' ? 'ask' : 'send',
        )
      default:
        return this.#refused(decision, over)
    }
  }

  #refused(decision: Decision, over: Expected | undefined) {
    const world = this.#world
    if (decision.act === 'replay') {
      world.oracle.replayed(world.record)
      world.count('replay')
      const change = world.subject.replayWrites
      if (change !== undefined) world.send({ by: this, purpose: 'replay', over, change }, 'ok')
      return this.#end('replayed')
    }
    if (decision.act === 'write')
      return this.#claim({ by: this, purpose: 'hold', over, change: decision.change }, 'unknown')
    if (decision.act !== 'refuse') return this.#end('idle')
    world.count(`refused: ${decision.because}`)
    const { change } = decision
    if (change === undefined) return this.#end(decision.because)
    this.#claim({ by: this, purpose: 'hold', over, change }, decision.because)
  }

  #claim(write: Write, then: 'send' | 'ask' | End): void {
    this.#write = this.#mode === 'atomic' && write.purpose === 'claim' ? { ...write, commits: true } : write
    this.#afterWrite = then
    this.phase = 'write'
  }

  #writeClaim(fate: Fate): void {
    const write = this.#write as Write
    // A transaction that is under way keeps others from its key: it does not arrive after them.
    const written = this.#world.send(write, write.commits && fate === 'late' ? 'not written, answer lost' : fate)
    if (written !== true) {
      if (written === false) this.#world.count('lost a race for the record')
      this.phase = 'read'
    } else if (write.commits) this.#end('completed')
    else if (this.#afterWrite === 'send' || this.#afterWrite === 'ask') {
      this.#fence = this.#world.record?.fence ?? 0
      this.#freshUntilMs = this.#world.realMs + leaseMs
      this.phase = this.#afterWrite
    } else this.#end(this.#afterWrite)
  }

  #send(luck: number) {
    const world = this.#world
    if (world.realMs >= this.#freshUntilMs || world.realMs >= this.#sendByMs) {
      world.count(
        world.realMs >= this.#sendByMs
          ? 'not sent: the receiver may have forgotten'
          : 'not sent: the lease is not fresh',
      )
      return this.#notSent()
    }
    const happening = luck % 8
    if (happening === 7) return this.#notSent()
    if (happening === 6) {
      this.#maybeSent = true
      world.count('maybe, and it did not arrive')
      return this.#unsure(luck)
    }
    if (happening === 5 && world.oracle.epoch.effects === 0) {
      return this.#close({
        kind: 'complete',
        state: 'failed',
        codec: undefined,
        value: '"declined"',
        rememberedMs: windowMs,
      })
    }
    const key = world.subject.keyOf(this.token)
    const value = world.oracle.sent(this, key, world.setting.recovery.kind === 'rerun', world.realMs)
    world.say(() => `${this.token} sends: ${value}`)
    this.#maybeSent = true
    if (happening >= 3) {
      world.count('maybe, and it arrived')
      return this.#unsure(luck)
    }
    this.#close({ kind: 'complete', state: 'succeeded', codec: undefined, value, rememberedMs: windowMs })
  }

  // The receiver honours keys: the same claim may try again. Otherwise it is unknown.
  #unsure(luck: number) {
    if (this.#world.setting.recovery.kind === 'rerun' && luck & 8) return
    this.#close({ kind: 'lose', because: 'maybe', lookInMs: 5 })
  }

  #notSent() {
    if (this.#maybeSent) return this.#close({ kind: 'lose', because: 'maybe', lookInMs: 5 })
    this.#close({ kind: 'release', proof: this.#asked ? 'asked' : 'unsent' })
  }

  #ask(luck: number) {
    const { epoch } = this.#world.oracle
    if (luck % 8 === 7) return this.#close({ kind: 'lose', because: 'nobody knows', lookInMs: 5 })
    this.#world.count(epoch.effects > 0 ? 'asked: it happened' : 'asked: it did not happen')
    if (epoch.effects > 0) {
      return this.#close({
        kind: 'complete',
        state: 'succeeded',
        codec: undefined,
        value: epoch.value,
        rememberedMs: windowMs,
      })
    }
    this.#asked = true
    if (luck & 8) this.phase = 'send'
    else this.#close({ kind: 'release', proof: 'asked' })
  }

  #close(closing: Closing): void {
    this.#closing = closing
    this.phase = 'close'
  }

  #decideEnd(): void {
    const closing = this.#closing as Closing
    const decision = this.#decide(closing)
    const over = this.#world.record
    this.#world.say(() => `${this.token} would ${closing.kind}: ${decision.act}`)
    if (decision.act === 'write' || decision.act === 'remove') {
      const lost = decision.act === 'write' && decision.change.state === 'unknown'
      if (lost && closing.kind === 'release') this.#world.count('released, but an earlier claim may have sent')
      const purpose: Purpose = lost ? 'lose' : (closing.kind as Purpose)
      this.#write = { by: this, purpose, over, change: decision.act === 'write' ? decision.change : null }
      this.phase = 'closing'
    } else if (decision.act === 'done') {
      this.#world.count('own outcome recognised')
      this.#end(endOf(closing.kind))
    } else {
      this.#world.count(`stale ${closing.kind} refused`)
      this.#end('stale')
    }
  }

  #writeEnd(fate: Fate): void {
    const written = this.#world.send(this.#write as Write, fate)
    if (written) this.#end(endOf((this.#closing as Closing).kind))
    else this.phase = 'close'
  }

  #decide(event: Closing): Decision {
    const { record, subject } = this.#world
    const whole = { ...event, token: this.token, fence: this.#fence } as OwnerEvent
    return subject.decide(record, whole, this.#world.decidesAt(this.#world.storeNow(), this.#owner))
  }

  #event(): ClaimEvent | LookEvent {
    const { record, subject, setting } = this.#world
    const { token } = this
    const { marginMs } = subject
    if (this.#isLook) return { kind: 'look', token, leaseMs, marginMs, recovery: setting.recovery }
    const leased = this.#mode === 'leased'
    const sameContent = record === undefined || record.fingerprint === this.#content
    const content = { sameContent, fingerprint: this.#content, input: this.#content }
    const recovery = leased ? setting.recovery : undefined
    return {
      kind: 'claim',
      mode: this.#mode,
      token,
      ...content,
      leaseMs: leased ? leaseMs : undefined,
      marginMs,
      recovery,
    }
  }

  #draft(): RecordDraft {
    const draft = { mode: this.#mode, token: this.token, fingerprint: this.#content, input: this.#content }
    return this.#mode === 'leased' ? { ...draft, leaseMs } : draft
  }

  #end(end: End): void {
    this.end = end
  }
}

function endOf(kind: Closing['kind']): End {
  return kind === 'complete' ? 'completed' : kind === 'release' ? 'released' : 'lost'
}
