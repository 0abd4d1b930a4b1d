// The order of members: by the UTF-16 code units of their names (RFC 8785 section 3.2.3), equal names in source order.
//
// A pass writes members as they come and notes the objects that are out of order. Afterwards every byte is moved once,
// straight to its final place: moving the members of each object when it ends would copy the innermost text once per
// level.
//
// Members and objects are kept as columns of numbers: a document may have a hundred thousand members, and none of them
// becomes garbage.
//
// Names are compared as canonical text, without decoding it. Canonical text spells each character in one way only:
// names are equal as far as their bytes are, escapes included, and only the first difference has to be understood.

const comma = 0x2c
const backslash = 0x5c
const letterU = 0x75

const firstRoom = 32

// From this size on, making a view for the copy pays off.
const largeCopy = 96

// Up to so many members, inserting one after the other is faster than the sort of the language.
const smallObject = 16

/** An object of the text while it is being written. */
export interface OpenObject {
  /** Where it starts in the text. */
  readonly start: number
  /** The index of its first member; it has all members from there on. */
  readonly membersFrom: number
  /** The number of the first object in disorder inside it; all from there on are inside it. */
  readonly innerFrom: number
  /** Whether its members so far are in order. */
  isInOrder: boolean
}

/** The members of a document, and the objects whose members are out of order. */
export class Order {
  /** How many members the open objects have, those of the innermost object last. Each is known by its index. */
  memberCount = 0
  /** How many objects are out of order, each after those inside it. */
  objectCount = 0
  // Of each member: where it starts in the text (at the quote of its name), where its name ends, the weights of its
  // name's first bytes, and the number of the first object in disorder inside it. It ends, and so do these objects,
  // where the next member begins.
  readonly #members = {
    starts: new Int32Array(firstRoom),
    nameEnds: new Int32Array(firstRoom),
    prefixes: new Int32Array(firstRoom),
    innerFroms: new Int32Array(firstRoom),
  }
  // Of each object in disorder: where it starts and ends, the first object in disorder inside it, and its placed
  // members.
  readonly #objects = {
    starts: new Int32Array(firstRoom),
    ends: new Int32Array(firstRoom),
    innerFroms: new Int32Array(firstRoom),
    placedFroms: new Int32Array(firstRoom),
    placedTos: new Int32Array(firstRoom),
  }
  // The members of all objects in disorder, as they shall stand.
  readonly #placed = {
    starts: new Int32Array(firstRoom),
    ends: new Int32Array(firstRoom),
    innerFroms: new Int32Array(firstRoom),
    innerTos: new Int32Array(firstRoom),
  }
  readonly #fewPlaces = new Int32Array(smallObject)

  /** Adds a member of an object, whose name, quotes included, is at `start` up to `nameEnd` of the text. */
  begin(text: Uint8Array, start: number, nameEnd: number, object: OpenObject): void {
    const columns = this.#members
    const member = this.memberCount
    if (member >= columns.innerFroms.length) grow(columns, member * 2)
    this.memberCount = member + 1
    columns.starts[member] = start
    columns.nameEnds[member] = nameEnd - 1
    columns.prefixes[member] = namePrefix(text, start + 1, nameEnd - 1)
    columns.innerFroms[member] = this.objectCount
    if (!object.isInOrder || member === object.membersFrom) return
    object.isInOrder = this.#compare(text, member - 1, member) <= 0
  }

  /** Adds the object in disorder that ends at `end` of the text, and has the last members. */
  add(text: Uint8Array, { start, membersFrom, innerFrom }: OpenObject, end: number): void {
    const memberCount = this.memberCount - membersFrom
    const places = memberCount <= smallObject ? this.#fewPlaces : this.#sorted(text, membersFrom)
    if (memberCount <= smallObject) {
      for (let member = membersFrom; member < this.memberCount; member++) {
        let free = member - membersFrom
        // Equal names keep their order: only a greater one makes room.
        while (free > 0 && this.#compare(text, places[free - 1] as number, member) > 0) {
          places[free] = places[free - 1] as number
          free -= 1
        }
        places[free] = member
      }
    }
    const object = this.objectCount
    const objects = this.#objects
    if (object >= objects.placedTos.length) grow(objects, object * 2)
    // Those of the object before end where these begin.
    const placedFrom = object === 0 ? 0 : (objects.placedTos[object - 1] as number)
    const placedTo = placedFrom + memberCount
    objects.starts[object] = start
    objects.ends[object] = end
    objects.innerFroms[object] = innerFrom
    objects.placedFroms[object] = placedFrom
    objects.placedTos[object] = placedTo
    this.objectCount = object + 1
    const members = this.#members
    const placed = this.#placed
    if (placedTo > placed.innerTos.length) grow(placed, Math.max(placedTo, placedFrom * 2))
    for (let index = 0; index < memberCount; index++) {
      const member = places[index] as number
      const isLast = member === this.memberCount - 1
      placed.starts[placedFrom + index] = members.starts[member] as number
      placed.innerFroms[placedFrom + index] = members.innerFroms[member] as number
      // Behind a member are a comma and the next one, or the closing brace.
      placed.ends[placedFrom + index] = isLast ? end - 1 : (members.starts[member + 1] as number) - 1
      placed.innerTos[placedFrom + index] = isLast ? object : (members.innerFroms[member + 1] as number)
    }
  }

  /** Writes the text in order to `result`: same length, each byte copied once. */
  resolve(text: Uint8Array, length: number, result: Uint8Array): void {
    const objects = this.#objects
    const placed = this.#placed
    const begun: BegunObject[] = []
    // The stretch of text to be written, and the objects in disorder in it. Written from the end, since the last
    // object of a stretch is its outermost and rightmost one.
    let [start, end, innerFrom, innerTo] = [0, length, 0, this.objectCount]
    let before = length
    for (;;) {
      const object = innerTo - 1
      const hasInner = innerFrom < innerTo
      const from = hasInner ? (objects.ends[object] as number) - 1 : start
      before -= end - from
      if (end - from >= largeCopy) result.set(text.subarray(from, end), before)
      else for (let at = from, to = before; at < end; at++, to++) result[to] = text[at] as number
      if (hasInner) begun.push({ object, next: objects.placedTos[object] as number, start, innerFrom })

      const last = begun.at(-1)
      if (last === undefined) return
      const { object: open } = last
      if (last.next === objects.placedFroms[open]) {
        begun.pop()
        start = last.start
        end = (objects.starts[open] as number) + 1
        innerFrom = last.innerFrom
        innerTo = objects.innerFroms[open] as number
      } else {
        if (last.next !== objects.placedTos[open]) result[--before] = comma
        last.next -= 1
        start = placed.starts[last.next] as number
        end = placed.ends[last.next] as number
        innerFrom = placed.innerFroms[last.next] as number
        innerTo = placed.innerTos[last.next] as number
      }
    }
  }

  // The places of many members.
  #sorted(text: Uint8Array, membersFrom: number): Int32Array {
    const places = new Int32Array(this.memberCount - membersFrom)
    for (let index = 0; index < places.length; index++) places[index] = membersFrom + index
    // Equal names keep their order in any engine.
    return places.sort((left, right) => this.#compare(text, left, right) || left - right)
  }

  // Compares the names of two members: negative where the left one comes first.
  #compare(text: Uint8Array, left: number, right: number): number {
    const { starts, nameEnds, prefixes } = this.#members
    const leftPrefix = prefixes[left] as number
    const rightPrefix = prefixes[right] as number
    if (leftPrefix !== rightPrefix) return leftPrefix < rightPrefix ? -1 : 1
    const leftStart = (starts[left] as number) + 1
    const rightStart = (starts[right] as number) + 1
    return compareNames(text, leftStart, nameEnds[left] as number, rightStart, nameEnds[right] as number)
  }
}

