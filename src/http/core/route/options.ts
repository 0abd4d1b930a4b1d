// Options of a route: who calls, what is bound to a key, and every default of the layer, to be changed one by one.

import type { CallOptions, LeasedOptions, OperationOptions, Recover, Recoverable } from '../../../idempotency/index.js'
import type { FieldRule, KeyFieldOptions } from '../../../identity/index.js'
import type { Duration, StandardSchema } from '../../../kernel/index.js'
import type { TransactionOptions } from '../../../transaction/index.js'
import type { Answer, Answered } from '../answer/answer.js'
import type { AnswerJson, storesStatus } from '../answer/stored.js'
import type { Problem } from '../problems.js'
import type { HttpRequest } from '../request/http-request.js'
import type { CauseLog } from './causes.js'
import type { Arrival } from './handler.js'
import type { Principal } from './principal.js'

/** The options that a route hands on to its operation as they are. */
export const operationNames = [
  'window',
  'retryHorizon',
  'oldestKey',
  'duplicates',
  'wait',
  'waiters',
  'reversibility',
  'mintedBy',
] as const

// What a route restates has another default, or is about answers; its type is the operation's own.
type OperationTypes = Required<OperationOptions<never, AnswerJson> & CallOptions>

/** Makes the input of a handler of a request. */
export type Parse<Native, Input> = (request: HttpRequest, native: Native) => Parsed<Input> | Promise<Parsed<Input>>

/**
 * `Input`, written so that the compiler looks at it last when it infers that: a schema that can also be called, as
 * those of ArkType can, tells the input by its schema and not by what a call returns.
 */
// biome-ignore lint/complexity/noBannedTypes: every value but null and undefined.
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is a parse, too.
export type Parsed<Input> = Input & ({} | null | undefined | void)

/**
 * Options of all routes. `Native` is the framework's own request, `Input` what `parse` makes of one, `Who` what
 * `principal` returns.
 */
export interface RouteOptions<Native, Input, Who extends Principal = Principal>
  extends Partial<Pick<OperationOptions<never, never>, (typeof operationNames)[number]>> {
  /**
   * Names the route in its store: 1 to 128 letters, digits and `_ . : / -`, a letter first. It is part of what a key is
   * remembered under: keep it.
   */
  readonly name: string
  /**
   * On whose behalf a request is made, as authentication found out before. Mandatory: with method and route it says who
   * may share a key; without it a stranger with the same key would get somebody else's answer.
   */
  readonly principal: (native: Native, request: HttpRequest) => Who | Promise<Who>
  /**
   * Reads what the handler needs from the request, before anything is claimed, so that the refusal of a wrong shape is
   * never stored: throw `invalid(400, …)`. Called again for every further run of the handler. Or a schema of Standard
   * Schema (Zod, Valibot, ArkType) for a JSON body: the input is what it gives back, and what it finds wrong becomes
   * `errors` of the 400. Default: the handler reads the request by itself.
   */
  readonly parse?: Parse<Native, Input> | StandardSchema<Input>
  /**
   * Whether a key is required. Default true. Where it is not, a request without one is carried out as if there were no
   * layer.
   */
  readonly required?: boolean
  /** The methods whose keys count; for others the field is ignored. Default POST, PUT, PATCH and DELETE. */
  readonly methods?: readonly string[]
  /** How the key is read. Default: `Idempotency-Key`, 1 to 255 visible ASCII characters, quoted or bare. */
  readonly key?: KeyFieldOptions & { readonly header?: string }
  /** Which fields of a JSON body count when a repeat is compared with the first request. Default: all. */
  readonly fields?: FieldRule
  /** The most bytes of a request body. Default 1 MiB. */
  readonly mostBodyBytes?: number
  /** How long an answer is remembered, counted from completion. Default `'24h'`. */
  readonly window?: OperationTypes['window']
  /** What a duplicate does while the first one is under way. Default `'refuse'`: 409. */
  readonly duplicates?: OperationTypes['duplicates']
  /** How many duplicates of one key may wait in this process; one more is refused with 409. Default 1,000. */
  readonly waiters?: OperationTypes['waiters']
  /**
   * Whether answers of a status from 400 to 499 are stored: true or false, asked once for each of them when the route
   * is written. A success (2xx, 3xx) always is, since its effect commits with it; a 5xx never. Default
   * {@link storesStatus}.
   */
  readonly stores?: (status: number) => boolean
  /** Fields that are repeated beyond `replayedFields`. Default: none. */
  readonly replayHeaders?: readonly string[]
  /** The most bytes of an answer's body that are kept. A larger one leaves a tombstone. Default 256 KiB. */
  readonly largestAnswer?: number
  /**
   * How answers are stored, for example `encrypted({ … })`. Default: status and fields as JSON, and the body as it is.
   */
  readonly codec?: OperationTypes['codec']
  /** Codecs of earlier versions; what Reprise stores by default can be read in any case. Default: none. */
  readonly earlierCodecs?: OperationTypes['earlierCodecs']
  /**
   * How long a request may take, from its arrival at the route on, its upload included; `Reprise-Deadline-Ms` can only
   * shorten it. Default: the domain's deadline, for what comes after the upload.
   */
  readonly deadline?: OperationTypes['deadline']
  /** What is taken off the caller's deadline for the way back. Default `'50ms'`. */
  readonly wayBack?: Duration
  /**
   * Whether a caller is believed when it says that it repeats by itself (`Reprise-Retry-Owner`). Default: nobody is.
   */
  readonly trusts?: (native: Native, request: HttpRequest) => boolean
  /**
   * What the `type` of problems begins with, such as `'https://docs.example.com/problems/'`. Default
   * `'urn:reprise:problem:'`.
   */
  readonly problems?: string
  /**
   * Shapes refusals for clients that expect another shape than a problem (RFC 9457), such as `{ error: { … } }`. Fields
   * of the problem that the answer does not set, such as `Retry-After`, are kept. An answer below 400, or none, is not
   * taken: the problem leaves. Default: the problem.
   */
  readonly refusal?: (problem: Problem) => Answered
  /**
   * Hears why requests are refused with a 5xx, once a minute for each kind of cause. Default: a warning of the process
   * (`process.emitWarning`).
   */
  readonly log?: CauseLog
  /** How many remembered keys a caller may have on this route; one more is refused with 429. Default: any number. */
  readonly liveKeys?: number
  /**
   * Makes an answer of an error that the handler threw, for frameworks with exceptions of their own. Asked again when
   * that answer is not stored. Default: only `AnswerError` is one.
   */
  readonly answerOf?: (error: unknown) => Answered | undefined
  /** Who mints the keys, for an audit. Default `'client'`. */
  readonly mintedBy?: OperationTypes['mintedBy']
}

