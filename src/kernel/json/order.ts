// The order of members: by their names, equal names in source order.
//
// A pass writes members as they come and notes the objects that are out of order. Afterwards every byte is moved once,
// straight to its final place: moving the members of each object when it ends would copy the innermost text once per level.
//
// Members and objects are kept as columns of numbers: a document may have a hundred thousand members, and none of them
// becomes garbage.

import { compareNames, namePrefix } from './names.js'

const comma = 0x2c

const firstRoom = 32

/** The members of all objects that are open, those of the innermost object last; each is known by its index. */
export class Members {
  /** How many there are. */
  count = 0
  /** Where each one starts in the text: at the quote of its name. */
  starts: Int32Array = new Int32Array(firstRoom)
  /** Where each one ends. */
  ends: Int32Array = new Int32Array(firstRoom)
  /** The number of the first disorder inside each one. */
  innerFroms: Int32Array = new Int32Array(firstRoom)
  /** The number behind the last disorder inside each one. */
  innerTos: Int32Array = new Int32Array(firstRoom)
  #nameEnds: Int32Array = new Int32Array(firstRoom)
  #prefixes: Int32Array = new Int32Array(firstRoom)
  #room = firstRoom

  /** Adds a member whose name, quotes included, is at `start` up to `nameEnd` of the text; answers its index. */
  begin(text: Uint8Array, start: number, nameEnd: number, innerFrom: number): number {
    const member = this.count
    if (member === this.#room) this.#grow()
    this.count = member + 1
    this.starts[member] = start
    this.#nameEnds[member] = nameEnd - 1
    this.#prefixes[member] = namePrefix(text, start + 1, nameEnd - 1)
    this.innerFroms[member] = innerFrom
    return member
  }

  /** Completes the last member. */
  end(end: number, innerTo: number): void {
    const member = this.count - 1
    this.ends[member] = end
    this.innerTos[member] = innerTo
  }

  /** Compares the names of two members: negative where the left one comes first. */
  compare(text: Uint8Array, left: number, right: number): number {
    const leftPrefix = this.#prefixes[left] as number
    const rightPrefix = this.#prefixes[right] as number
    if (leftPrefix !== rightPrefix) return leftPrefix < rightPrefix ? -1 : 1
    const leftStart = (this.starts[left] as number) + 1
    const rightStart = (this.starts[right] as number) + 1
    return compareNames(text, leftStart, this.#nameEnds[left] as number, rightStart, this.#nameEnds[right] as number)
  }

  #grow(): void {
    const room = this.#room * 2
    this.starts = withRoom(this.starts, room)
    this.ends = withRoom(this.ends, room)
    this.innerFroms = withRoom(this.innerFroms, room)
    this.innerTos = withRoom(this.innerTos, room)
    this.#nameEnds = withRoom(this.#nameEnds, room)
    this.#prefixes = withRoom(this.#prefixes, room)
    // Last, so that the room is never less than it says, even if memory or stack run out on the way.
    this.#room = room
  }
}

/** An object of the text while it is being written. */
export interface OpenObject {
  /** Where it starts in the text. */
  readonly start: number
  /** The index of its first member; it has all members from there on. */
  readonly membersFrom: number
  /** The number of the first disorder inside it; all from there on are inside it. */
  readonly innerFrom: number
}

// Up to so many members, inserting one after the other is faster than the sort of the language.
const smallObject = 16

/** The objects of one document whose members are out of order, each after the objects inside it. */
export class Disorders {
  readonly #objects = new Objects()
  readonly #placed = new PlacedMembers()
  readonly #fewPlaces = new Int32Array(smallObject)

  /** How many objects there are. */
  get count(): number {
    return this.#objects.count
  }

  /** Forgets everything, to begin another document. */
  clear(): void {
    this.#objects.count = 0
    this.#placed.count = 0
  }

