// A route with every default filled in, or refused: what all routes share, whatever holds the marker.

import type { OperationOptions, ValueCodec } from '../../../idempotency/index.js'
import { type FieldRule, type KeyFieldOptions, parseKeyField } from '../../../identity/index.js'
import {
  defined,
  demandKnown,
  demandWhole,
  durationMs,
  isPromiseLike,
  isRepriseError,
  isStandardSchema,
  pick,
  RepriseError,
} from '../../../kernel/index.js'
import type { Answer } from '../answer/answer.js'
import {
  type AnswerJson,
  answerCodec,
  earlierAnswerCodecs,
  fieldsToReplay,
  jsonAndBody,
  storesStatus,
} from '../answer/stored.js'
import { problemBase } from '../problems.js'
import { contentRule } from '../request/content.js'
import { bodyBySchema } from '../request/schema.js'
import { type Arrival, arrivalIdentity, type HandlerSettings, thrownBy } from './handler.js'
import { operationNames, type RouteOptions } from './options.js'
import type { RefusalSettings } from './refusal.js'

/** A route, every default filled in. What is left undefined has no default. */
export interface RouteSettings<Native, Input>
  extends HandlerSettings<Native, Input>,
    Required<Pick<RouteOptions<Native, Input>, 'name' | 'principal' | 'required'>>,
    RefusalSettings,
    Pick<RouteOptions<Native, Input>, 'trusts' | 'liveKeys' | 'log'> {
  /** The methods whose keys count. */
  readonly methods: ReadonlySet<string>
  /** The name of the key's field, in lower case. */
  readonly keyField: string
  /** How the key is read. */
  readonly keyOptions: KeyFieldOptions
  readonly mostBodyBytes: number
  /** Which parts of a request's content count; undefined: all. */
  readonly fieldRule: FieldRule | undefined
  /** The fields that are repeated. */
  readonly replayed: ReadonlySet<string>
  /** How long a request may take, in ms; undefined: as the domain says. */
  readonly deadlineMs: number | undefined
  /** What is taken off the caller's deadline, in ms. */
  readonly wayBackMs: number
}

const sharedNames = [
  'name',
  'principal',
  'parse',
  'required',
  'methods',
  'key',
  'fields',
  'mostBodyBytes',
  ...operationNames,
  'stores',
  'replayHeaders',
  'largestAnswer',
  'codec',
  'earlierCodecs',
  'deadline',
  'wayBack',
  'trusts',
  'problems',
  'refusal',
  'log',
  'liveKeys',
  'answerOf',
] as const satisfies readonly (keyof RouteOptions<never, never>)[]

const usual = { mostBodyBytes: 1_048_576, largestAnswer: 262_144, wayBackMs: 50 } as const
const mostBytes = 16_777_216
const unsafeMethods = ['POST', 'PUT', 'PATCH', 'DELETE']

/**
 * Fills in the defaults. Refuses with OPERATION_INVALID (`details.option` says which), SCOPE_MISSING or
 * DURATION_INVALID.
 */
export function routeSettings<Native, Input>(
  options: RouteOptions<Native, Input>,
  modeNames: readonly string[],
): RouteSettings<Native, Input> {
  if (typeof options !== 'object' || options === null) throw invalidOption('options', 'A route needs its options.')
  demandKnown(options, [...sharedNames, ...modeNames], 'options', 'OPERATION_INVALID')
  if (typeof options.principal !== 'function') {
    const message =
      'A route says on whose behalf a request is made: without it a stranger with the same key gets somebody else’s answer.'
    throw new RepriseError('SCOPE_MISSING', message)
  }
  for (const name of ['stores', 'trusts', 'answerOf', 'refusal', 'log'] as const) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw invalidOption(name, 'It is a function.')
  }
  const { required = true, key = {}, problems = problemBase, deadline, liveKeys } = options
  if (typeof required !== 'boolean') throw invalidOption('required', 'It is true or false.')
  if (typeof problems !== 'string' || !/^[\x21-\x7e]{1,500}$/.test(problems))
    throw invalidOption('problems', 'It is the beginning of an address.')
  checkKeyOptions(key)
  const { header = 'Idempotency-Key', ...keyOptions } = key
  if (liveKeys !== undefined) whole('liveKeys', liveKeys, 1_000_000, 1)
  return {
    ...pick(options, ['name', 'principal', 'trusts', 'answerOf', 'liveKeys', 'refusal', 'log']),
    ...defined({ parse: parseOf(options.parse) }),
    storedRefusals: storedRefusals(options.stores ?? storesStatus),
    required,
    problems,
    methods: methodsOf(options.methods ?? unsafeMethods),
    keyField: header.toLowerCase(),
    keyOptions,
    fieldRule: options.fields === undefined ? undefined : contentRule(options.fields),
    mostBodyBytes: whole('mostBodyBytes', options.mostBodyBytes ?? usual.mostBodyBytes, mostBytes),
    replayed: fieldsToReplay(options.replayHeaders ?? []),
    largestAnswer: whole('largestAnswer', options.largestAnswer ?? usual.largestAnswer, mostBytes),
    deadlineMs: deadline === undefined ? undefined : durationMs(deadline, { minMs: 1, option: 'deadline' }),
    wayBackMs: options.wayBack === undefined ? usual.wayBackMs : durationMs(options.wayBack, { option: 'wayBack' }),
  }
}

