// Tools of MCP whose calls take effect once: what an agent repeats, since it heard nothing, gets the first result.

import { type Key, printKeyField } from '../../identity/index.js'
import { canonicalJsonOf, defined, isWellFormed, RepriseError, sha256 } from '../../kernel/index.js'
import {
  type Answer,
  type AtomicRouteOptions,
  atomicRoute,
  limited,
  type Principal,
  type PrincipalNames,
  type RouteDomain,
  reply,
} from '../core/index.js'

/** What the server of MCP passes with a call: the parts that are read here. The SDK's `extra` is one. */
export interface ToolExtra {
  /** What the client sent beside the arguments. */
  readonly _meta?: { readonly [name: string]: unknown } | undefined
}

/** The result of a tool, as its handler returns it: JSON. The SDK's `CallToolResult` is one. */
export interface ToolResult {
  readonly content: readonly { readonly type: string }[]
  readonly isError?: boolean | undefined
}

/** The result where a call was refused. */
export interface ToolRefusal {
  /** An index signature, as the SDK's results have one. */
  readonly [name: string]: unknown
  /** What is wrong and what to do, in words for an agent. */
  content: { type: 'text'; text: string }[]
  isError: true
  /** The problem: `type`, `title`, `status`, `detail`, `retryable`, and `retryAfterSeconds` where that helps. */
  structuredContent?: { [name: string]: unknown }
  /** The problem, as `reprise/problem`. */
  _meta: { [name: string]: unknown }
}

/** Options of a tool: those of an atomic route that make sense without HTTP, and where keys and problems are. */
export interface ToolOptions<Extra, Who extends Principal = Principal>
  extends Omit<
    AtomicRouteOptions<Extra, undefined, Who>,
    | 'answerOf'
    | 'key'
    | 'methods'
    | 'parse'
    | 'principal'
    | 'refusal'
    | 'replayHeaders'
    | 'stores'
    | 'trusts'
    | 'wayBack'
  > {
  /**
   * On whose behalf a call is made, such as `extra.authInfo?.clientId`; of a server that has one user, a constant. Not
   * the session: a repeat often comes in another one.
   */
  readonly principal: (extra: Extra) => Who | Promise<Who>
  /**
   * Where the key of a call is: in an argument, which the tool's input schema names and a model fills in, or in
   * `_meta`, which the host of the model does. Any text of 1 to 255 characters is one; where it is not visible ASCII
   * alone, `key` of the handler is its digest, `sha256:…`. Default `{ meta: 'reprise/idempotency-key' }`.
   */
  readonly key?: { readonly argument: string } | { readonly meta: string }
  /**
   * Where the problem of a refused call is as data, beside its words: `structuredContent`, and `_meta` as well, or
   * `'_meta'` alone, for a tool with an output schema, which clients hold refusals to. Default `'structuredContent'`.
   */
  readonly problemsIn?: 'structuredContent' | '_meta'
}

/** What the handler of a tool gets. */
export interface ToolCall<Handle, Args, Extra, Who extends Principal = Principal> {
  /** The open transaction: what is written through it commits with the result, or not at all. */
  readonly tx: Handle
  /** The arguments. They are the same object in every run: read them, and leave them as they are. */
  readonly input: Args
  /** What the server passed with the call. */
  readonly extra: Extra
  readonly principal: PrincipalNames<Who>
  /** The intent's key; undefined where it has none. */
  readonly key: Key | undefined
}

/** A tool, as `registerTool` of the SDK takes it. One without arguments: `(extra) => tool({}, extra)`. */
export type ToolCallback<Args, Extra, Result> = (args: Args, extra: Extra) => Promise<Result | ToolRefusal>

interface Called<Args, Extra> {
  readonly args: Args
  readonly extra: Extra
}

/**
 * A tool whose calls take effect once: claim, effect and result commit together, and a repeat with the same key gets
 * the result of the first, with `_meta['reprise/replayed']`. Results that say `isError` are kept as well; what the
 * handler throws rolls back, leaves the key free, and is the server's to answer. A refused call is a result with
 * `isError`, the problem in words, and as data. A duplicate waits for the first one, unless `duplicates` says
 * otherwise. Refuses like {@link atomicRoute}.
 *
 * @example
 * ```ts
 * import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
 * import { idempotentTool } from 'reprise/mcp'
 * import { memory } from 'reprise/stores/memory'
 * import { z } from 'zod'
 *
 * const db = memory({ name: 'shop' })
 * db.table('payment', { unique: [['id']] })
 * const server = new McpServer({ name: 'shop', version: '1.0.0' })
 * server.registerTool(
 *   'pay',
 *   { inputSchema: { id: z.string(), key: z.string().describe('The same for every repeat of this call.') } },
 *   idempotentTool(db, { name: 'pay', principal: () => 'ada', key: { argument: 'key' } }, async ({ tx, input }) => {
 *     await tx.insertOnce('payment', { id: input.id }, ['id'])
 *     return { content: [{ type: 'text', text: 'paid' }] }
 *   }),
 * )
 * ```
 */
