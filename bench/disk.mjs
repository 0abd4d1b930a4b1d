// The disk under a bench: a folder that is gone with it, and raw flushes that take their turns beside the subjects.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const page = Buffer.alloc(8192, 1)

/**
 * Lends a folder, and a subject that flushes: what a flush takes is what there was to be had.
 * @template Case
 * @param {(folder: string, flushes: import('./harness.mjs').Subject) => AsyncGenerator<Case>} use
 */
export async function* withDisk(use) {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-bench-'))
  const file = openSync(join(folder, 'flushed'), 'w')
  const run = () => {
    writeSync(file, page, 0, page.length, 0)
    fdatasyncSync(file)
  }
  try {
    yield* use(folder, { name: 'raw fdatasync of 8 kB', run })
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true, force: true })
  }
}
