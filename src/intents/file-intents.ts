// Keys in files of a folder, one for each intent, for programs on Node. The file system decides who is first.

import { builtin, RepriseError, uuidv7 } from '../kernel/index.js'
import type { IntentStorage } from './storage.js'

const mostLooks = 10

/** Takes the errors of these codes for an answer, undefined, and passes on all others. */
function unlessCode(...codes: readonly string[]): (error: unknown) => undefined {
  return (error) => {
    if (!codes.includes((error as { readonly code: string }).code)) throw error
    return undefined
  }
}

// A UUID, then the time of its minting: digits, of which there are 13 until the year 2286.
const wholeKey = /^([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})(?!\S)(?:\s+(\d{13,})(?!\S))?/

/**
 * The text of a file without what an editor or a transfer put around it. Where the time is cut the key is kept for
 * good: to a receiver that has forgotten it, it is as good as a new one. A cut key may have been sent: no new one takes
 * its place before somebody has looked.
 */
function textOf(file: string, read: string): string {
  const [, key, mintedAtMs = 'Infinity'] = wholeKey.exec(read) ?? []
  if (key !== undefined) return `${key} ${mintedAtMs}`
  throw new RepriseError(
    'INTENT_UNREADABLE',
    `The key of an intent in ${file} is cut or garbled. Find out whether it was carried out, then remove the file.`,
  )
}

/**
 * Keeps keys in files of a folder, which is made if it is not there. A file appears whole or not at all, also where the
 * process or the machine ends meanwhile, and one of several processes is first. The folder is on a file system with
 * hard links. A file without a whole key is refused with `INTENT_UNREADABLE`. Needs Node, else `RUNTIME_UNSUPPORTED`.
 */
export function fileIntents(folder: string): IntentStorage {
  const files = builtin<typeof import('node:fs/promises')>('node:fs/promises')
  if (files === undefined) throw new RepriseError('RUNTIME_UNSUPPORTED', 'Files need node:fs, which is not here.')
  const fileOf = (id: string): string => `${folder}/${id}`
  const keptIn = async (file: string): Promise<string | undefined> => {
    const read = await files.readFile(file, 'utf8').catch(unlessCode('ENOENT'))
    return read === undefined ? undefined : textOf(file, read)
  }
  // A link is made or refused, and never takes the place of a file.
  const first = async (draft: string, id: string, key: string): Promise<string> => {
    for (let looks = 0; looks < mostLooks; looks += 1) {
      const isMade = await files.link(draft, fileOf(id)).then(() => true, unlessCode('EEXIST'))
      const kept = isMade ? key : await keptIn(fileOf(id))
      if (kept !== undefined) return kept
    }
    throw new RepriseError('ROW_UNSETTLED', 'The key of an intent came and went every time it was looked at.')
  }
  return {
    async keep(id, key) {
      await files.mkdir(folder, { recursive: true })
      const draft = fileOf(`draft.${uuidv7()}`)
      const file = await files.open(draft, 'wx')
      try {
        await file.writeFile(key)
        // On the disk before it has its name: after a crash of the machine a name without its key would be no key.
        await file.sync()
      } finally {
        await file.close()
      }
      try {
        return await first(draft, id, key)
      } finally {
        await files.rm(draft, { force: true })
      }
    },
    async forget(id, key) {
      if ((await keptIn(fileOf(id))) !== key) return
      // Taken aside, then looked at again: another process may have let go of the same key meanwhile, and begun anew.
      const aside = fileOf(`draft.${uuidv7()}`)
      await files.rename(fileOf(id), aside).catch(unlessCode('ENOENT'))
      if ((await keptIn(aside)) !== key) await files.link(aside, fileOf(id)).catch(unlessCode('ENOENT', 'EEXIST'))
      await files.rm(aside, { force: true })
    },
  }
}
