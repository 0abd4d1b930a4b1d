// The order of members: by the UTF-16 code units of their names (RFC 8785 section 3.2.3), equal names in source order.
//
// A pass writes members as they come and notes the objects that are out of order. Afterwards every byte is moved once,
// straight to its final place: moving the members of each object when it ends would copy the innermost text once per level.

/**
 * A member in the text, at six consecutive places of an array: where it starts, where its name ends, the prefix of its name,
 * where it ends, the number of the first disorder inside it, and the number behind the last.
 */
export const memberSize = 6

// A member of an object in disorder, once its place is known: start, end, innerFrom, innerTo.
const placedSize = 4

// An object in disorder: start, end, innerFrom, and where its members begin and end.
const disorderSize = 5

/** Compares two names, given as places of canonical text between the quotes. */
export type CompareNames = (text: Uint8Array, left: number, leftEnd: number, right: number, rightEnd: number) => number

/** Compares two names that hold no escapes. */
export const comparePlainNames: CompareNames = (text, left, leftEnd, right, rightEnd) => {
  const shared = Math.min(leftEnd - left, rightEnd - right)
  for (let index = 0; index < shared; index++) {
    const a = text[left + index] as number
    const b = text[right + index] as number
    if (a !== b) return compareBytes(a, b)
  }
  return leftEnd - left - (rightEnd - right)
}

/** Compares two names; escapes count as what they stand for. */
export const compareNames: CompareNames = (text, left, leftEnd, right, rightEnd) => {
  let leftAt = left
  let rightAt = right
  while (leftAt < leftEnd && rightAt < rightEnd) {
    const a = unescaped(text, leftAt)
    const b = unescaped(text, rightAt)
    if (a !== b) return compareBytes(a, b)
    leftAt += escapeLength(text, leftAt)
    rightAt += escapeLength(text, rightAt)
  }
  return leftEnd - leftAt - (rightEnd - rightAt)
}

/**
 * The first four characters of a name as one number that sorts as they do, or -1 where a plain comparison of bytes would not
 * do: characters beyond ASCII, and escapes. A shorter name is filled up with zeros, which no canonical text contains.
 */
export function namePrefix(text: Uint8Array, start: number, end: number): number {
  let prefix = 0
  for (let index = 0; index < 4; index++) {
    const byte = start + index < end ? (text[start + index] as number) : 0
    if (byte >= 0x80 || byte === backslash) return -1
    prefix = (prefix << 7) | byte
  }
  return prefix
}

/** Compares the names of two members, given as places in `members`. */
export function compareMembers(
  text: Uint8Array,
  members: Int32Array,
  left: number,
  right: number,
  compare: CompareNames,
): number {
  const leftPrefix = members[left + 2] as number
  const rightPrefix = members[right + 2] as number
  if (leftPrefix !== rightPrefix && leftPrefix >= 0 && rightPrefix >= 0) return leftPrefix - rightPrefix
  const leftStart = (members[left] as number) + 1
  const rightStart = (members[right] as number) + 1
  return compare(text, leftStart, members[left + 1] as number, rightStart, members[right + 1] as number)
}

const backslash = 0x5c
const letterU = 0x75

// UTF-8 sorts by code point. UTF-16 does too, except that U+10000 and above (lead bytes 0xf0 and up) are written with
// surrogates, which come before U+E000 to U+FFFF (lead bytes 0xee and 0xef).
function compareBytes(a: number, b: number): number {
  return a >= 0xee && b >= 0xee && a >= 0xf0 !== b >= 0xf0 ? b - a : a - b
}

function unescaped(text: Uint8Array, at: number): number {
  const byte = text[at] as number
  if (byte !== backslash) return byte
  const letter = text[at + 1] as number
  if (letter === letterU) return Number.parseInt(String.fromCharCode(...text.subarray(at + 4, at + 6)), 16)
  const control = 'btn_fr'.indexOf(String.fromCharCode(letter))
  return control < 0 ? letter : 8 + control
}

function escapeLength(text: Uint8Array, at: number): number {
  if (text[at] !== backslash) return 1
  return text[at + 1] === letterU ? 6 : 2
}

// Up to so many members, inserting one after the other is faster than the sort of the language.
const smallObject = 16

/** The objects of one document whose members are out of order, each after the objects inside it. */
export class Disorders {
  /** How many objects there are. */
  count = 0
  #objects: Int32Array = new Int32Array(16 * disorderSize)
  // The members of all of them as they shall stand, each in the form of placedSize.
  #placed: Int32Array = new Int32Array(64 * placedSize)
  #placedTop = 0
  readonly #places = new Int32Array(smallObject)

  /** Forgets everything, to begin another document. */
  clear(): void {
    this.count = 0
    this.#placedTop = 0
  }

