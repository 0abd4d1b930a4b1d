// Objects that are more than their members: JSON would write a Map as {}, and nobody would notice what is gone.

import { builtin } from '../runtime.js'

const knownTags: ReadonlySet<string> = new Set([
  ...['Arguments', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView', 'BigInt64Array', 'BigUint64Array'],
  ...['Float32Array', 'Float64Array', 'Int8Array', 'Int16Array', 'Int32Array'],
  ...['Uint8Array', 'Uint8ClampedArray', 'Uint16Array', 'Uint32Array'],
  ...['Boolean', 'Number', 'String', 'Symbol', 'BigInt'],
  ...['Error', 'Map', 'Promise', 'RegExp', 'Set', 'URLSearchParams', 'WeakMap', 'WeakRef', 'WeakSet'],
])
const otherKind = 'object with an inner state'

/**
 * What an object is that has a state beside its members, as a name from a closed set; undefined for one that is its
 * members.
 *
 * An object says so by its tag (`Symbol.toStringTag`). Those of the language itself are known even where the tag or the
 * prototype was changed, as far as the runtime can tell: Node can, a browser goes by the tag.
 */
export function innerKind(object: object): string | undefined {
  const printed = Object.prototype.toString.call(object)
  if (printed !== '[object Object]') {
    const tag = printed.slice('[object '.length, -1)
    // The tag may be any text of the caller's, so only those that are known are repeated.
    return knownTags.has(tag) ? tag : otherKind
  }
  types ??= builtin<typeof import('node:util')>('node:util')?.types ?? 'unknown'
  return types !== 'unknown' && isDisguised(object, types) ? otherKind : undefined
}

type NodeTypes = typeof import('node:util').types

let types: NodeTypes | 'unknown' | undefined

// One expression instead of a list of tests, which would take four times as long: this is asked of every object.
function isDisguised(object: object, is: NodeTypes): boolean {
  return (
    is.isArrayBufferView(object) ||
    is.isAnyArrayBuffer(object) ||
    is.isMap(object) ||
    is.isSet(object) ||
    is.isPromise(object) ||
    is.isWeakMap(object) ||
    is.isWeakSet(object) ||
    is.isBoxedPrimitive(object) ||
    is.isDate(object) ||
    is.isRegExp(object) ||
    is.isNativeError(object) ||
    is.isArgumentsObject(object) ||
    is.isGeneratorObject(object) ||
    is.isMapIterator(object) ||
    is.isSetIterator(object)
  )
}
