// Laws about the form of code: names, sizes, and what stands at the top of a file.

import ts from 'typescript'
import { codeFiles, isTest, lineOf, linesMatching, sourceFiles, walk } from './tree.mjs'

/** @typedef {import('./tree.mjs').Tree} Tree */
/** @typedef {{ name: string, why: string, find: (tree: Tree) => string[] }} Law */

const usualLines = 400
const commentColumns = 120
const maxFunctionLines = 70
const maxModuleFiles = 12

const emptyNames = /^(utils?|commons?|helpers?|types?|misc)$/

function fileNames(/** @type {Tree} */ tree) {
  return codeFiles(tree).flatMap((path) => {
    const bad = path.split('/').find((part) => emptyNames.test(part.replace(/\..*$/, '')))
    return bad === undefined ? [] : [`${path}: "${bad}" says nothing; name the concept`]
  })
}

/** The exemptions that name nothing which needs one. */
function unneeded(/** @type {object} */ table, /** @type {readonly string[]} */ needed) {
  const left = Object.keys(table).filter((name) => !needed.includes(name))
  return left.map((name) => `${name}: its exemption is no longer needed`)
}

function fileSize(/** @type {Tree} */ tree) {
  return codeFiles(tree).flatMap((path) => {
    const lines = tree.text(path).trimEnd().split('\n').length
    return lines > usualLines ? [`${path}: ${lines} lines`] : []
  })
}

/** A line that is a comment, or ends with one. The blank before the slashes keeps out the addresses in strings. */
const holdsComment = /^\s*(\/[/*]|\*)|\s\/[/*]/

function commentWidth(/** @type {Tree} */ tree) {
  const isWide = (/** @type {string} */ line) => line.length > commentColumns && holdsComment.test(line)
  const message = `a comment that is wider than ${commentColumns} columns`
  return sourceFiles(tree).flatMap((path) => linesMatching(tree, path, { test: isWide }, message))
}

/** The name under which a reader knows a function: its own, or that of the variable or property that holds it. */
function functionName(/** @type {ts.Node} */ node) {
  const named =
    /** @type {ts.FunctionDeclaration} */ (node).name ?? /** @type {ts.VariableDeclaration} */ (node.parent).name
  return named === undefined || !ts.isIdentifier(named) ? 'anonymous' : named.text
}

function functionSize(/** @type {Tree} */ tree) {
  /** @type {string[]} */
  const findings = []
  /** @type {string[]} */
  const needed = []
  for (const path of codeFiles(tree).filter((path) => !isTest(path))) {
    const file = tree.syntax(path)
    walk(file, (node) => {
      if (!ts.isFunctionLike(node) || !('body' in node) || node.body === undefined) return
      const lines = file.getLineAndCharacterOfPosition(node.end).line + 2 - lineOf(node)
      if (lines <= maxFunctionLines) return
      const name = `${path}#${functionName(node)}`
      needed.push(name)
      if (!(name in tree.exemptions.longFunctions)) {
        findings.push(
          `${path}:${lineOf(node)}: ${functionName(node)} has ${lines} lines; the limit is ${maxFunctionLines}`,
        )
      }
    })
  }
  return [...findings, ...unneeded(tree.exemptions.longFunctions, needed)]
}

function moduleSize(/** @type {Tree} */ tree) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const path of sourceFiles(tree)) {
    const folder = path.replace(/\/[^/]+$/, '')
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const large = [...counts].filter(([, count]) => count > maxModuleFiles)
  const findings = large.flatMap(([folder, count]) => {
    const limit = tree.exemptions.largeModules[folder]?.files ?? maxModuleFiles
    return count > limit ? [`${folder}: ${count} source files; the limit is ${limit}`] : []
  })
  return [
    ...findings,
    ...unneeded(
      tree.exemptions.largeModules,
      large.map(([folder]) => folder),
    ),
  ]
}

function moduleContract(/** @type {Tree} */ tree) {
  // These hold a module for each adapter.
  const moduleOf = /^src\/(?:(?:stores|brokers|http)\/[^/]+|[^/]+)(?=\/)/
  const modules = new Set(sourceFiles(tree).flatMap((path) => moduleOf.exec(path) ?? []))
  return [...modules].flatMap((module) => {
    const contract = `${module}/index.ts`
    if (!tree.has(contract)) return [`${module}: a module has an index.ts, its only entrance`]
    const [first = ''] = tree.text(contract).split('\n')
    return /^(\/\/|\/\*\*?) *\S{2,}/.test(first)
      ? []
      : [`${contract}: its first line is a comment that says what the module promises`]
  })
}

function firstComment(/** @type {Tree} */ tree) {
  const own = codeFiles(tree).filter((path) => !isTest(path)) // a test is about the source it is named after
  return own.flatMap((path) => {
    const text = tree.text(path).replace(/^#!.*\n/, '')
    return /^(\/\/|\/\*)/.test(text) ? [] : [`${path}: begins with a comment that says which concept it is`]
  })
}

/** @type {readonly Law[]} */
export const formLaws = [
  { name: 'file-names', why: 'a file is named after its concept', find: fileNames },
  { name: 'function-size', why: 'a function fits on a screen', find: functionSize },
  { name: 'module-size', why: 'a module is understood as a whole', find: moduleSize },
  { name: 'module-contract', why: 'a module is entered by its contract', find: moduleContract },
  { name: 'first-comment', why: 'a reader knows at once what a file is for', find: firstComment },
  { name: 'comment-width', why: 'comments are wrapped, so that they are read', find: commentWidth },
]

/** What is printed and fails nothing: eyes judge it. @type {readonly Law[]} */
export const formHints = [
  { name: 'file-size', why: `files over ${usualLines} lines may be two concepts`, find: fileSize },
]