// A schema may be a function, too.
function parseOf<Native, Input>(
  parse: RouteOptions<Native, Input>['parse'],
): HandlerSettings<Native, Input>['parse'] | undefined {
  if (isStandardSchema(parse)) return (request) => bodyBySchema(request, parse)
  if (parse === undefined || typeof parse === 'function') return parse
  throw invalidOption('parse', 'It is a function, or a schema with the ~standard interface (standardschema.dev).')
}

/** Refuses a first argument that is not a store, or a handler that is not a function, when the route is defined. */
export function demandParts(place: unknown, members: readonly string[], handler: unknown): void {
  const parts = Object(place) as Record<string, unknown>
  if (members.some((name) => parts[name] === undefined))
    throw invalidOption('db', 'The first argument is a store of Reprise, such as sqlite(…), postgres(…) or memory(…).')
  if (typeof handler !== 'function') throw invalidOption('handler', 'The third argument is a function.')
  // A handler as frameworks know it, with a response to write to: what it writes would leave before COMMIT.
  if (handler.length > 1)
    throw invalidOption('handler', 'It takes one argument, such as ({ request, input }), and returns its answer.')
}

/** The options of a route's operation, in either mode. */
export function operationOptions<Native, Input>(
  options: RouteOptions<Native, Input>,
  settings: RouteSettings<Native, Input>,
): OperationOptions<Arrival<Native, Input>, Answer, 'answer'> & { readonly codec: ValueCodec<Answer> } {
  const { codec = jsonAndBody, earlierCodecs = [] } = options
  return {
    window: '24h',
    duplicates: 'refuse',
    waiters: 1_000,
    mintedBy: 'client',
    ...pick(options, operationNames),
    ...arrivalIdentity<Native, Input>(options.name),
    ...defined({ fields: settings.fieldRule }),
    failures: ['answer'],
    codec: options.codec === undefined ? answerCodec(jsonAndBody, settings) : usersCodec(codec, settings),
    earlierCodecs: readableCodecs(codec, earlierCodecs, settings),
    // What is kept is bounded by the bytes of a body; base64, escapes and fields come on top.
    largestOutcome: Math.min(67_108_864, settings.largestAnswer * 6 + 1_048_576),
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
function checkKeyOptions(key: NonNullable<RouteOptions<never, never>['key']>): void {
  if (typeof key !== 'object' || key === null) throw invalidOption('key', 'It says how the field is read.')
  demandKnown(key, ['header', 'form', 'parameters', 'minLength', 'maxLength'], 'key', 'OPERATION_INVALID')
  const { header = 'Idempotency-Key', ...options } = key
  if (typeof header !== 'string' || !/^[A-Za-z0-9-]{1,64}$/.test(header))
    throw invalidOption('key', 'header is the name of a field.')
  try {
    parseKeyField([], options)
  } catch (error) {
    if (!isRepriseError(error, 'KEY_MISSING')) {
      throw invalidOption('key', 'Its limits or words are not those of a key field.', error)
    }
  }
}

function methodsOf(methods: readonly string[]): ReadonlySet<string> {
  const sound = Array.isArray(methods) && methods.length > 0 && methods.every((name) => unsafeMethods.includes(name))
  if (!sound) throw invalidOption('methods', `It lists some of ${unsafeMethods.join(', ')}; safe methods need no key.`)
  return new Set(methods)
}

// Asked here and not per answer: a promise or any other word in place of true or false would be taken for a yes.
function storedRefusals(stores: (status: number) => boolean): ReadonlySet<number> {
  const stored = new Set<number>()
  for (let status = 400; status < 500; status += 1) {
    const answer: unknown = stores(status)
    if (typeof answer !== 'boolean') {
      if (isPromiseLike(answer)) answer.then(undefined, () => undefined)
      throw invalidOption(
        'stores',
        `It answers true or false, and not a promise; for ${status} it gave something else.`,
      )
    }
    if (answer) stored.add(status)
  }
  return stored
}

function whole(option: 'liveKeys' | 'mostBodyBytes' | 'largestAnswer', value: number, most: number, least = 0): number {
  return demandWhole(value, least, most, (why) => invalidOption(option, why))
}

// A codec of the user's own whose errors are known as the user's: they are none of the store.
function usersCodec<Native, Input>(
  codec: ValueCodec<AnswerJson>,
  settings: RouteSettings<Native, Input>,
): ValueCodec<Answer> {
  const inner = answerCodec(codec, settings)
  if (typeof Object(inner).encode !== 'function') return inner
  return {
    ...inner,
    async encode(answer, context) {
      try {
        return await inner.encode(answer, context)
      } catch (error) {
        throw thrownBy('codec', error)
      }
    },
  }
}

// What was stored before a codec of the user's own is read by ours.
function readableCodecs<Native, Input>(
  codec: ValueCodec<AnswerJson>,
  earlier: readonly ValueCodec<AnswerJson>[],
  settings: RouteSettings<Native, Input>,
): readonly ValueCodec<Answer>[] {
  // What is no list is refused with the operation.
  if (!Array.isArray(earlier)) return earlier as never
  const names = [codec, ...earlier].map((one) => (Object(one) as Partial<ValueCodec<AnswerJson>>).name)
  const ours = [jsonAndBody, ...earlierAnswerCodecs].filter(({ name }) => !names.includes(name))
  return [...earlier, ...ours].map((one) => answerCodec(one, settings))
}
