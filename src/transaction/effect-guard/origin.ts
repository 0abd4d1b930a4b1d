// Where a request goes, read from what callers hand to `fetch` and `node:http`, and from what diagnostics channels
// tell.
//
// Nothing here throws: a request that cannot be understood has no origin, and is judged without.

import { urlToHttpOptions } from 'node:url'

/**
 * Where a request of `fetch` goes; `elsewhere`: not over a network (`data:`, `blob:`). Undefined: it cannot be told.
 */
export function originOfFetch(input: unknown): string | 'elsewhere' | undefined {
  return attempt(() => {
    const address = typeof input === 'object' && input !== null && 'url' in input ? input.url : input
    const { protocol, origin } = new URL(String(address))
    return protocol === 'http:' || protocol === 'https:' ? origin : 'elsewhere'
  })
}

/** Where a call of `request` or `get` goes. `usual` is the protocol of the module that was called. */
export function originOfCall(args: readonly unknown[], usual: 'http:' | 'https:'): string | undefined {
  return attempt(() => {
    const [first, second] = args
    const isAddress = typeof first === 'string' || first instanceof URL
    const address = isAddress ? urlToHttpOptions(new URL(first)) : (first as CallOptions)
    const options: CallOptions = isAddress && typeof second === 'object' ? { ...address, ...second } : address
    const { protocol = usual, hostname, host, port, defaultPort, socketPath } = options
    return originOf(socketPath, protocol ?? usual, hostname || host || 'localhost', port || defaultPort)
  })
}

/** Where a request of undici goes. */
export function originOfUndici(request: unknown): string | undefined {
  return attempt(() => new URL(String((request as { readonly origin: unknown }).origin)).origin)
}

/**
 * Where a `ClientRequest` goes. It keeps no port, which is read from its `Host` header; one that names another host
 * says nothing about the port, and then the origin is not known.
 */
export function originOfClientRequest(request: unknown): string | undefined {
  return attempt(() => {
    const { protocol, host, socketPath, getHeader } = request as ClientRequestParts
    const named = new URL(`${protocol}//${getHeader.call(request, 'host')}`)
    if (socketPath) return originOf(socketPath, protocol, host, undefined)
    const origin = originOf(undefined, protocol, host, named.port)
    return origin === named.origin ? origin : undefined
  })
}

interface CallOptions {
  readonly protocol?: string | null | undefined
  readonly hostname?: string | null | undefined
  readonly host?: string | null | undefined
  readonly port?: number | string | null | undefined
  readonly defaultPort?: number | string | undefined
  readonly socketPath?: string | undefined
}

interface ClientRequestParts {
  readonly protocol: string
  readonly host: string
  readonly socketPath: string | null | undefined
  getHeader(name: string): unknown
}

function originOf(
  socketPath: string | undefined,
  protocol: string,
  host: string,
  port: number | string | null | undefined,
): string {
  if (socketPath) return `unix:${socketPath}`
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
  return new URL(`${protocol}//${name}${port ? `:${port}` : ''}`).origin
}

function attempt<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
