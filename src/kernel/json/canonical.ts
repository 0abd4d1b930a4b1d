// From raw text to canonical text by one pass over the bytes: nothing becomes a value, so nothing is lost in one.

import { isRepriseError, RepriseError } from '../errors.js'
import { byteCount, isBytes, isWellFormed } from '../text/well-formed.js'
import { type JsonLimits, resolveLimits, tooLarge } from './limits.js'
import { giveBack, takeWorkspace, type Workspace } from './workspace.js'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * The canonical text of a JSON document, given as text or as UTF-8 bytes.
 *
 * Documents that differ only in white space, order of members, escapes or the spelling of numbers have the same
 * canonical text; any others have different ones. It is the text of RFC 8785, except where that would change a value:
 * - numbers keep all their digits (9007199254740993 stays; RFC 8785 gives …992), and are laid out as ECMAScript does;
 * - duplicate members are kept, in source order among themselves;
 * - `__proto__` is a name like any other.
 *
 * Takes linear time (n log n in the members of one object), and no stack of the caller.
 *
 * Refuses with an error whose `details.offset` says where: in bytes for bytes, in UTF-16 code units for a string.
 * The first fault in the text decides.
 * - JSON_SYNTAX: what `JSON.parse` would refuse; a byte order mark too.
 * - JSON_ENCODING: bytes that are not UTF-8.
 * - JSON_LONE_SURROGATE: half of a surrogate pair, raw or as an escape.
 * - JSON_NUMBER_RANGE: a number with an exponent of more than 15 digits once normalised.
 * - JSON_TOO_LARGE (without an offset, before anything else) and JSON_TOO_DEEP: past the limits.
 * - ARGUMENT_INVALID (without an offset): neither text nor bytes, or bytes whose buffer was transferred.
 */
export function canonicalJson(source: string | Uint8Array, limits?: JsonLimits): string {
  const { maxBytes, maxDepth } = resolveLimits(limits)
  const workspace = takeWorkspace()
  try {
    if (typeof source === 'string') {
      loadString(workspace, source, maxBytes)
      if (!isWellFormed(source)) throw faultOfIllFormed(workspace, source, maxBytes, maxDepth)
    } else {
      loadBytes(workspace, source, maxBytes)
    }
    workspace.document.run(maxDepth)
    return decoder.decode(workspace.inOrder())
  } finally {
    giveBack(workspace)
  }
}

function loadString(workspace: Workspace, source: string, maxBytes: number): void {
  if (source.length > maxBytes) throw tooLarge(maxBytes)
  // A code unit takes three bytes at most. Encoding stops where the limit is reached, so this is the check as well.
  const room = Math.min(source.length * 3, maxBytes)
  const { read, written } = encoder.encodeInto(source, workspace.sourceOf(room))
  if (read < source.length) throw tooLarge(maxBytes)
  workspace.begin(written, true)
}

function loadBytes(workspace: Workspace, source: Uint8Array, maxBytes: number): void {
  if (!isBytes(source)) throw new RepriseError('ARGUMENT_INVALID', 'The source has to be a string or a Uint8Array.')
  const size = byteCount(source)
  if (size > maxBytes) throw tooLarge(maxBytes)
  workspace.sourceOf(size).set(source)
  workspace.begin(size, false)
}

// Encoding makes every half of a surrogate pair U+FFFD, as if that had been written, so such text never gets that far.
// What stands before the first one may have a fault of its own, and the first fault decides.
function faultOfIllFormed(workspace: Workspace, source: string, maxBytes: number, maxDepth: number): unknown {
  const lone = source.search(/\p{Surrogate}/u)
  try {
    loadString(workspace, source.slice(0, lone), maxBytes)
    workspace.document.run(maxDepth)
  } catch (error) {
    if (!isRepriseError(error)) return error
    const { offset } = error.details
    if (typeof offset === 'number' && offset < lone) return error
  }
  const message = `The text holds half of a surrogate pair at offset ${lone}.`
  return new RepriseError('JSON_LONE_SURROGATE', message, { details: { offset: lone } })
}
