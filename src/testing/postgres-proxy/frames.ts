// Reads the frames of PostgreSQL's wire protocol 3 out of a stream of chunks.
//
// Source: PostgreSQL documentation, "Message Formats". A frame is a type byte and a length of four bytes that counts
// itself; the first message of a client has no type byte.

import { RepriseError } from '../../kernel/index.js'

/** One message of the protocol, as it stood in the stream. */
export interface Frame {
  /** The type byte as a character; empty for a client's first message. */
  readonly type: string
  /** The whole message, type and length included. */
  readonly bytes: Buffer
}

/**
 * How the next bytes are read: as a client's first message, as one byte that answers a request for encryption, as
 * frames, or not at all (`raw`).
 */
export type FrameMode = 'startup' | 'byte' | 'frames' | 'raw'

/** The longest message that is accepted, in bytes. */
export const maxFrameBytes: number = 64 * 1024 * 1024

/** Codes in place of a protocol version in a client's first message. */
export const startupCodes: { readonly cancel: number; readonly ssl: number; readonly gss: number } = {
  cancel: 80_877_102,
  ssl: 80_877_103,
  gss: 80_877_104,
}

/** The protocol version or the code in a client's first message. */
export const startupCode = (frame: Frame): number => frame.bytes.readInt32BE(4)

/** Reads one direction of a connection. */
export class FrameReader {
  mode: FrameMode
  #rest: Buffer = Buffer.alloc(0)

  constructor(mode: FrameMode) {
    this.mode = mode
  }

  push(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
  }

  /**
   * The next whole message, or undefined until more arrives. Refuses what cannot be a message with `ARGUMENT_INVALID`.
   */
  next(): Frame | undefined {
    const length = this.#lengthOfNext()
    if (length === undefined || this.#rest.length < length) return undefined
    const bytes = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    const typed = this.mode === 'frames' || this.mode === 'byte'
    return { type: typed ? String.fromCharCode(bytes[0] as number) : '', bytes }
  }

  #lengthOfNext(): number | undefined {
    const available = this.#rest.length
    if (this.mode === 'raw') return available === 0 ? undefined : available
    if (this.mode === 'byte') return 1
    const before = this.mode === 'frames' ? 1 : 0
    if (available < before + 4) return undefined
    const length = this.#rest.readInt32BE(before)
    // A first message also contains a version or a code.
    if (length < (before === 1 ? 4 : 8) || length > maxFrameBytes) {
      throw new RepriseError('ARGUMENT_INVALID', 'The bytes are not messages of the PostgreSQL protocol.', {
        details: { maxFrameBytes },
      })
    }
    return before + length
  }
}

/** The text from `start` up to the next zero byte, and the position after it. */
export function zeroEnded(bytes: Buffer, start: number): { readonly text: string; readonly next: number } {
  const found = bytes.indexOf(0, start)
  const end = found < 0 ? bytes.length : found
  return { text: bytes.toString('utf8', start, end), next: end + 1 }
}
