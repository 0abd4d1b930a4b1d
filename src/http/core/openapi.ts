// What a route adds to a description of an API (OpenAPI 3.1, also read as 3.0): the key's parameter, the problems by
// their status, and the fields of answers. As data, to be merged by whoever writes the description.

import { maxKeyLength, replayedHeader } from '../../identity/index.js'
import { type Answered, answerOf } from './answer/answer.js'
import { type Problem, type ProblemName, problemBase, problemKinds, problemOf } from './problems.js'

/** What is to be described. The same words as the options of the route. */
export interface OpenApiOptions {
  /** Which kind of route it is. Default `'atomic'`. */
  readonly mode?: 'atomic' | 'leased'
  /** When a leased route answers; `'async'`: with 202, and its work goes on. Default `'sync'`. */
  readonly respond?: 'sync' | 'async'
  /** Whether a key is required. Default true. */
  readonly required?: boolean
  /** How the key is read. Default: `Idempotency-Key`, 1 to 255 characters. */
  readonly key?: { readonly header?: string; readonly minLength?: number; readonly maxLength?: number }
  /** Whether keys can be too old. Default: no. */
  readonly oldestKey?: unknown
  /** Whether a caller can have too many keys. Default: no. */
  readonly liveKeys?: unknown
  /** What the `type` of problems begins with. Default as for routes. */
  readonly problems?: string
  /** The shape of refusals. Answers made by `reply` are shown as examples. Default: a problem. */
  readonly refusal?: (problem: Problem) => Answered
}

/** A piece of JSON. */
export type OpenApiNode = { readonly [name: string]: unknown }

/** What is to be merged into a description. */
export interface OpenApiFragment {
  /** For `components` of the description. */
  readonly components: {
    readonly parameters: OpenApiNode
    readonly headers: OpenApiNode
    readonly schemas: OpenApiNode
    readonly responses: OpenApiNode
  }
  /**
   * For the operation of the route: `parameters` and `responses` that point to the components. Its own answers are not
   * among them.
   */
  readonly operation: { readonly parameters: readonly OpenApiNode[]; readonly responses: OpenApiNode }
}

/** Statuses that a problem has beside the usual one. */
const alsoWith: Partial<Record<ProblemName, readonly number[]>> = { 'outcome-unknown': [500], 'record-unusable': [503] }

/** Describes what the layer adds to a route. */
export function openApiFragment(options: OpenApiOptions = {}): OpenApiFragment {
  const { problems = problemBase, refusal } = options
  const isAsync = options.respond === 'async'
  const byStatus = new Map<number, ProblemName[]>()
  for (const name of namesFor(options)) {
    for (const status of [problemKinds[name].status, ...(alsoWith[name] ?? [])]) {
      byStatus.set(status, [...(byStatus.get(status) ?? []), name])
    }
  }
  const statuses = [...byStatus].sort(([left], [right]) => left - right)
  return {
    components: {
      parameters: { IdempotencyKey: parameterOf(options) },
      headers,
      schemas: refusal === undefined ? { Problem: schemaOf(problems) } : {},
      responses: {
        ...(isAsync ? { WorkAccepted: accepted } : {}),
        ...Object.fromEntries(
          statuses.map(([status, names]) => {
            const kinds = names.map((name) => problemOf(name, { status, base: problems }))
            return [`Problem${status}`, responseOf(kinds, refusal)]
          }),
        ),
      },
    },
    operation: {
      parameters: [{ $ref: '#/components/parameters/IdempotencyKey' }],
      responses: {
        ...(isAsync ? { 202: { $ref: '#/components/responses/WorkAccepted' } } : {}),
        ...Object.fromEntries(
          statuses.map(([status]) => [String(status), { $ref: `#/components/responses/Problem${status}` }]),
        ),
      },
    },
  }
}

function namesFor({ mode = 'atomic', required = true, oldestKey, liveKeys }: OpenApiOptions): readonly ProblemName[] {
  const isAbsent: Partial<Record<ProblemName, boolean>> = {
    'key-missing': !required,
    'key-too-old': oldestKey === undefined,
    'method-not-allowed': mode === 'atomic',
    // Handlers answer with them, where they check preconditions.
    'precondition-failed': true,
    'precondition-required': true,
    'too-many-keys': liveKeys === undefined,
    // Answered by the status of work.
    'work-not-found': true,
  }
  return (Object.keys(problemKinds) as ProblemName[]).filter((name) => isAbsent[name] !== true)
}

