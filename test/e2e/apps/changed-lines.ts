// How many lines make an app safe, counted against the app as it was.

import { type Form, filesOf, forms } from './project.js'

/** Lines, without empty ones. */
export interface ChangedLines {
  /** Lines of the app that are not there any more, or not as they were. */
  readonly changed: number
  /** Lines that are there beyond these. */
  readonly added: number
  /** Lines that import something and were not there before. */
  readonly imports: number
}

const isImport = (line: string): boolean => line.startsWith('import ')

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}

/** How many lines two texts have in common, in the same order. */
function commonLines(before: readonly string[], after: readonly string[]): number {
  let row = new Array<number>(after.length + 1).fill(0)
  for (const line of before) {
    const next = [0]
    for (const [index, other] of after.entries()) {
      next.push(line === other ? (row[index] ?? 0) + 1 : Math.max(row[index + 1] ?? 0, next[index] ?? 0))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/**
 * Compares a form of an app with the app as it was. Text of migrations counts where somebody writes it; Prisma writes
 * its own, from its schema.
 */
export function changedLines(app: string, form: Form): ChangedLines {
  const before = filesOf(app, 'as-it-was')
  let [changed, added, imports] = [0, 0, 0]
  for (const [name, text] of filesOf(app, form)) {
    if (name.endsWith('.sql') && before.has('schema.prisma')) continue
    const [was, is] = [linesOf(before.get(name) ?? ''), linesOf(text)]
    imports += is.filter((line) => isImport(line) && !was.includes(line)).length
    const [wasCode, isCode] = [was, is].map((lines) => lines.filter((line) => !isImport(line))) as [string[], string[]]
    const common = commonLines(wasCode, isCode)
    changed += wasCode.length - common
    added += isCode.length - common - (wasCode.length - common)
  }
  return { changed, added: Math.max(added, 0), imports }
}

/** The apps, with what they are made of. */
export const apps = {
  express: 'Express, Drizzle, pg; a global `express.json()`, authentication; drop-in form',
  fastify: 'Fastify with schemas, SQLite; drop-in form',
  nest: 'Nest with guards and pipes, Prisma 7, PostgreSQL; decorators',
  script: 'a script that pays through a bank; HTTP client, policy, leased operation, SQLite',
} as const

/** Every app, and how many lines make it safe by hand and with Reprise: changed, added, imports. */
export function appLinesTable(): [head: string[], rows: string[][]] {
  const rows = Object.entries(apps).map(([app, made]) => {
    const cells = forms.slice(1).map((form) => {
      const { changed, added, imports } = changedLines(app, form)
      return `${changed} + ${added} + ${imports}`
    })
    return [made, ...cells]
  })
  return [['app', 'by hand', 'with Reprise'], rows]
}
