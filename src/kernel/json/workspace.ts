// The memory of a pass, kept from one document to the next: for small documents, making it would take longer than using it.
// It still holds bytes of the last document, and nothing can read them: a pass sees what it has loaded itself.

import { DocumentPass } from './document.js'
import { type Pass, padding } from './pass.js'

const firstSize = 4_096
// Memory for larger documents is not kept, so that an idle process holds little.
const largestKept = 262_144

/** All that a pass needs beside its source. */
export class Workspace {
  readonly #pass: Pass = {
    source: new Uint8Array(firstSize),
    end: 0,
    fromString: false,
    at: 0,
    out: new Uint8Array(firstSize),
    outAt: 0,
  }
  /** Reads what has been loaded. */
  readonly document: DocumentPass = new DocumentPass(this.#pass)
  #result: Uint8Array = new Uint8Array(0)

  /** Room for a source of so many bytes. */
  sourceOf(size: number): Uint8Array {
    this.#pass.source = atLeast(this.#pass.source, size + padding)
    return this.#pass.source.subarray(0, size)
  }

  /** Begins a pass over the first `end` bytes of the source. */
  begin(end: number, fromString: boolean): void {
    const pass = this.#pass
    pass.source.fill(0, end, end + padding)
    pass.end = end
    pass.fromString = fromString
    pass.at = 0
    pass.out = atLeast(pass.out, end + padding)
    pass.outAt = 0
  }

  /** The canonical text of the document that has been read: valid until the next one begins. */
  inOrder(): Uint8Array {
    const { out, outAt } = this.#pass
    const { disorders } = this.document
    if (disorders.count === 0) return out.subarray(0, outAt)
    this.#result = atLeast(this.#result, outAt)
    disorders.resolve(out, outAt, this.#result)
    return this.#result.subarray(0, outAt)
  }

  /** How many bytes its largest part has. */
  get size(): number {
    return Math.max(this.#pass.source.length, this.#pass.out.length)
  }
}

function atLeast(bytes: Uint8Array, size: number): Uint8Array {
  return size <= bytes.length ? bytes : new Uint8Array(size)
}

let idle: Workspace | undefined

/** A workspace of one's own, to be given back. Taken away meanwhile, so that a call inside a call gets another. */
export function takeWorkspace(): Workspace {
  const workspace = idle ?? new Workspace()
  idle = undefined
  return workspace
}

/** Keeps a workspace for the next document, unless it has become large. */
export function giveBack(workspace: Workspace): void {
  if (workspace.size <= largestKept + padding) idle = workspace
}
