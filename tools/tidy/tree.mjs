// What the laws look at: the files of the repository as texts and syntax trees.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { repositoryFiles } from '../repository-files.mjs'
import * as exemptions from './exemptions.mjs'

/**
 * @typedef {object} Exemptions
 * @property {Readonly<Record<string, string>>} longFunctions
 * @property {Readonly<Record<string, { files: number, why: string }>>} largeModules
 * @property {Readonly<Record<string, string>>} testedElsewhere
 */

/**
 * @typedef {object} Tree
 * @property {readonly string[]} paths every file, relative to the root
 * @property {(path: string) => boolean} has whether there is such a file or folder
 * @property {(path: string) => string} text
 * @property {(path: string) => ts.SourceFile} syntax the parsed file, with parents
 * @property {Exemptions} exemptions the exceptions that hold for it
 */

/**
 * @param {readonly string[]} paths
 * @param {(path: string) => string} text
 * @param {Exemptions} exemptions
 * @returns {Tree}
 */
function treeOf(paths, text, exemptions) {
  /** @type {Map<string, ts.SourceFile>} */
  const parsed = new Map()
  const places = new Set(
    paths.flatMap((path) => path.split('/').map((_, depth, parts) => parts.slice(0, depth + 1).join('/'))),
  )
  return {
    paths,
    has: (path) => path === '' || places.has(path),
    text,
    exemptions,
    syntax: (path) => {
      const known = parsed.get(path)
      if (known !== undefined) return known
      const file = ts.createSourceFile(path, text(path), ts.ScriptTarget.Latest, true)
      parsed.set(path, file)
      return file
    },
  }
}

/** The repository on disk. */
export function treeOnDisk(/** @type {string} */ root) {
  /** @type {Map<string, string>} */
  const texts = new Map()
  const text = (/** @type {string} */ path) => {
    const known = texts.get(path) ?? readFileSync(join(root, path), 'utf8')
    texts.set(path, known)
    return known
  }
  return treeOf(repositoryFiles(root), text, exemptions)
}

/**
 * A made-up repository, for tests of the laws.
 * @param {Readonly<Record<string, string>>} texts
 * @param {Partial<Exemptions>} [given]
 */
export function treeOfTexts(texts, given = {}) {
  const none = { longFunctions: {}, largeModules: {}, testedElsewhere: {} }
  return treeOf(Object.keys(texts).sort(), (path) => texts[path] ?? '', { ...none, ...given })
}

const isFixture = (/** @type {string} */ path) => path.includes('/fixtures/')

export const isTest = (/** @type {string} */ path) => /\.test\.ts$/.test(path)

/** Every file of code: sources, tests, tools, benches, examples; not fixtures, which may be wrong on purpose. */
export function codeFiles(/** @type {Tree} */ tree) {
  return tree.paths.filter(
    (path) => /^(src|test|tools|bench|examples)\/.+\.(ts|mjs|cjs)$/.test(path) && !isFixture(path),
  )
}

/** What is built and shipped. */
export function sourceFiles(/** @type {Tree} */ tree) {
  return tree.paths.filter((path) => /^src\/.+\.ts$/.test(path) && !/\.(test|fuzz)\.ts$/.test(path))
}

export function testFiles(/** @type {Tree} */ tree) {
  return tree.paths.filter((path) => isTest(path) && !isFixture(path))
}

export function markdownFiles(/** @type {Tree} */ tree) {
  return tree.paths.filter((path) => path.endsWith('.md') && !isFixture(path))
}

/** Calls the visitor on a node and on everything below it. */
export function walk(/** @type {ts.Node} */ node, /** @type {(node: ts.Node) => void} */ visit) {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}

/** The line, from 1, on which a node begins. */
export function lineOf(/** @type {ts.Node} */ node) {
  const file = node.getSourceFile()
  return file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1
}

/**
 * Findings for every line of a text that matches.
 * @param {Tree} tree
 * @param {string} path
 * @param {{ test: (line: string) => boolean }} pattern
 * @param {string} message
 */
export function linesMatching(tree, path, pattern, message) {
  const lines = tree.text(path).split('\n')
  return lines.flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}: ${message}`] : []))
}