/** An object in disorder that has been written in part, from its end. */
interface BegunObject {
  readonly object: number
  /** The placed member that was written last; it counts down. */
  next: number
  /** The rest of the stretch that the object ends: where it starts, and the first object in disorder in it. */
  readonly start: number
  readonly innerFrom: number
}

// Makes columns longer. One after the other, so that the last one tells the room of all, even if memory runs out on the
// way.
function grow(columns: Record<string, Int32Array>, room: number): void {
  for (const [name, column] of Object.entries(columns)) {
    const longer = new Int32Array(room)
    longer.set(column.subarray(0, room))
    columns[name] = longer
  }
}

// Bytes of UTF-8 sort by code point. UTF-16 does too, except that U+10000 and above (lead bytes from 0xf0 on) are
// written with surrogates, which come before U+E000 to U+FFFF (lead bytes 0xee and 0xef). The weights of bytes sort as
// UTF-16.
const weights = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0xee) return byte
  return byte >= 0xf0 ? byte - 2 : byte + 0x10
})

// What the letter behind a backslash stands for: most stand for themselves.
const escapes = Uint8Array.from({ length: 256 }, (_, letter) => letter)
for (const [letter, control] of Object.entries({ b: 0x08, t: 0x09, n: 0x0a, f: 0x0c, r: 0x0d })) {
  escapes[letter.charCodeAt(0)] = control
}

