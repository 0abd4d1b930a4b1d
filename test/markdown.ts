// The pages people read, and the code blocks in them.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { repositoryFiles } from '../tools/repository-files.mjs'

export const root: string = fileURLToPath(new URL('..', import.meta.url))

/** A fenced block: its language, its text, and the line on which it opens. */
export interface Fence {
  readonly page: string
  readonly line: number
  readonly info: string
  readonly text: string
}

/** Every page of the repository that is written by hand. */
export function pages(): string[] {
  return repositoryFiles(root).filter((path) => path.endsWith('.md') && !path.startsWith('docs/reference/api/'))
}

/** The blocks of a page, in order. */
export function fences(page: string): Fence[] {
  return fencesOf(page, readFileSync(`${root}/${page}`, 'utf8'))
}

/** What may stand behind the opening of a block: nothing that looks like code escapes the tests by its spelling. */
const anyPage = /^(ts|text|sh|(ts|text) (examples|test\/e2e\/platforms\/fixtures)\/[\w./[\]-]+)$/
const recipes = /^(ts|text|sh|(ts|diff) [\w./-]+)$/

/** The blocks of a text, in order. Refuses a block that is spelled in any but the one way, or is of an unknown kind. */
export function fencesOf(page: string, markdown: string): Fence[] {
  const found: Fence[] = []
  const known = page === 'CONTRIBUTING.md' ? recipes : anyPage
  let open: { line: number; info: string; lines: string[] } | undefined
  markdown.split('\n').forEach((text, index) => {
    if (open === undefined) {
      const mark = /^[\s>*+\d.)-]*(?:`{3,}|~{3,})/.exec(text)
      if (mark === null) return
      const info = text.slice(3)
      if (mark[0] !== '```' || !known.test(info)) {
        throw new Error(`${page}:${index + 1}: a block opens with three backticks at the margin and a known kind`)
      }
      open = { line: index + 1, info, lines: [] }
    } else if (text === '```') {
      found.push({ page, line: open.line, info: open.info, text: `${open.lines.join('\n')}\n` })
      open = undefined
    } else open.lines.push(text)
  })
  if (open !== undefined) throw new Error(`${page}:${open.line}: the block is not closed`)
  return found
}

/** How many words stand in a section of a page before its first code, table, list or quotation. */
export interface Lead {
  readonly heading: string
  readonly words: number
}

/** The leads of the sections that have something literal: code, a table, a list, a quotation. */
export function leadsOf(markdown: string): Lead[] {
  const found: Lead[] = []
  let heading: string | undefined
  let words = 0
  let isCode = false
  for (const line of markdown.split('\n')) {
    const isFence = line.startsWith('```')
    if (!isCode && /^#+ /.test(line)) {
      heading = line
      words = 0
    } else if (heading !== undefined && (isFence || /^(\||- |\d+\. |> |<!-- made)/.test(line))) {
      found.push({ heading, words })
      heading = undefined
    } else words += line.split(/\s+/).filter((word) => word !== '').length
    if (isFence) isCode = !isCode
  }
  return found
}
