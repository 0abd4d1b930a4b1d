// What a route adds to a description of an API (OpenAPI 3.1, also read as 3.0): the key's parameter, the problems by
// their status, and the fields of answers. As data, to be merged by whoever writes the description.

import { maxKeyLength, replayedHeader } from '../../identity/index.js'
import { type ProblemKind, type ProblemName, problemBase, problemKinds } from './problems.js'

/** What is to be described. The same words as the options of the route. */
export interface OpenApiOptions {
  /** Which kind of route it is. Default `'atomic'`. */
  readonly mode?: 'atomic' | 'leased'
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
  const { problems = problemBase } = options
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
      schemas: { Problem: schemaOf(problems) },
      responses: Object.fromEntries(
        statuses.map(([status, names]) => [`Problem${status}`, responseOf(status, names, problems)]),
      ),
    },
    operation: {
      parameters: [{ $ref: '#/components/parameters/IdempotencyKey' }],
      responses: Object.fromEntries(
        statuses.map(([status]) => [String(status), { $ref: `#/components/responses/Problem${status}` }]),
      ),
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
    },
  }
}

function responseOf(status: number, names: readonly ProblemName[], problems: string): OpenApiNode {
  const kinds = names.map((name): [ProblemName, ProblemKind] => [name, problemKinds[name]])
  const examples = kinds.map(([name, { title, detail, retryable }]) => [
    name,
    { value: { type: problems + name, title, status, detail, retryable } },
  ])
  const isRetryable = kinds.some(([, { retryable }]) => retryable)
  return {
    description: kinds.map(([, { title }]) => `${title}.`).join(' '),
    ...(isRetryable ? { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } } : {}),
    content: {
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        examples: Object.fromEntries(examples),
      },
    },
  }
}