  /**
   * Adds the object whose text is at `start` up to `end`, with the members at `from` up to `to` of `members`.
   * Disorders from `innerFrom` on are inside it.
   */
  add(
    text: Uint8Array,
    start: number,
    end: number,
    innerFrom: number,
    members: Int32Array,
    from: number,
    to: number,
    compare: CompareNames,
  ): void {
    const object = this.count * disorderSize
    this.count += 1
    this.#objects = withRoom(this.#objects, object + disorderSize)
    this.#objects[object] = start
    this.#objects[object + 1] = end
    this.#objects[object + 2] = innerFrom
    this.#objects[object + 3] = this.#placedTop
    const memberCount = Math.trunc((to - from) / memberSize)
    this.#placed = withRoom(this.#placed, this.#placedTop + memberCount * placedSize)
    if (memberCount > smallObject) {
      const places = Int32Array.from({ length: memberCount }, (_, index) => from + index * memberSize)
      // Equal names keep their order in any engine.
      places.sort((left, right) => compareMembers(text, members, left, right, compare) || left - right)
      this.#place(members, places, memberCount)
    } else {
      insertInOrder(this.#places, text, members, from, to, compare)
      this.#place(members, this.#places, memberCount)
    }
    this.#objects[object + 4] = this.#placedTop
  }

  #place(members: Int32Array, places: Int32Array, memberCount: number): void {
    const placed = this.#placed
    let top = this.#placedTop
    for (let index = 0; index < memberCount; index++) {
      const member = places[index] as number
      placed[top] = members[member] as number
      placed[top + 1] = members[member + 3] as number
      placed[top + 2] = members[member + 4] as number
      placed[top + 3] = members[member + 5] as number
      top += placedSize
    }
    this.#placedTop = top
  }

  /** Writes the text in order to `result`: same length, each byte copied once. */
  resolve(text: Uint8Array, length: number, result: Uint8Array): void {
    const objects = this.#objects
    const placed = this.#placed
    // Objects that have been begun: their place in `objects`, the next member, and the stretch of text before the object.
    const begun: number[] = []
    let depth = 0
    // The stretch of text to be written, and the disorders in it. Written from the end, since the last disorder of a
    // stretch is its outermost and rightmost one.
    let [start, end, innerFrom, innerTo] = [0, length, 0, this.count]
    let before = length
    for (;;) {
      if (innerFrom < innerTo) {
        const object = (innerTo - 1) * disorderSize
        before = copyBefore(text, (objects[object + 1] as number) - 1, end, result, before)
        begun[depth] = object
        begun[depth + 1] = objects[object + 4] as number
        begun[depth + 2] = start
        begun[depth + 3] = innerFrom
        depth += 4
      } else {
        before = copyBefore(text, start, end, result, before)
      }
      if (depth === 0) return

      const object = begun[depth - 4] as number
      const next = begun[depth - 3] as number
      if (next === objects[object + 3]) {
        depth -= 4
        start = begun[depth + 2] as number
        end = (objects[object] as number) + 1
        innerFrom = begun[depth + 3] as number
        innerTo = objects[object + 2] as number
      } else {
        if (next !== objects[object + 4]) result[--before] = comma
        const member = next - placedSize
        begun[depth - 3] = member
        start = placed[member] as number
        end = placed[member + 1] as number
        innerFrom = placed[member + 2] as number
        innerTo = placed[member + 3] as number
      }
    }
  }
}

const comma = 0x2c

/** An array with room for so many numbers: the same, or a larger one that begins alike. */
export function withRoom(numbers: Int32Array, size: number): Int32Array {
  if (size <= numbers.length) return numbers
  const larger = new Int32Array(Math.max(size, numbers.length * 2))
  larger.set(numbers)
  return larger
}

// Equal names keep their order: only a greater one makes room.
function insertInOrder(
  places: Int32Array,
  text: Uint8Array,
  members: Int32Array,
  from: number,
  to: number,
  compare: CompareNames,
): void {
  let count = 0
  for (let place = from; place < to; place += memberSize) {
    let free = count
    while (free > 0 && compareMembers(text, members, places[free - 1] as number, place, compare) > 0) {
      places[free] = places[free - 1] as number
      free -= 1
    }
    places[free] = place
    count += 1
  }
}

// From this size on, making a view for the copy pays off.
const largeCopy = 96

function copyBefore(text: Uint8Array, start: number, end: number, result: Uint8Array, before: number): number {
  const at = before - (end - start)
  if (end - start >= largeCopy) result.set(text.subarray(start, end), at)
  else for (let from = start, to = at; from < end; from++, to++) result[to] = text[from] as number
  return at
}
