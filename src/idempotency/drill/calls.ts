// The calls of operations where their domain has a drill: those that it draws are made again after their answer.

import type { DrilledCall, Repeated } from '../../drill/index.js'
import { builtin, canonicalJsonOf } from '../../kernel/index.js'
import { privateCopy } from '../call-identity.js'
import type { CallOptions, OperationAnswers } from '../definition.js'
import type { OperationDomain } from '../domain.js'
import type { Outcome } from '../outcome.js'
import type { OperationSettings } from '../settings.js'

/** An operation, as far as it is repeated. */
interface Drillable {
  readonly settings: Pick<OperationSettings<never>, 'name' | 'windowMs'>
  readonly domain: OperationDomain
  readonly answers: OperationAnswers
}

/** How calls of an operation are repeated that stand for something else, such as requests. */
export interface DrillStyle<Input> {
  readonly kind: DrilledCall['kind']
  /** The input as it would come again, or the code or status with which that would be refused. */
  readonly again: (input: Input) => Promise<{ readonly input: Input } | { readonly refused: string }>
  /** What a caller is told of a value, to be compared; undefined: it is not kept whole. */
  readonly told: (value: unknown) => unknown
  /** What `effects` of the drill is given. */
  readonly shown: (input: Input) => unknown
}

const usual: DrillStyle<unknown> = {
  kind: 'operation',
  again: async (input) => ({ input }),
  told: (value) => ({ value }),
  shown: (input) => input,
}

const styles = new WeakMap<OperationAnswers, DrillStyle<unknown>>()

/** Says how the calls of an operation are repeated by a drill, where its domain has one. */
export function drillAs<Input>(answers: OperationAnswers, style: DrillStyle<Input>): void {
  styles.set(answers, style as DrillStyle<unknown>)
}

/** The way to carry calls out, with a share of them repeated; the very same where there is no drill. */
export function drilled<Input, End extends Outcome<unknown>>(
  operation: Drillable,
  carryOut: (input: Input, options?: CallOptions) => Promise<End>,
): typeof carryOut {
  if (operation.domain.drill === undefined) return carryOut
  return (input, options) => repeatedLater(operation, input, () => carryOut(input, options), carryOut)
}

/**
 * Carries a call out, and has it repeated later where a drill draws it.
 *
 * @param again Carries out the repeat.
 */
export async function repeatedLater<Input, End extends Outcome<unknown>>(
  { settings, domain, answers }: Drillable,
  given: Input,
  first: () => Promise<End>,
  again: (input: Input) => Promise<Outcome<unknown>>,
): Promise<End> {
  const { drill, clock } = domain
  if (drill === undefined || !drill.draws()) return first()
  const style = (styles.get(answers) ?? usual) as DrillStyle<Input>
  const event = { kind: style.kind, domain: domain.name, name: settings.name }
  // Whatever happens to the input from here on, this is what is repeated.
  const input = privateCopy(given)
  let end: End
  try {
    end = await first()
  } catch (error) {
    drill.skip(event, 'no-outcome', error)
    throw error
  }
  // As text, since the caller may change what it gets.
  const told = textOf(end, style.told)
  if (told === undefined) {
    drill.skip(event, 'not-kept')
    return end
  }
  const repeat = async (): Promise<Repeated> => {
    const next = await style.again(input)
    return 'refused' in next ? next : { told: textOf(await again(next.input), style.told) ?? 'not kept' }
  }
  const call = { ...event, input: style.shown(input) }
  drill.repeat({ call, owner: settings, clock, rememberedMs: settings.windowMs, first: told, again: repeat })
  return end
}

function textOf(end: Outcome<unknown>, toldOf: (value: unknown) => unknown): string | undefined {
  const { outcome } = end
  const told = toldOf(outcome === 'succeeded' ? end.value : end.failure.data)
  if (told === undefined) return undefined
  const value = [outcome, outcome === 'failed' ? end.failure.code : '', told]
  try {
    return canonicalJsonOf(value)
  } catch {
    // A codec may give what JSON cannot hold.
    const util = builtin<typeof import('node:util')>('node:util')
    return util?.inspect(value, { depth: 20, sorted: true, maxArrayLength: null, maxStringLength: null })
  }
}