function parameterOf({ required = true, key = {} }: OpenApiOptions): OpenApiNode {
  const { header = 'Idempotency-Key', minLength = 1, maxLength = maxKeyLength } = key
  return {
    name: header,
    in: 'header',
    required,
    description:
      'Names the intent: the same for every repeat of this request, another one for every other. Visible ASCII, bare or as a quoted string.',
    // Quotes and escapes come on top of the key.
    schema: { type: 'string', minLength, maxLength: maxLength * 2 + 2 },
    example: '"0b5a1f0e-8a6f-4c8e-9a57-0d6f0d6b7c11"',
  }
}

const headers: OpenApiNode = {
  IdempotentReplayed: {
    description: `${replayedHeader.name}: true where the answer is repeated from memory; absent where the request was carried out.`,
    schema: { type: 'string', enum: ['true'] },
  },
  RetryAfter: {
    description: 'When to repeat the request with the same key, in seconds.',
    schema: { type: 'integer', minimum: 0 },
  },
}

const accepted: OpenApiNode = {
  description: 'The work goes on. Location says where its status is; the same while it does, the outcome after it.',
  headers: {
    Location: { description: 'Where the status of the work is.', schema: { type: 'string', format: 'uri-reference' } },
    'Retry-After': { $ref: '#/components/headers/RetryAfter' },
  },
  content: {
    'application/json': {
      schema: {
        type: 'object',
        required: ['state'],
        properties: { state: { type: 'string', enum: ['working'] }, location: { type: 'string' } },
      },
    },
  },
}

function schemaOf(problems: string): OpenApiNode {
  return {
    type: 'object',
    description: 'A refusal (RFC 9457).',
    required: ['type', 'title', 'status', 'retryable'],
    properties: {
      type: { type: 'string', format: 'uri-reference', description: `Which problem it is; begins with ${problems}` },
      title: { type: 'string' },
      status: { type: 'integer', minimum: 400, maximum: 599 },
      detail: { type: 'string' },
      retryable: { type: 'boolean', description: 'Whether the same request, with the same key, may succeed later.' },
      heldSinceMs: {
        type: 'integer',
        description: 'Of in-flight: since when the request that has the key is at work, in ms since 1970, where known.',
      },
      errors: {
        type: 'array',
        description: 'Of request-invalid: what is wrong with the parts of the body, where a schema says so.',
        items: {
          type: 'object',
          required: ['detail', 'pointer'],
          properties: { detail: { type: 'string' }, pointer: { type: 'string' } },
        },
      },
    },
  }
}

function responseOf(kinds: readonly Problem[], refusal: OpenApiOptions['refusal']): OpenApiNode {
  const isRetryable = kinds.some(({ retryable }) => retryable)
  return {
    description: kinds.map(({ title }) => `${title}.`).join(' '),
    ...(isRetryable ? { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } } : {}),
    content:
      refusal === undefined ? { 'application/problem+json': problemContent(kinds) } : shapedContent(kinds, refusal),
  }
}

function problemContent(kinds: readonly Problem[]): OpenApiNode {
  const examples = kinds.map(({ name, retryAfterSeconds: _, ...value }) => [name, { value }])
  return { schema: { $ref: '#/components/schemas/Problem' }, examples: Object.fromEntries(examples) }
}

// The body of a Response cannot be looked into here.
function shapedContent(kinds: readonly Problem[], refusal: NonNullable<OpenApiOptions['refusal']>): OpenApiNode {
  const byType = new Map<string, Record<string, OpenApiNode>>()
  for (const kind of kinds) {
    const { headers, body } = answerOf(refusal(kind))
    if (typeof body !== 'string') continue
    const type = headers.find(([name]) => name === 'content-type')?.[1].replace(/;.*$/, '') ?? 'text/plain'
    const value: unknown = /[/+]json$/.test(type) ? JSON.parse(body) : body
    byType.set(type, { ...byType.get(type), [kind.name]: { value } })
  }
  return Object.fromEntries([...byType].map(([type, examples]) => [type, { examples }]))
}