/** Options of an atomic route. */
export interface AtomicRouteOptions<Native, Input, Who extends Principal = Principal>
  extends RouteOptions<Native, Input, Who>,
    TransactionOptions {}

/**
 * Options of a leased route. One that does not say what is done where its effect may have happened does not compile.
 */
export type LeasedRouteOptions<Native, Input, Who extends Principal = Principal> = RouteOptions<Native, Input, Who> &
  Pick<
    LeasedOptions<Arrival<Native, Input>, Answer, 'answer'>,
    'margin' | 'leftForCall' | 'classify' | 'lookAfter' | 'foreignLayers'
  > &
  Recoverable & {
    /**
     * What is done where the effect may have happened: `rerunKeyed(window)`, `resolve(fn)` or `hold()`. What `fn` finds
     * out is an answer, as a handler would return it: `happened(reply(201, …))`; the request it gets is the one that
     * asks, and undefined in a sweep. Mandatory unless the effect is declared `repeatable`.
     */
    readonly recover?: Recover<Arrival<Native, Input>, Answered | AnswerJson, 'answer'>
    /** How long a claim lives without a heartbeat. Default `'30s'`. */
    readonly lease?: Duration
    /**
     * When a request is answered. `'sync'`: when its work has ended. `'async'`: with 202 and a `Location` as soon as
     * its claim is durable; the work goes on behind it, and the route that is mounted at the `Location` tells how it
     * ended. Default `'sync'`.
     */
    readonly respond?: 'sync' | 'async'
    /**
     * `respond: 'async'`: where the status of a request's work is found; the last part of its path is `id`. Default:
     * the path of the request, `/work/` and `id`.
     */
    readonly location?: (id: string, native: Native, request: HttpRequest) => string
    /**
     * `respond: 'async'`: how long the work may take. The deadline of the request, and its caller's, only count until
     * there is a claim. Default `'1h'`.
     */
    readonly workLimit?: Duration
    /** `respond: 'async'`: the longest that a request for the status may wait for the end. Default `'30s'`. */
    readonly statusWait?: Duration
  }
