// ARCHITECTURE.md tells the path of one request by file: every file and function it names is there, and each station
// leads to the next by imports.

import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './markdown.js'

const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** A stop on the path: a row of the table between the markers. */
interface Station {
  readonly file: string
  readonly names: readonly string[]
}

const stations: readonly Station[] = (() => {
  const [, table = ''] = /<!-- stations -->([\s\S]*?)<!-- \/stations -->/.exec(page) ?? []
  const rows = [...table.matchAll(/^\| \d+ \| `([^`]+)` \| (.+?) \| .+ \|$/gm)]
  return rows.map(([, file = '', names = '']) => ({
    file: `src/${file}`,
    names: [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  }))
})()

/** The files that a file imports or exports from, types included. */
function importsOf(path: string): string[] {
  const named = [...read(path).matchAll(/from '(\.\.?\/[^']+)\.js'/g)]
  return named.map(([, name = '']) => posix.join(posix.dirname(path), `${name}.ts`))
}

/** Whether one file reaches another by an import, straight or through index files. */
function leadsTo(from: string, to: string): boolean {
  const seen = new Set(importsOf(from))
  for (const path of seen) {
    if (path === to) return true
    if (path.endsWith('/index.ts')) for (const next of importsOf(path)) seen.add(next)
  }
  return false
}

it('names about fifteen stations, each a file with the functions that are named', () => {
  expect(stations.length).toBeGreaterThanOrEqual(10)
  expect(stations.length).toBeLessThanOrEqual(17)
  const wrong = stations.flatMap(({ file, names }) => {
    if (!existsSync(join(root, file))) return [`there is no ${file}`]
    const text = read(file)
    return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)).map((name) => `${file} has no ${name}`)
  })
  expect(wrong).toEqual([])
})

it('leads from station to station by imports, in either direction where a port turns the dependency around', () => {
  const apart = stations.slice(1).flatMap(({ file }, index) => {
    const before = stations[index]?.file ?? ''
    const isNear = before === file || leadsTo(before, file) || leadsTo(file, before)
    return isNear ? [] : [`${before} and ${file}`]
  })
  expect(apart).toEqual([])
})

it('names files and folders that exist', () => {
  const named = [...page.matchAll(/`((?:src|test|tools|docs|bench|examples)\/[\w./-]+)`/g)].map(([, path = '']) => path)
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
})
