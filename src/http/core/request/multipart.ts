// Multipart bodies (RFC 2046, 5.1), read only to be compared: each sender, and each attempt, chooses another boundary.

/** A part of a body. */
export interface Part {
  /** Its fields, names in lower case, in the order of their names. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

const mostParts = 1_000

/** The parts of a body; undefined where it cannot be read as what its media type says. */
export function readParts(contentType: string, bytes: Uint8Array): readonly Part[] | undefined {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return undefined
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const delimiter = Buffer.from(`--${boundary}`)
  if (body.indexOf(delimiter) !== 0) return undefined
  const parts: Part[] = []
  let start = delimiter.length
  for (;;) {
    if (body.subarray(start, start + 2).equals(Buffer.from('--'))) {
      // What follows the last boundary means nothing; where there is something, it is not overlooked.
      const rest = body.subarray(start + 2).toString('latin1')
      return rest === '' || rest === '\r\n' ? parts : undefined
    }
    if (!body.subarray(start, start + 2).equals(Buffer.from('\r\n')) || parts.length === mostParts) return undefined
    const end = body.indexOf(`\r\n--${boundary}`, start)
    if (end < 0) return undefined
    const part = partOf(body.subarray(start + 2, Math.max(start + 2, end)))
    if (part === undefined) return undefined
    parts.push(part)
    start = end + 2 + delimiter.length
  }
}

function partOf(bytes: Buffer): Part | undefined {
  const bare = bytes.subarray(0, 2).equals(Buffer.from('\r\n'))
  const end = bare ? 0 : bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const headers: [string, string][] = []
  for (const line of bare ? [] : bytes.subarray(0, end).toString('latin1').split('\r\n')) {
    const colon = line.indexOf(':')
    if (colon <= 0) return undefined
    headers.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()])
  }
  headers.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
  return { headers, body: bytes.subarray(end + (bare ? 2 : 4)) }
}

function boundaryOf(contentType: string): string | undefined {
  const found = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType)
  return found?.[1] ?? found?.[2]
}
