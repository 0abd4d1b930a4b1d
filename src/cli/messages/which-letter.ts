// Which dead letters a command is about: one by its id, or what many have in common.

import { RepriseError } from '../../kernel/index.js'
import { deadLetters, type ListedLetter, type WhichLetter } from '../../messaging/index.js'
import { printable } from '../io.js'
import { type GivenOptions, type OptionGroup, UsageError } from '../option-table.js'
import type { CommandStore } from '../store/open-store.js'

/** The options that name dead letters. */
export const letterOptions: OptionGroup = {
  title: 'Letters',
  options: [
    { name: 'reader', kind: 'text', value: 'NAME', text: 'those of this relay or consumer' },
    { name: 'key', kind: 'text', value: 'KEY', text: 'those of this key' },
    { name: 'code', kind: 'text', value: 'CODE', text: 'those with this cause' },
    { name: 'id', kind: 'text', value: 'ID', text: 'one letter: the id of its message; with --reader' },
    {
      name: 'source',
      kind: 'text',
      value: 'SOURCE',
      text: 'with --id: the source of its message (found where only one source has the id)',
    },
  ],
}

/** What the options say of dead letters. */
export interface NamedLetters {
  readonly reader: string | undefined
  readonly key: string | undefined
  readonly code: string | undefined
}

const mostListed = 1_000

/** What many letters have in common, by the options. */
export function lettersNamed(given: GivenOptions): NamedLetters {
  return { reader: given.text('reader'), key: given.text('key'), code: given.text('code') }
}

/** Whether the options name one letter. Refuses what names only a part of one. */
export function isOneLetter(given: GivenOptions): boolean {
  if (given.has('source') && !given.has('id')) throw new UsageError('--source goes with --id')
  if (!given.has('id')) return false
  if (!given.has('reader')) throw new UsageError('--id needs --reader: each reader has its own letter of a message')
  for (const name of ['key', 'code']) {
    if (given.has(name)) throw new UsageError(`--id stands in place of --${name}`)
  }
  return true
}

/**
 * The letter that is named; undefined: there is none. Without `--source` it is looked for among the letters of the
 * reader.
 */
export async function letterNamed(store: CommandStore, given: GivenOptions): Promise<WhichLetter | undefined> {
  const [reader, id] = [given.text('reader') as string, given.text('id') as string]
  const source = given.text('source')
  if (source !== undefined) return { reader, source, id }
  const found = new Set<string>()
  for (const state of [undefined, 'closed'] as const) {
    const listed: readonly ListedLetter[] = await deadLetters(store).list(
      { reader, limit: mostListed, state },
      { deadline: '30s' },
    )
    for (const letter of listed) if (letter.id === id) found.add(letter.source)
    if (listed.length === mostListed && found.size === 0) {
      throw new UsageError(
        `--source is missing: ${mostListed} letters of the reader were looked through, and more are there`,
      )
    }
  }
  const [one, another] = found
  if (another !== undefined) throw new UsageError(`--source is missing: one of ${[...found].join(', ')}`)
  return one === undefined ? undefined : { reader, source: one, id }
}

/** What a command fails with that is about letters of a reader which neither is there nor has any. */
export function noSuchReader(reader: string): RepriseError {
  const message = `There is no reader ${printable(reader)}, and no dead letter of one.`
  return new RepriseError('LETTER_REFUSED', message, { details: { because: 'absent' } })
}

/** What a command fails with that has no letter to decide on. */
export function noSuchLetter(): RepriseError {
  return new RepriseError('LETTER_REFUSED', 'There is no such dead letter.', { details: { because: 'absent' } })
}