export function idempotentTool<
  Handle,
  Args,
  Extra extends ToolExtra,
  Result extends ToolResult,
  Who extends Principal = Principal,
>(
  db: RouteDomain<Handle>,
  options: ToolOptions<Extra, Who>,
  handler: (call: ToolCall<Handle, Args, Extra, Who>) => Result | Promise<Result>,
): ToolCallback<Args, Extra, Result> {
  const inMeta = { meta: 'reprise/idempotency-key' }
  const { key: place = inMeta, problemsIn, principal, ...rest } = Object(options) as typeof options
  checkOwn(place, problemsIn, rest)
  if (typeof handler !== 'function') throw invalid('handler', 'It is a function.')
  const named = typeof principal === 'function' ? ({ extra }: Called<Args, Extra>) => principal(extra) : principal
  const route = atomicRoute<Called<Args, Extra>, Handle, undefined, Who>(
    db,
    { duplicates: 'wait', ...rest, principal: named },
    async ({ tx, native, principal: names, key }) => {
      const result = await handler({ tx, input: native.args, extra: native.extra, principal: names, key })
      if (!Array.isArray(Object(result).content))
        throw new RepriseError('ARGUMENT_INVALID', 'The handler of a tool returns a result, which has a list content.')
      return reply(200, result)
    },
  )
  return async (args, extra) => {
    const native = { args, extra }
    const key = 'argument' in place ? Object(args)[place.argument] : extra?._meta?.[place.meta]
    const fields: Record<string, readonly string[]> = { 'content-type': ['application/json'] }
    if (key !== undefined) fields['idempotency-key'] = [keyField(key)]
    const body = Buffer.from(canonicalJsonOf(args))
    const readBody = (mostBytes: number): Uint8Array => limited(body, mostBytes)
    const answer = await route.handle({ method: 'POST', target: `/tools/${rest.name}`, fields, readBody }, native)
    return resultOf(answer, place, problemsIn) as Result | ToolRefusal
  }
}

// What the grammar of keys does not allow is known by its digest. What is no text, or too long, is refused later.
function keyField(key: unknown): string {
  if (typeof key !== 'string') return ''
  if (key === '' || key.length > 255 || !isWellFormed(key)) return key
  return printKeyField((/^[\x21-\x7e]+$/.test(key) ? key : sha256(key)) as Key)
}

const ofRoutes = ['answerOf', 'methods', 'parse', 'refusal', 'replayHeaders', 'stores', 'trusts', 'wayBack']

function checkOwn(place: object, problemsIn: unknown, rest: object): void {
  for (const name of ofRoutes) if (name in rest) throw invalid(name, 'It is for routes of HTTP.')
  const [[kind, name] = [], ...more] = Object.entries(Object(place)) as [string, unknown][]
  if (more.length > 0 || (kind !== 'argument' && kind !== 'meta') || typeof name !== 'string' || name === '')
    throw invalid('key', "It is { argument: 'name' } or { meta: 'name' }.")
  if (problemsIn !== undefined && problemsIn !== 'structuredContent' && problemsIn !== '_meta')
    throw invalid('problemsIn', "It is 'structuredContent' or '_meta'.")
}

function invalid(option: string, why: string): RepriseError {
  return new RepriseError('OPERATION_INVALID', `The option ${option} of a tool is not valid. ${why}`, {
    details: { option },
  })
}

function resultOf({ headers, body }: Answer, place: object, problemsIn: unknown): object {
  const fields = new Map(headers)
  const json = JSON.parse(String(body)) as Record<string, unknown>
  if (fields.get('content-type') !== 'application/problem+json') {
    if (fields.get('idempotent-replayed') === undefined) return json
    return { ...json, _meta: { ...Object(json['_meta']), 'reprise/replayed': true } }
  }
  const after = fields.get('retry-after')
  const problem = { ...json, ...defined({ retryAfterSeconds: after === undefined ? undefined : Number(after) }) }
  const aboutKey = /key-(?:missing|invalid)$/.test(String(json['type']))
  const [[kind, name] = []] = Object.entries(place)
  const where = aboutKey ? ` The key is in ${kind === 'argument' ? 'the argument' : '_meta:'} ${name}.` : ''
  const again = after === undefined ? '' : ` Call the tool again, with the same arguments and key, after ${after} s.`
  const text = `${json['title']}. ${json['detail']}${where}${again}`
  const data = problemsIn === '_meta' ? {} : { structuredContent: problem }
  return { isError: true, content: [{ type: 'text', text }], ...data, _meta: { 'reprise/problem': problem } }
}
