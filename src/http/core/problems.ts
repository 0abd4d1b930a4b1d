// Refusals, as problems (RFC 9457): a closed list, each with its status, and whether repeating the request as it is can
// help.

import { defined } from '../../kernel/index.js'
import { type Answer, type ProblemError, reply } from './answer/answer.js'

/** A kind of problem. */
export interface ProblemKind {
  /** The status it is usually answered with. */
  readonly status: number
  /** What it is, in a few words; the same every time. */
  readonly title: string
  /** What to do about it. */
  readonly detail: string
  /** Whether the same request, with the same key, may succeed later. */
  readonly retryable: boolean
}

/** All kinds of problems, by the last part of their `type`. */
export const problemKinds = {
  'answer-not-kept': {
    status: 410,
    title: 'The answer was not kept',
    detail: 'The request was carried out, and its answer was too large to keep. It is not carried out again.',
    retryable: false,
  },
  'body-too-large': {
    status: 413,
    title: 'The request body is too large',
    detail: 'The body has more bytes than this route accepts. Nothing was carried out.',
    retryable: false,
  },
  'deadline-exceeded': {
    status: 503,
    title: 'The time was up',
    detail:
      'The request could not be finished in the time that it was given. Nothing was carried out; repeat it with the same key.',
    retryable: true,
  },
  'in-flight': {
    status: 409,
    title: 'A request is outstanding for this Idempotency-Key',
    detail: 'A request with the same key is being worked on. Repeat this one, with the same key, after a while.',
    retryable: true,
  },
  'key-invalid': {
    status: 400,
    title: 'Idempotency-Key is not valid',
    detail:
      'The Idempotency-Key field holds one key of visible ASCII, quoted or bare, of the length that this route accepts. Nothing was carried out.',
    retryable: false,
  },
  'key-missing': {
    status: 400,
    title: 'Idempotency-Key is missing',
    detail:
      'This route needs an Idempotency-Key field that names the intent: the same for every repeat, another one for every other intent.',
    retryable: false,
  },
  'key-reused': {
    status: 422,
    title: 'Idempotency-Key is already used',
    detail:
      'The key was used for a different request before. Send the original request again, or this one under a key of its own.',
    retryable: false,
  },
  'key-too-old': {
    status: 412,
    title: 'The key is too old',
    detail:
      'The key says that it was minted longer ago than outcomes are remembered here. Find out what became of the first request before you mint another.',
    retryable: false,
  },
  'method-not-allowed': {
    status: 405,
    title: 'The method is not allowed',
    detail: 'This route carries out only what has a key, and takes keys with the methods that Allow names.',
    retryable: false,
  },
  'outcome-unknown': {
    status: 409,
    title: 'The outcome is not known',
    detail:
      'The request may have been carried out, and nothing says whether yet. It is not carried out again; repeat it, with the same key, to learn the outcome.',
    retryable: true,
  },
  'precondition-failed': {
    status: 412,
    title: 'The resource has changed',
    detail:
      'If-Match or If-None-Match does not hold for the resource as it is now. Nothing was carried out; read it, and decide again.',
    retryable: false,
  },
  'precondition-required': {
    status: 428,
    title: 'A precondition is required',
    detail:
      'Say which version of the resource the request is about, with If-Match, or If-None-Match: * for one that must not exist yet.',
    retryable: false,
  },
  'record-unusable': {
    status: 500,
    title: 'The record of the key cannot be used',
    detail: 'What is stored under the key cannot be read here. The request is not carried out again.',
    retryable: false,
  },
  'request-invalid': {
    status: 400,
    title: 'The request is not valid',
    detail: 'The request does not have the shape that this route expects. Nothing was carried out.',
    retryable: false,
  },
  'sequence-fenced': {
    status: 409,
    title: 'The epoch is over',
    detail:
      'Another epoch of the producer is open, or none is. Nothing was carried out; open the next epoch, and begin at 1.',
    retryable: false,
  },
  'sequence-gap': {
    status: 409,
    title: 'A number is missing',
    detail:
      'A number of the producer that comes before this one has not arrived. Nothing was carried out; send that first.',
    retryable: false,
  },
  'sequence-invalid': {
    status: 400,
    title: 'Reprise-Sequence is not valid',
    detail:
      'The Reprise-Sequence field holds one number of a producer, such as "shop-1";epoch=7;number=3. Nothing was carried out.',
    retryable: false,
  },
  'sequence-missing': {
    status: 400,
    title: 'Reprise-Sequence is missing',
    detail: 'This route needs a Reprise-Sequence field that says which number of which producer this is.',
    retryable: false,
  },
  'sequence-reused': {
    status: 422,
    title: 'The number is already used',
    detail:
      'The number was used for a different request before. Send the original request again, or this one under the next.',
    retryable: false,
  },
  'store-not-migrated': {
    status: 500,
    title: 'The tables of the store are missing',
    detail:
      'The tables of Reprise are not in the store of this route, or older than this version. Nothing was carried out. The service has to run db.migrate() in code, or reprise migrate on the command line.',
    retryable: false,
  },
  'store-unavailable': {
    status: 503,
    title: 'The store is not available',
    detail:
      'The store could not be reached, or took too long. Nothing was carried out; repeat the request with the same key.',
    retryable: true,
  },
  'too-many-keys': {
    status: 429,
    title: 'Too many keys',
    detail:
      'There are as many remembered keys for this caller as are allowed. Nothing was carried out; repeat the request with the same key later.',
    retryable: true,
  },
  unauthenticated: {
    status: 401,
    title: 'Nobody is named as the caller',
    detail: 'The request does not say on whose behalf it is made. Nothing was looked up or carried out.',
    retryable: false,
  },
  'work-not-found': {
    status: 404,
    title: 'There is no such work',
    detail:
      'No work of this caller is known here: it was never begun, it ended before anything was carried out, or it is forgotten. Repeat the request that began it, with its key.',
    retryable: false,
  },
} as const

