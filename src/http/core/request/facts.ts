// What an adapter tells about a request, whatever its framework calls things.

/** The facts of a request, as they arrived. */
export interface RequestFacts {
  /** The method, in capitals. */
  readonly method: string
  /** Path and query as they arrived, before any router rewrote them: `/payments?account=7`. */
  readonly target: string
  /** The fields, each with every value that arrived, one by one and not joined; names are lower-case. */
  readonly fields: Readonly<Record<string, readonly string[] | undefined>>
  /** What a router found in the path, decoded. Default: nothing. */
  readonly params?: Readonly<Record<string, string>>
  /** Where the service is reached, for absolute addresses: `http://localhost:4700`. Default: made of the Host field. */
  readonly origin?: string
  /**
   * Reads the body, once, as the bytes that arrived, before any parser. Rejects with BODY_TOO_LARGE past the limit, and with BODY_CONSUMED where a parser was faster.
   *
   * @param mostBytes The limit.
   */
  readBody(mostBytes: number): Uint8Array | Promise<Uint8Array>
}
