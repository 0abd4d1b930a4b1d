// A route with every default filled in, or refused: what all routes share, whatever holds the marker.

import type { OperationOptions, ValueCodec } from '../../../idempotency/index.js'
import { type KeyFieldOptions, parseKeyField, scope as scopeOf } from '../../../identity/index.js'
import { demandKnown, durationMs, isRepriseError, RepriseError } from '../../../kernel/index.js'
import { answerCodec, codecForBoth, earlierAnswerCodecs, fieldsToReplay, type StoredAnswer } from '../answer/stored.js'
import { problemBase } from '../problems.js'
import { ruleOf } from '../request/content.js'
import type { Arrival } from './arrival.js'
import { type RouteOptions, storesStatus } from './options.js'

/** A route, every default filled in. */
export interface RouteSettings {
  /** Whether a key is required. */
  readonly required: boolean
  /** The methods whose keys count. */
  readonly methods: ReadonlySet<string>
  /** The name of the key's field, in lower case. */
  readonly keyField: string
  /** How the key is read. */
  readonly keyOptions: KeyFieldOptions
  /** The most bytes of a request body. */
  readonly mostBodyBytes: number
  /** Whether answers of a status are stored. */
  readonly stores: (status: number) => boolean
  /** The fields that are repeated. */
  readonly replayed: ReadonlySet<string>
  /** The most bytes of an answer's body that are kept. */
  readonly largestAnswer: number
  /** How long a request may take, in ms; undefined: as the domain says. */
  readonly deadlineMs: number | undefined
  /** What is taken off the caller's deadline, in ms. */
  readonly wayBackMs: number
  /** What the `type` of problems begins with. */
  readonly problems: string
  /** How many remembered keys a caller may have; undefined: any number. */
  readonly liveKeys: number | undefined
}

const sharedNames: readonly string[] = [
  'name',
  'principal',
  'parse',
  'required',
  'methods',
  'key',
  'fields',
  'mostBodyBytes',
  'window',
  'retryHorizon',
  'oldestKey',
  'duplicates',
  'wait',
  'waiters',
  'stores',
  'replayHeaders',
  'largestAnswer',
  'codec',
  'earlierCodecs',
  'deadline',
  'wayBack',
  'trusts',
  'problems',
  'liveKeys',
  'answerOf',
  'reversibility',
  'mintedBy',
]

const usual = {
  mostBodyBytes: 1_048_576,
  largestAnswer: 262_144,
  wayBackMs: 50,
  waiters: 1_000,
  window: '24h',
} as const
const mostBytes = 16_777_216
const unsafeMethods = ['POST', 'PUT', 'PATCH', 'DELETE']

/** Fills in the defaults. Refuses with OPERATION_INVALID (`details.option` says which), SCOPE_MISSING or DURATION_INVALID. */
export function routeSettings<Native, Input>(
  options: RouteOptions<Native, Input>,
  modeNames: readonly string[],
): RouteSettings {
  if (typeof options !== 'object' || options === null) throw invalidOption('options', 'A route needs its options.')
  demandKnown(options, [...sharedNames, ...modeNames], 'options', 'OPERATION_INVALID')
  if (typeof options.principal !== 'function') {
    const message =
      'A route says on whose behalf a request is made: without it a stranger with the same key gets somebody else’s answer.'
    throw new RepriseError('SCOPE_MISSING', message)
  }
  for (const name of ['parse', 'stores', 'trusts', 'answerOf'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw invalidOption(name, 'It is a function.')
  }
  const { required = true, key = {}, stores = storesStatus, problems = problemBase, deadline } = options
  if (typeof required !== 'boolean') throw invalidOption('required', 'It is true or false.')
  if (typeof problems !== 'string' || !/^[\x21-\x7e]{1,500}$/.test(problems))
    throw invalidOption('problems', 'It is the beginning of an address.')
  const { header = 'Idempotency-Key', ...keyOptions } = keyOptionsOf(key)
  if (typeof header !== 'string' || !/^[A-Za-z0-9-]{1,64}$/.test(header))
    throw invalidOption('key', 'header is the name of a field.')
  return {
    required,
    methods: methodsOf(options.methods ?? unsafeMethods),
    keyField: header.toLowerCase(),
    keyOptions,
    mostBodyBytes: whole('mostBodyBytes', options.mostBodyBytes ?? usual.mostBodyBytes, mostBytes),
    stores: (status) => status < 500 && stores(status) === true,
    replayed: fieldsToReplay(options.replayHeaders ?? []),
    largestAnswer: whole('largestAnswer', options.largestAnswer ?? usual.largestAnswer, mostBytes),
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline, { minMs: 1 }),
    wayBackMs: options.wayBack === undefined ? usual.wayBackMs : durationMs(options.wayBack),
    problems,
    liveKeys: options.liveKeys === undefined ? undefined : whole('liveKeys', options.liveKeys, 1_000_000, 1),
  }
}

