// The pages people read, and the code blocks in them.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

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
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed.split('\n').filter((page) => page !== '' && !page.startsWith('docs/reference/api/'))
}

/** The fenced blocks of a page, in order. */
export function fences(page: string): Fence[] {
  const found: Fence[] = []
  let open: { line: number; info: string; lines: string[] } | undefined
  readFileSync(`${root}/${page}`, 'utf8')
    .split('\n')
    .forEach((text, index) => {
      const mark = /^```(.*)$/.exec(text)
      if (mark === null) open?.lines.push(text)
      else if (open === undefined) open = { line: index + 1, info: mark[1] ?? '', lines: [] }
      else {
        found.push({ page, line: open.line, info: open.info, text: `${open.lines.join('\n')}\n` })
        open = undefined
      }
    })
  if (open !== undefined) throw new Error(`${page}:${open.line}: the block is not closed`)
  return found
}
