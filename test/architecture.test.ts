// ARCHITECTURE.md tells the path of one request by file: every file and function it names is there, and each station is
// reached by imports from one before it. That the stations are entered is tested by test/walk. Its tree of modules is
// that of src.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
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

// What the paragraph before the table names: it runs when a route is defined, and links what the stations call.
const definition: readonly string[] = (() => {
  const [, text = ''] = /^When a route is defined,([\s\S]*?)<!-- stations -->/m.exec(page) ?? []
  return [...text.matchAll(/`(src\/[\w./-]+\.ts)`/g)].map(([, path = '']) => path)
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
  const areNear = (one: string, other: string): boolean => one === other || leadsTo(one, other) || leadsTo(other, one)
  const files = stations.map(({ file }) => file)
  const apart = files.filter((file, index) => {
    const before = [...definition, ...files.slice(0, index)]
    return !before.some((one) => areNear(one, file))
  })
  // By twos: each station of the definition leads to the next.
  const gaps = definition.slice(1).filter((file, index) => !areNear(definition[index] ?? '', file))
  expect(definition.length).toBeGreaterThanOrEqual(2)
  expect(gaps).toEqual([])
  expect(apart).toEqual([])
})

describe('the tree of modules', () => {
  const [, tree = ''] = /^src\/\n([\s\S]*?)^test\//m.exec(page) ?? []
  const lines = tree.split('\n').filter((line) => line !== '')
  const foldersOf = (path: string): string[] =>
    readdirSync(join(root, path), { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []))
  const named = (text: string): string[] =>
    [...text.matchAll(/(?<![\w/])([\w-]+)\/(?!\w)/g)].map(([, name = '']) => name)

  it('has every module of src', () => {
    const modules = lines.filter((line) => /^ {2}\S+\/ /.test(line)).flatMap((line) => named(line).slice(0, 1))
    expect(modules.toSorted()).toEqual(foldersOf('src').toSorted())
  })

  it('names the folders of each module', () => {
    for (const line of lines) {
      const [, indent = '', path = '', told = ''] = /^( +)([\w.]+\/?) +(.*)$/.exec(line) ?? []
      if (indent === '  ' && path.endsWith('/') && path !== 'http/')
        expect([path, named(told).toSorted()]).toEqual([path, foldersOf(`src/${path}`).toSorted()])
    }
    const http = lines.filter((line) => line.startsWith('    ')).map((line) => line.trim())
    const parts = http.flatMap((line) => (line.startsWith('adapters') ? named(line) : named(line).slice(0, 1)))
    expect(parts.toSorted()).toEqual(foldersOf('src/http').toSorted())
    const core = http.find((line) => line.startsWith('core/')) ?? ''
    expect(named(core).slice(1).toSorted()).toEqual(foldersOf('src/http/core').toSorted())
  })

  it('names files that each store has', () => {
    const [, sentence = ''] = /^Each store has ([^;]+);/m.exec(page) ?? []
    const files = [...sentence.matchAll(/`([\w.-]+\.ts)`/g)].map(([, name = '']) => name)
    expect(files.length).toBeGreaterThanOrEqual(5)
    const stores = foldersOf('src/stores').filter((name) => name !== 'sql')
    const absent = stores.flatMap((store) => files.map((file) => `src/stores/${store}/${file}`))
    expect(absent.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })
})

it('names files and folders that exist', () => {
  const named = [...page.matchAll(/`((?:src|test|tools|docs|bench|examples)\/[\w./-]+)`/g)].map(([, path = '']) => path)
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
})
