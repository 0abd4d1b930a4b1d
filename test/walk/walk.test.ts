// How much of the package one call enters: measured now, compared with the table in ARCHITECTURE.md, and that with
// limits.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from '../markdown.js'

/** What a row of the walk counts. */
interface Row {
  readonly name: string
  readonly files: number
  readonly functions: number
}

/** The most that a call may enter. A row that comes near it says that a hop too many was added. */
const limits: readonly Row[] = [
  { name: 'keyed POST', files: 50, functions: 200 },
  { name: 'keyed POST, replayed', files: 40, functions: 150 },
  { name: 'policy.run, success', files: 8, functions: 30 },
  { name: 'policy.run, one failure', files: 15, functions: 80 },
]

/** The table between the markers of ARCHITECTURE.md. */
function writtenRows(): Row[] {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const [, table = ''] = /<!-- walk -->([\s\S]*?)<!-- \/walk -->/.exec(page) ?? []
  return [...table.matchAll(/^\| (.+?) \| (\d+) \| (\d+) \|$/gm)].map(([, name = '', files, functions]) => ({
    name,
    files: Number(files),
    functions: Number(functions),
  }))
}

/** The stations in ARCHITECTURE.md that are a function, each as its file in dist and its name. */
function stations(): { readonly path: string; readonly name: string | undefined }[] {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const [, table = ''] = /<!-- stations -->([\s\S]*?)<!-- \/stations -->/.exec(page) ?? []
  const rows = [...table.matchAll(/^\| \d+ \| `([^`]+)\.ts` \| (.+?) \| .+ \|$/gm)]
  return rows.flatMap(([, file, named = '']) => {
    // A type is nothing that can be entered, and what a function returned has no name.
    if (named.startsWith('the type')) return []
    return [{ path: `${file}.js`, name: /^`(\w+)`$/.exec(named)?.[1] }]
  })
}

/** The rows that are larger than those of the same name, and those that have none. */
function larger(rows: readonly Row[], most: readonly Row[]): Row[] {
  return rows.filter(({ name, files, functions }) => {
    const limit = most.find((row) => row.name === name)
    return limit === undefined || files > limit.files || functions > limit.functions
  })
}

it('the table of the walk in ARCHITECTURE.md has every row, within its limit', () => {
  const written = writtenRows()
  expect(written.map(({ name }) => name)).toEqual(limits.map(({ name }) => name))
  expect(larger(written, limits)).toEqual([])
})

it('a call enters no more than the table says (npm run walk -- --write writes it anew), and every station', () => {
  const walk = spawnSync(process.execPath, ['tools/run.mjs', 'walk', '--json', '--verbose'], {
    cwd: root,
    encoding: 'utf8',
  })
  expect(walk.status, walk.stderr).toBe(0)
  const measured: (Row & { readonly entered: Readonly<Record<string, readonly string[]>> })[] = JSON.parse(walk.stdout)
  expect(measured.map(({ name }) => name)).toEqual(limits.map(({ name }) => name))
  expect(larger(measured, writtenRows())).toEqual([])
  const entered = measured[0]?.entered ?? {}
  const passed = stations().filter(({ path, name }) => name === undefined || entered[path]?.includes(name))
  expect(passed.filter(({ path }) => entered[path] !== undefined)).toEqual(stations())
})