  /** Adds the object that ends at `end` of the text. */
  add(text: Uint8Array, object: OpenObject, end: number, members: Members): void {
    const placedFrom = this.#placed.count
    const { membersFrom } = object
    const memberCount = members.count - membersFrom
    if (memberCount <= smallObject) {
      insertInOrder(this.#fewPlaces, text, members, membersFrom)
      this.#placed.add(members, this.#fewPlaces, memberCount)
    } else {
      const places = new Int32Array(memberCount)
      for (let index = 0; index < memberCount; index++) places[index] = membersFrom + index
      // Equal names keep their order in any engine.
      places.sort((left, right) => members.compare(text, left, right) || left - right)
      this.#placed.add(members, places, memberCount)
    }
    this.#objects.add(object, end, placedFrom, this.#placed.count)
  }

  /** Writes the text in order to `result`: same length, each byte copied once. */
  resolve(text: Uint8Array, length: number, result: Uint8Array): void {
    const objects = this.#objects
    const placed = this.#placed
    const begun: BegunObject[] = []
    // The stretch of text to be written, and the disorders in it. Written from the end, since the last disorder of a
    // stretch is its outermost and rightmost one.
    let [start, end, innerFrom, innerTo] = [0, length, 0, objects.count]
    let before = length
    for (;;) {
      if (innerFrom < innerTo) {
        const object = innerTo - 1
        before = copyBefore(text, (objects.ends[object] as number) - 1, end, result, before)
        begun.push({ object, next: objects.placedTos[object] as number, start, innerFrom })
      } else {
        before = copyBefore(text, start, end, result, before)
      }

      const last = begun.at(-1)
      if (last === undefined) return
      const { object } = last
      if (last.next === objects.placedFroms[object]) {
        begun.pop()
        start = last.start
        end = (objects.starts[object] as number) + 1
        innerFrom = last.innerFrom
        innerTo = objects.innerFroms[object] as number
      } else {
        if (last.next !== objects.placedTos[object]) result[--before] = comma
        last.next -= 1
        start = placed.starts[last.next] as number
        end = placed.ends[last.next] as number
        innerFrom = placed.innerFroms[last.next] as number
        innerTo = placed.innerTos[last.next] as number
      }
    }
  }
}

/** An object in disorder that has been written in part, from its end. */
interface BegunObject {
  readonly object: number
  /** The placed member that was written last; it counts down. */
  next: number
  /** The rest of the stretch that the object ends: where it starts, and the first disorder in it. */
  readonly start: number
  readonly innerFrom: number
}

/** The objects in disorder, as columns. */
class Objects {
  count = 0
  starts: Int32Array = new Int32Array(firstRoom)
  ends: Int32Array = new Int32Array(firstRoom)
  innerFroms: Int32Array = new Int32Array(firstRoom)
  // Which of the placed members are theirs.
  placedFroms: Int32Array = new Int32Array(firstRoom)
  placedTos: Int32Array = new Int32Array(firstRoom)

  add({ start, innerFrom }: OpenObject, end: number, placedFrom: number, placedTo: number): void {
    const object = this.count
    // The column that grows last tells the room of all.
    if (object >= this.placedTos.length) this.#grow(object * 2)
    this.starts[object] = start
    this.ends[object] = end
    this.innerFroms[object] = innerFrom
    this.placedFroms[object] = placedFrom
    this.placedTos[object] = placedTo
    this.count = object + 1
  }

  #grow(room: number): void {
    this.starts = withRoom(this.starts, room)
    this.ends = withRoom(this.ends, room)
    this.innerFroms = withRoom(this.innerFroms, room)
    this.placedFroms = withRoom(this.placedFroms, room)
    this.placedTos = withRoom(this.placedTos, room)
  }
}

/** The members of all objects in disorder, as they shall stand; as columns. */
class PlacedMembers {
  count = 0
  starts: Int32Array = new Int32Array(firstRoom)
  ends: Int32Array = new Int32Array(firstRoom)
  innerFroms: Int32Array = new Int32Array(firstRoom)
  innerTos: Int32Array = new Int32Array(firstRoom)

  /** Adds the members at the first `placeCount` of `places`. */
  add(members: Members, places: Int32Array, placeCount: number): void {
    const from = this.count
    const to = from + placeCount
    if (to > this.innerTos.length) this.#grow(Math.max(to, from * 2))
    for (let index = 0; index < placeCount; index++) {
      const member = places[index] as number
      this.starts[from + index] = members.starts[member] as number
      this.ends[from + index] = members.ends[member] as number
      this.innerFroms[from + index] = members.innerFroms[member] as number
      this.innerTos[from + index] = members.innerTos[member] as number
    }
    this.count = to
  }

  #grow(room: number): void {
    this.starts = withRoom(this.starts, room)
    this.ends = withRoom(this.ends, room)
    this.innerFroms = withRoom(this.innerFroms, room)
    this.innerTos = withRoom(this.innerTos, room)
  }
}

// Equal names keep their order: only a greater one makes room.
function insertInOrder(places: Int32Array, text: Uint8Array, members: Members, from: number): void {
  for (let member = from; member < members.count; member++) {
    let free = member - from
    while (free > 0 && members.compare(text, places[free - 1] as number, member) > 0) {
      places[free] = places[free - 1] as number
      free -= 1
    }
    places[free] = member
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

// A column with room for so many numbers: the same, or a larger one that begins alike.
function withRoom(column: Int32Array, room: number): Int32Array {
  if (room <= column.length) return column
  const larger = new Int32Array(room)
  larger.set(column)
  return larger
}