/** Refuses, where the route is written and not at its first request, what is no place to keep claims in, and what is no handler. */
export function demandParts(place: unknown, members: readonly string[], handler: unknown): void {
  const parts = Object(place) as Record<string, unknown>
  if (members.some((name) => parts[name] === undefined))
    throw invalidOption('db', 'The first argument is a store of Reprise, such as sqlite(…), postgres(…) or memory(…).')
  if (typeof handler !== 'function') throw invalidOption('handler', 'The third argument is a function.')
  // A handler as frameworks know it, with a response to write to: what it writes would leave before COMMIT.
  if (handler.length > 1)
    throw invalidOption('handler', 'It takes one argument, such as ({ request, input }), and returns its answer.')
}

/** What an operation is told of a route, in either mode. */
export function operationOptions<Native, Input>(
  options: RouteOptions<Native, Input>,
  settings: RouteSettings,
): Omit<OperationOptions<Arrival<Native, Input>, StoredAnswer, 'answer'>, never> {
  type Given = Arrival<Native, Input>
  const { name, retryHorizon, oldestKey, wait, reversibility, earlierCodecs = [] } = options
  const { codec = answerCodec } = options
  return {
    scope: ({ principal, method }: Given) => scopeOf(...principal, method, name),
    key: ({ key }: Given) => key as NonNullable<typeof key>,
    content: (arrival: Given) => arrival.content(),
    ...(options.fields === undefined ? {} : { fields: ruleOf(options.fields) }),
    window: options.window ?? usual.window,
    ...(retryHorizon === undefined ? {} : { retryHorizon }),
    ...(oldestKey === undefined ? {} : { oldestKey }),
    duplicates: options.duplicates ?? 'refuse',
    ...(wait === undefined ? {} : { wait }),
    waiters: options.waiters ?? usual.waiters,
    failures: ['answer'],
    codec: codecForBoth(codec),
    earlierCodecs: Array.isArray(earlierCodecs) ? readable(codec, earlierCodecs) : earlierCodecs,
    // What is kept is bounded by the bytes of a body; base64, escapes and fields come on top.
    largestOutcome: Math.min(67_108_864, settings.largestAnswer * 6 + 1_048_576),
    ...(reversibility === undefined ? {} : { reversibility }),
    mintedBy: options.mintedBy ?? 'client',
  }
}

/** The refusal of an option. */
export function invalidOption(option: string, message: string, ...cause: [unknown?]): RepriseError {
  return new RepriseError('OPERATION_INVALID', `The option ${option} of a route is not valid. ${message}`, {
    details: { option },
    ...(cause.length === 0 ? {} : { cause: cause[0] }),
  })
}

// What every request would be refused for is refused here.
function keyOptionsOf(key: NonNullable<RouteOptions<never, never>['key']>): typeof key {
  if (typeof key !== 'object' || key === null) throw invalidOption('key', 'It says how the field is read.')
  demandKnown(key, ['header', 'form', 'parameters', 'minLength', 'maxLength'], 'key', 'OPERATION_INVALID')
  const { header: _, ...options } = key
  try {
    parseKeyField([], options)
  } catch (error) {
    if (!isRepriseError(error, 'KEY_MISSING')) {
      throw invalidOption('key', 'Its limits or words are not those of a key field.', error)
    }
  }
  return key
}

function methodsOf(methods: readonly string[]): ReadonlySet<string> {
  const sound = Array.isArray(methods) && methods.length > 0 && methods.every((name) => unsafeMethods.includes(name))
  if (!sound) throw invalidOption('methods', `It lists some of ${unsafeMethods.join(', ')}; safe methods need no key.`)
  return new Set(methods)
}

function whole(option: string, value: number, most: number, least = 0): number {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return value
  throw invalidOption(option, `It is a whole number from ${least} to ${most}.`)
}

// What was stored before a codec of the user's own is read by ours.
function readable(
  codec: ValueCodec<StoredAnswer>,
  earlier: readonly ValueCodec<StoredAnswer>[],
): ValueCodec<StoredAnswer>[] {
  const names = [codec, ...earlier].map((one) => (Object(one) as Partial<ValueCodec<StoredAnswer>>).name)
  const ours = [answerCodec, ...earlierAnswerCodecs].filter(({ name }) => !names.includes(name))
  return [...earlier, ...ours].map(codecForBoth)
}