/**
 * Compares two names, given as places of canonical text between the quotes: negative where the left one comes first.
 */
function compareNames(text: Uint8Array, left: number, leftEnd: number, right: number, rightEnd: number): number {
  const distance = right - left
  const sharedEnd = Math.min(leftEnd, rightEnd - distance)
  for (let at = left; at < sharedEnd; at++) {
    const byte = text[at] as number
    if (byte !== text[at + distance]) return weightAt(text, at) - weightAt(text, at + distance)
    if (byte === backslash) {
      // The letter means something only together with its backslash. Behind \u it is simpler: the digits of
      // hexadecimal numbers, in lower case, sort as bytes like any others.
      at += 1
      if (text[at] !== text[at + distance]) return weightAt(text, at - 1) - weightAt(text, at + distance - 1)
    }
  }
  return leftEnd + distance - rightEnd
}

/**
 * The weights of a name's first four bytes (of UTF-8, without escapes) as one 32-bit integer. Names whose prefixes
 * differ sort as the prefixes do. A shorter name is filled up with zeros, so equal prefixes say nothing: U+0000 is a
 * zero as well.
 */
function namePrefix(text: Uint8Array, start: number, end: number): number {
  let prefix = 0
  let at = start
  for (let index = 0; index < 4; index++) {
    const byte = at < end ? (text[at] as number) : 0
    if (byte === backslash) {
      prefix = (prefix << 8) | escapeWeight(text, at)
      at += escapeLength(text, at)
    } else {
      prefix = (prefix << 8) | (weights[byte] as number)
      at += 1
    }
  }
  // The highest bit is the sign of the integer, which would put the greatest names first.
  return prefix ^ -0x80000000
}

// The weight of the byte or escape here.
function weightAt(text: Uint8Array, at: number): number {
  const byte = text[at] as number
  return byte === backslash ? escapeWeight(text, at) : (weights[byte] as number)
}

// Only controls are written as \u00XX.
function escapeWeight(text: Uint8Array, at: number): number {
  const letter = text[at + 1] as number
  if (letter !== letterU) return escapes[letter] as number
  return digitValue(text[at + 4] as number) * 16 + digitValue(text[at + 5] as number)
}

function escapeLength(text: Uint8Array, at: number): number {
  return text[at + 1] === letterU ? 6 : 2
}

// Of a hexadecimal digit in lower case.
function digitValue(digit: number): number {
  return digit < 0x61 ? digit - 0x30 : digit - 0x61 + 10
}
