// Byte arrays of every odd kind, each with a name: what takes bytes has to take the first, and to refuse the others.

import { runInNewContext } from 'node:vm'

export type NamedBytes = readonly [name: string, bytes: Uint8Array]

// Typed for the oldest runtime that is supported; all of them have these.
interface ResizableBuffer extends ArrayBuffer {
  resize(size: number): void
}
interface GrowableBuffer extends SharedArrayBuffer {
  grow(size: number): void
}

function resizable(size: number): ResizableBuffer {
  return Reflect.construct(ArrayBuffer, [size, { maxByteLength: size + 8 }]) as ResizableBuffer
}

function growable(size: number): GrowableBuffer {
  return Reflect.construct(SharedArrayBuffer, [size, { maxByteLength: size + 64 }]) as GrowableBuffer
}

class Lying extends Uint8Array {
  override get length(): 1 {
    return 1
  }
  override get byteLength(): 2 {
    return 2
  }
  override get [Symbol.toStringTag](): never {
    return 'Float64Array' as never
  }
}

/** Arrays that hold the UTF-8 bytes of an ASCII text, one way or another. */
export function oddBytes(text: string): NamedBytes[] {
  const bytes = new TextEncoder().encode(text)
  const filled = (array: Uint8Array): Uint8Array => {
    Reflect.apply(Uint8Array.prototype.set, array, [bytes])
    return array
  }
  const tracking = resizable(bytes.length + 2)
  const ofTracking = new Uint8Array(tracking)
  tracking.resize(bytes.length)
  const growing = growable(0)
  const ofGrowing = new Uint8Array(growing)
  growing.grow(bytes.length)
  const disguised = Object.defineProperty(filled(new Uint8Array(bytes.length)), Symbol.toStringTag, { value: 'Map' })
  return [
    ['a Buffer', Buffer.from(bytes)],
    ['a part of a larger buffer', filled(new Uint8Array(new ArrayBuffer(bytes.length + 9), 5, bytes.length))],
    ['an array of another realm', filled(runInNewContext(`new Uint8Array(${bytes.length})`) as Uint8Array)],
    ['an array of a class that lies about its length', filled(new Lying(bytes.length))],
    ['an array with the tag of something else', disguised],
    ['an array without a prototype', Object.setPrototypeOf(filled(new Uint8Array(bytes.length)), null) as Uint8Array],
    ['shared memory', filled(new Uint8Array(new SharedArrayBuffer(bytes.length)))],
    ['shared memory that has grown', filled(ofGrowing)],
    ['a resizable buffer that has shrunk, tracked', filled(ofTracking)],
  ]
}

/** Arrays whose bytes are gone, which look empty. */
export function goneBytes(): NamedBytes[] {
  const detached = new Uint8Array(3)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  const detachedEmpty = new Uint8Array(0)
  structuredClone(detachedEmpty.buffer, { transfer: [detachedEmpty.buffer] })
  const shrunk = resizable(8)
  const outside = new Uint8Array(shrunk, 4, 2)
  shrunk.resize(5)
  return [
    ['bytes of a transferred buffer', detached],
    ['no bytes of a transferred buffer', detachedEmpty],
    ['bytes that a shrunken buffer no longer has', outside],
  ]
}

/** Things that say they are a Uint8Array, and are none. */
export function falseBytes(): NamedBytes[] {
  const tag = { value: 'Uint8Array' }
  const claims: [string, object][] = [
    ['a Float64Array that calls itself a Uint8Array', new Float64Array(2)],
    ['a Uint8ClampedArray that calls itself a Uint8Array', new Uint8ClampedArray(2)],
    ['a DataView that calls itself a Uint8Array', new DataView(new ArrayBuffer(2))],
    ['an object that calls itself a Uint8Array', { length: 2 }],
    ['an object that inherits from Uint8Array', Object.create(Uint8Array.prototype) as object],
    ['a proxy of a Uint8Array', new Proxy(new Uint8Array(2), {})],
  ]
  return claims.map(([name, claim]) => [name, Object.defineProperty(claim, Symbol.toStringTag, tag) as Uint8Array])
}
