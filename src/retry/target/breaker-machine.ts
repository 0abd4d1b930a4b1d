// The breaker as a pure machine: state and event in, state out. The object in breaker.ts only holds the current state.
//
// Every change of mode begins a new generation. A call carries the generation it entered in, so that a late result of a
// call from before says nothing about the mode that holds now.

import type { Chance } from '../../kernel/index.js'
import type { Backoff } from '../backoff.js'
import { added, aged, stepAt, total } from './sliding-window.js'

/** `isolated` is open by hand, until it is closed by hand. */
export type BreakerState = 'closed' | 'open' | 'half-open' | 'isolated'

/** Everything a breaker knows. Plain and never changed in place. */
export interface MachineState {
  /** Whether calls are let in. */
  readonly mode: BreakerState
  /** Number of the present period, from 1. Handed out as the pass. */
  readonly generation: number
  /** Calls and failures while closed, in pairs, the newest last: one pair for each call, or for each step of time. */
  readonly evidence: readonly number[]
  /** Number of the step of time that the evidence ends in; always 0 if calls are counted. */
  readonly step: number
  /** How often it opened since it was last closed. */
  readonly trips: number
  /** How long it last opened for, in ms. */
  readonly openForMs: number
  /** Open: when a probe may enter. Half-open: when the probes out there are given up. Monotonic ms. */
  readonly untilMs: number
  /** Half-open: probes let in and not ignored. */
  readonly probes: number
  /** Half-open: probes that succeeded. */
  readonly cured: number
}

/** The unchanging part of a machine. The three kinds differ in these numbers only. */
export interface Machine {
  /** The window of time, in ms; Infinity if calls are counted. */
  readonly windowMs: number
  /** The most numbers of evidence. */
  readonly length: number
  /** The share of failures that opens it. */
  readonly failureRatio: number
  /** Fewer calls than this prove nothing. */
  readonly minimumCalls: number
  /** How long it stays open, by the number of trips. */
  readonly openFor: Backoff
  /** Probes let in while half-open, and successes needed to close. */
  readonly probes: number
}

/** What can happen to a breaker. The last three are reports, and come with a pass. */
export type BreakerEvent = 'enter' | 'open' | 'close' | 'isolate' | 'succeeded' | 'failed' | 'ignored'

/** The state before anything happened. */
export const firstState: MachineState = {
  mode: 'closed',
  generation: 1,
  evidence: [],
  step: 0,
  trips: 0,
  openForMs: 0,
  untilMs: 0,
  probes: 0,
  cured: 0,
}

/**
 * The state after an event. `enter` was granted if the state is closed, or has changed. A report with the pass of
 * another generation changes nothing.
 */
export function step(
  machine: Machine,
  state: MachineState,
  event: BreakerEvent,
  nowMs: number,
  random: Chance,
  pass?: number,
): MachineState {
  const { mode, probes, cured } = state
  const halfOpen = mode === 'half-open'
  const period = (next: BreakerState): MachineState => ({ ...firstState, generation: state.generation + 1, mode: next })
  const opened = (): MachineState => {
    const trips = state.trips + 1
    const openForMs = machine.openFor.delayMs(trips, state.openForMs, random)
    return { ...period('open'), trips, openForMs, untilMs: nowMs + openForMs }
  }

  if (event === 'open') return opened()
  if (event === 'close') return period('closed')
  if (event === 'isolate') return period('isolated')
  if (event === 'enter') {
    const free = halfOpen && probes < machine.probes
    if (!free && (mode === 'closed' || mode === 'isolated' || nowMs < state.untilMs)) return state
    // A half-open period begins after being open, and anew if the probes of the last one never reported back.
    const { trips, openForMs } = state
    const base = free ? state : { ...period('half-open'), trips, openForMs }
    return { ...base, probes: base.probes + 1, untilMs: nowMs + openForMs }
  }
  if (pass !== state.generation) return state
  if (halfOpen) {
    if (event === 'failed') return opened()
    if (event === 'ignored') return { ...state, probes: Math.max(cured, probes - 1) }
    return cured + 1 < machine.probes ? { ...state, cured: cured + 1 } : period('closed')
  }
  if (mode !== 'closed' || event === 'ignored') return state
  const next = remembered(machine, at(machine, state, nowMs), event === 'failed' ? 1 : 0)
  const calls = total(next.evidence, 0)
  // The quotient of whole numbers is rounded as a decimal text is, so 7 of 100 reach 0.07; a product would not. A
  // success never opens it, even if only now enough calls are known.
  const trips =
    event === 'failed' && calls >= machine.minimumCalls && total(next.evidence, 1) / calls >= machine.failureRatio
  return trips ? opened() : next
}

/** The same state, its evidence seen from `nowMs`: what has left the window is forgotten. Time does not go back. */
export function at({ windowMs }: Machine, state: MachineState, nowMs: number): MachineState {
  const now = stepAt(nowMs, windowMs)
  return now > state.step ? { ...state, step: now, evidence: aged(state.evidence, now - state.step) } : state
}

function remembered({ windowMs, length }: Machine, state: MachineState, failed: number): MachineState {
  const { evidence } = state
  if (windowMs < Infinity) return { ...state, evidence: added(evidence, 1, failed) }
  // A healthy target is the common case, and needs no new list.
  if (!failed && evidence.length === length && total(evidence, 1) === 0) return state
  return { ...state, evidence: [...evidence, 1, failed].slice(-length) }
}
