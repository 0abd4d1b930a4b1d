// Taking up what a process left: by repeating its call, by a sweep, or by a person; and what that came to.

import { expect } from 'vitest'
import { didNotHappen, happened, type LeasedOperation } from '../../../src/idempotency/index.js'
import { checkEffects } from '../../../src/testing/index.js'
import { until } from '../../servers/server-process.js'
import { marginMs, parts, tests } from './definitions.js'
import { recordOf, type Stage, type StagedStore, type Tried } from './stage.js'

/** Who comes first: whoever wants it, or a sweep. */
export type TakenUpBy = 'repeat' | 'sweep'

/** What it came to, in words for a table. */
export interface TakenUp {
  /** What was said before the end. */
  readonly said: string
  /** How it was settled. */
  readonly settled: string
}

/** What is known outside of an intent: how many effects it has, and what they say. */
export async function effectsOf(stage: Stage, store: StagedStore, { operation, intent }: Tried) {
  if (operation !== 'book') return stage.sink.of(intent).effects.map((result) => ({ intent, result }))
  return (await store.ledger()).filter((effect) => effect.intent === intent)
}

/** How often the effect is there. */
export async function effectCount(stage: Stage, store: StagedStore, tried: Tried): Promise<number> {
  const effects = await effectsOf(stage, store, tried)
  return tried.operation === 'book' ? effects.length / parts.length : effects.length
}

const codeOf = (error: unknown): string => String((error as { readonly code?: unknown }).code ?? error)

/** Calls in this process: the result, or the code of the error. */
export async function call(store: StagedStore, tried: Tried): Promise<{ result?: string; said: string }> {
  const { intent, key } = tried
  return store
    .operationOf(tried)({ intent, key }, { deadline: '120s' })
    .then(
      (result) => ({ result, said: 'result' }),
      (error: unknown) => ({ said: codeOf(error) }),
    )
}

/** Sweeps until the key is free, finished, or left to a person. */
async function sweepUntilOver(store: StagedStore, tried: Tried): Promise<void> {
  const operation = store.operationOf(tried)
  const over = async (): Promise<boolean> => {
    const record = await recordOf(store, tried)
    if (record === undefined || record.state === 'succeeded' || record.state === 'failed') return true
    if (record.state === 'unknown' && record.dueAtMs === undefined) return true
    await store.db.sweep([operation as LeasedOperation<never, string>], {
      margin: marginMs,
      baseDelay: 20,
      capDelay: 200,
      limit: '120s',
    })
    return false
  }
  await until(over, 'the sweep is through with it')
}

/** A person asks the receiver, and says what it said. */
async function settle(stage: Stage, store: StagedStore, tried: Tried): Promise<string> {
  const [effect] = stage.sink.of(tried.intent).effects
  const which = { operation: store.operationOf(tried), scope: tests, key: tried.key }
  const how = { reason: 'the receiver was asked', actor: 'a person' }
  await store.db.settle(which, effect === undefined ? didNotHappen() : happened(effect), how)
  return effect === undefined ? 'a person: did not happen' : 'a person: happened'
}

/**
 * Continues an intent in this process: first as `by` says, then by a call, then by a person if it is held. In the end
 * it is called twice, and both calls get the one result.
 */
export async function takeUp(
  stage: Stage,
  store: StagedStore,
  tried: Tried,
  by: TakenUpBy,
  told: readonly ('unknown' | 'committed')[] = ['unknown'],
  earlier: readonly string[] = [],
): Promise<TakenUp> {
  const received = stage.sink.of(tried.intent)
  const before = { calls: received.calls, asks: received.asks }
  const had = await effectCount(stage, store, tried)
  if (by === 'sweep') await sweepUntilOver(store, tried)
  const state = (await recordOf(store, tried))?.state ?? 'absent'
  let first = await call(store, tried)
  const said = [by === 'sweep' ? `sweep: ${state}` : undefined, first.said].filter(Boolean).join('; ')
  const words: string[] = []
  if (received.asks > before.asks) words.push('asked')
  if (first.result === undefined) {
    words.push(await settle(stage, store, tried))
    first = await call(store, tried)
  }
  if (received.calls > before.calls) words.push(had > 0 ? 'sent again with its key' : 'sent')
  if (tried.operation === 'book' && had === 0) words.push('run')
  if (words.length === 0) words.push('replayed')
  const second = await call(store, tried)
  const results = [...earlier, first.result ?? first.said, second.result ?? second.said]
  const verdicts = [...told, 'committed', 'committed'] as const
  const effects = await effectsOf(stage, store, tried)
  const intents = [{ id: tried.intent, key: tried.key, verdicts, results }]
  const { findings } = checkEffects({
    intents,
    effects,
    healed: true,
    ...(tried.operation === 'book' ? { parts } : {}),
  })
  expect(findings, `${store.name} ${tried.operation}`).toEqual([])
  expect(await effectCount(stage, store, tried)).toBe(1)
  if (tried.operation !== 'book') expect(received.keys.size).toBe(1)
  return { said, settled: words.join(', then ') }
}