/** The name of a kind of problem. */
export type ProblemName = keyof typeof problemKinds

/** What differs from the usual in one problem. */
export interface ProblemOptions {
  /** Another status than the usual one. */
  readonly status?: number
  /** Another detail than the usual one. Never anything that the caller sent. */
  readonly detail?: string
  /** Whether the same request may succeed later, where it is not as usual. */
  readonly retryable?: boolean
  /** When to come back, in whole seconds. Default for what may succeed later: 1. */
  readonly retryAfterSeconds?: number
  /** Since when the holder of the key works, in ms since 1970. Default: it is not said. */
  readonly heldSinceMs?: number
  /** What is wrong with the parts of the request. Default: it is not said. */
  readonly errors?: readonly ProblemError[]
  /** More fields. */
  readonly headers?: Readonly<Record<string, string>>
  /** What the type begins with, up to the name. Default {@link problemBase}. */
  readonly base?: string
}

/** What the `type` of a problem begins with unless a route says otherwise. */
export const problemBase = 'urn:reprise:problem:'

/** A refusal as data: the members of a problem (RFC 9457), the last part of its `type`, and when to come back. */
export interface Problem extends ProblemKind {
  readonly name: ProblemName
  readonly type: string
  /** When to come back, in whole seconds; absent where the same request will not succeed later. */
  readonly retryAfterSeconds?: number
  /** Of `in-flight`: since when the holder of the key works, in ms since 1970; absent where that is not known. */
  readonly heldSinceMs?: number
  /** Of `request-invalid`: what is wrong with the parts of the request, where a schema says so. */
  readonly errors?: readonly ProblemError[]
}

/** What is refused, with what differs from the usual. */
export function problemOf(name: ProblemName, options: ProblemOptions = {}): Problem {
  const kind: ProblemKind = problemKinds[name]
  const { status = kind.status, detail = kind.detail, retryable = kind.retryable, base = problemBase } = options
  const { heldSinceMs, errors } = options
  const more = defined({ heldSinceMs, errors })
  const facts = { name, type: base + name, title: kind.title, status, detail, retryable, ...more }
  return retryable ? { ...facts, retryAfterSeconds: options.retryAfterSeconds ?? 1 } : facts
}

/** A refusal as an answer: `application/problem+json`, never to be stored by caches. */
export function problem(name: ProblemName, options: ProblemOptions = {}): Answer {
  const { name: _, retryAfterSeconds, ...members } = problemOf(name, options)
  return reply(members.status, JSON.stringify(members), {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    'retry-after': retryAfterSeconds === undefined ? undefined : String(retryAfterSeconds),
    ...options.headers,
  })
}
