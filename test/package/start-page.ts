// The page for newcomers, and those of its blocks that build apps: test/package/start.test.ts runs them as they stand.

import { type Fence, fences } from '../markdown.js'

/** Its path, from the root of the repository. */
export const startPage = 'docs/start.md'

/** The blocks from `npm pack` on. */
export function appBlocks(): Fence[] {
  const all = fences(startPage)
  return all.slice(all.findIndex(({ text }) => /^npm pack$/m.test(text)))
}

/** Those of them that make the app on PostgreSQL, from its `mkdir` to the next one. */
export function postgresBlocks(): Fence[] {
  const all = appBlocks()
  const from = all.findIndex(({ text }) => text.startsWith('mkdir shop-postgres\n'))
  const length = all.slice(from + 1).findIndex(({ text }) => text.startsWith('mkdir '))
  return all.slice(from, from + 1 + length)
}

const lines = new Set(
  appBlocks()
    .slice(1)
    .map(({ line }) => line),
)

/** Whether a block is one of them, in an app: what is done in the clone is known to test/docs.test.ts too. */
export function isAppBlock({ page, line }: Fence): boolean {
  return page === startPage && lines.has(line)
}
