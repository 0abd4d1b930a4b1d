// Laws about what code says and does: names that count exactly, tests beside sources, codes, comments.

import { posix } from 'node:path'
import ts from 'typescript'
import { codeFiles, lineOf, linesMatching, sourceFiles, testFiles, walk } from './tree.mjs'

/** @typedef {import('./tree.mjs').Tree} Tree */

/**
 * Findings for every node of the given files that the judge has something to say about.
 * @param {Tree} tree
 * @param {readonly string[]} paths
 * @param {(node: ts.Node) => string | undefined} judge
 */
function nodesFound(tree, paths, judge) {
  return paths.flatMap((path) => {
    /** @type {string[]} */
    const findings = []
    walk(tree.syntax(path), (node) => {
      const message = judge(node)
      if (message !== undefined) findings.push(`${path}:${lineOf(node)}: ${message}`)
    })
    return findings
  })
}

const countsWrongly = /^(num|number_?of|max|min|total)?_?(retries|retry_?count)$/i

function exactCounts(/** @type {Tree} */ tree) {
  return nodesFound(tree, sourceFiles(tree), (node) => {
    const text = ts.isIdentifier(node) || ts.isStringLiteral(node) ? node.text : ''
    return countsWrongly.test(text) ? `"${text}" is unclear by one: count attempts, the first included` : undefined
  })
}

function isTopLevel(/** @type {ts.Node} */ node) {
  for (let above = node.parent; !ts.isSourceFile(above); above = above.parent) {
    if (ts.isFunctionLike(above) || ts.isClassStaticBlockDeclaration(above)) return false
  }
  return true
}

function noTopLevelAwait(/** @type {Tree} */ tree) {
  return nodesFound(tree, sourceFiles(tree), (node) => {
    const waits = ts.isAwaitExpression(node) || (ts.isForOfStatement(node) && node.awaitModifier !== undefined)
    return waits && isTopLevel(node) ? 'await at the top level makes require() of the package fail' : undefined
  })
}

/** Whether a file has something to test: a function with a body. Constants and types have nothing. */
function hasLogic(/** @type {ts.SourceFile} */ file) {
  let found = false
  walk(file, (node) => {
    found ||= ts.isFunctionLike(node) && 'body' in node && node.body !== undefined
  })
  return found
}

/** The files of one folder that a test in it reaches: what it imports there, and what that imports there. */
function reachedInFolder(/** @type {Tree} */ tree, /** @type {string} */ test) {
  const folder = test.replace(/[^/]+$/, '')
  const reached = new Set([test])
  for (const path of reached) {
    for (const [, name = ''] of tree.text(path).matchAll(/from '\.\/([^'/]+)\.js'/g)) {
      if (tree.has(`${folder}${name}.ts`)) reached.add(`${folder}${name}.ts`)
    }
  }
  return reached
}

/** Where `path` imports from, as files of the tree. */
function importsOf(/** @type {Tree} */ tree, /** @type {string} */ path) {
  const folder = path.replace(/[^/]+$/, '')
  return [...tree.text(path).matchAll(/from '(\.\.?\/[^']+)\.js'/g)]
    .map(([, name = '']) => posix.join(folder, `${name}.ts`))
    .filter((target) => tree.has(target))
}

/** The files that a test reaches by imports, step by step. */
function reachedFrom(/** @type {Tree} */ tree, /** @type {string} */ test) {
  const reached = new Set([test])
  for (const path of reached) for (const target of importsOf(tree, path)) reached.add(target)
  return reached
}

/**
 * A store needs a server, so its tests are in the folder of the same name under test/stores and reach it by its index.
 */
function testedAsStore(/** @type {Tree} */ tree, /** @type {string} */ path) {
  const store = /^src\/stores\/([^/]+)\//.exec(path)?.[1]
  if (store === undefined) return false
  return testFiles(tree).some((test) => test.startsWith(`test/stores/${store}/`) && reachedFrom(tree, test).has(path))
}

/**
 * A source in a module has a test that is named after it or imports it. A folder inside a module is one concept in
 * several files, so there a test may also reach a file through the others.
 */
function testBeside(/** @type {Tree} */ tree) {
  const { testedElsewhere } = tree.exemptions
  const candidates = sourceFiles(tree).filter((path) => !path.endsWith('/index.ts') && hasLogic(tree.syntax(path)))
  return candidates.flatMap((path) => {
    const folder = path.replace(/\/[^/]+$/, '')
    const imported = `'./${path.slice(folder.length + 1).replace(/\.ts$/, '.js')}'`
    const tests = testFiles(tree).filter((test) => test.replace(/\/[^/]+$/, '') === folder)
    const tested =
      tests.includes(path.replace(/\.ts$/, '.test.ts')) ||
      tests.some((test) => tree.text(test).includes(imported)) ||
      (folder.split('/').length > 2 && tests.some((test) => reachedInFolder(tree, test).has(path))) ||
      testedAsStore(tree, path)
    if (tested && path in testedElsewhere) return [`${path}: its exemption is no longer needed`]
    return tested || path in testedElsewhere ? [] : [`${path}: no test in its folder is named after it or imports it`]
  })
}

const isExported = (/** @type {ts.Node} */ node) =>
  ts.canHaveModifiers(node) &&
  node.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) === true

/**
 * Declarations that other files can import. Their members have a comment where it says something: no tool can judge
 * that.
 */
function isOffered(/** @type {ts.Node} */ node) {
  const declares =
    ts.isFunctionDeclaration(node) ||
    ts.isClassDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isVariableStatement(node)
  return declares && isExported(node) && !isLaterOverload(node)
}

function documentedExports(/** @type {Tree} */ tree) {
  return nodesFound(tree, sourceFiles(tree), (node) =>
    isOffered(node) && ts.getJSDocCommentsAndTags(node).length === 0 ? 'what others use has a doc comment' : undefined,
  )
}

/** Only the first of several overloads carries the comment. */
function isLaterOverload(/** @type {ts.Node} */ node) {
  if (!ts.isFunctionDeclaration(node) || !ts.isSourceFile(node.parent)) return false
  const { statements } = node.parent
  const before = statements[statements.indexOf(node) - 1]
  return before !== undefined && ts.isFunctionDeclaration(before) && before.name?.text === node.name?.text
}

const chooses = new Set(['skip', 'only', 'todo', 'fails', 'skipIf', 'runIf'])

function everyTestRuns(/** @type {Tree} */ tree) {
  return nodesFound(tree, testFiles(tree), (node) => {
    const chosen =
      ts.isPropertyAccessExpression(node) && chooses.has(node.name.text) && ts.isIdentifier(node.expression)
    const runner =
      chosen &&
      ['it', 'test', 'describe', 'suite', 'property'].includes(/** @type {ts.Identifier} */ (node.expression).text)
    return runner ? 'every test runs, on every machine' : undefined
  })
}

/** The codes in the closed list of the kernel, in its order. */
function errorCodes(/** @type {Tree} */ tree) {
  const path = 'src/kernel/errors.ts'
  /** @type {string[]} */
  const codes = []
  if (!tree.has(path)) return codes
  walk(tree.syntax(path), (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== 'errorCodes' || node.initializer === undefined)
      return
    walk(node.initializer, (inner) => {
      if (ts.isPropertyAssignment(inner)) codes.push(inner.name.getText())
    })
  })
  return codes
}

function codesDocumented(/** @type {Tree} */ tree) {
  const page = 'docs/reference/errors.md'
  const codes = errorCodes(tree)
  if (codes.length === 0) return []
  if (!tree.has(page)) return [`${page}: missing; it explains every error code`]
  const documented = new Set(tree.text(page).match(/\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)+\b/g) ?? [])
  const sorted = [...codes].sort()
  return [
    ...codes.filter((code) => !documented.has(code)).map((code) => `${page}: does not explain ${code}`),
    ...[...documented].filter((code) => !codes.includes(code)).map((code) => `${page}: ${code} is no error code`),
    ...codes
      .filter((code, index) => code !== sorted[index])
      .slice(0, 1)
      .map((code) => `src/kernel/errors.ts: ${code} is out of alphabetical order`),
  ]
}

function codesUsed(/** @type {Tree} */ tree) {
  const used = new Set()
  for (const path of sourceFiles(tree).filter((path) => path !== 'src/kernel/errors.ts')) {
    walk(tree.syntax(path), (node) => void (ts.isStringLiteralLike(node) && used.add(node.text)))
  }
  return errorCodes(tree)
    .filter((code) => !used.has(code))
    .map((code) => `src/kernel/errors.ts: nothing throws ${code}`)
}

// A comment may switch off one rule, by its whole name, and none of those that keep time and chance in the kernel.
const oneOtherRule = /^lint\/\w+\/(?!noRestricted(Globals|Imports)$)\w+$/

function silences(/** @type {string} */ line) {
  const [, named] = /biome-ignore(?:-\w+)?([^:]*)/.exec(line) ?? []
  const wide =
    named !== undefined &&
    !named
      .trim()
      .split(/\s+/)
      .every((name) => oneOtherRule.test(name))
  return wide || /lint\/plugin|@ts-(ignore|nocheck)/.test(line)
}

function notSilenced(/** @type {Tree} */ tree) {
  const comments = sourceFiles(tree).flatMap((path) =>
    linesMatching(tree, path, { test: silences }, 'this check cannot be switched off by a comment'),
  )
  const nested = tree.paths.filter((path) => /\/\.?biome\.jsonc?$/.test(path))
  return [...comments, ...nested.map((path) => `${path}: checks are not switched off by folder`)]
}

// Written in two pieces, so that this file does not break its own law.
const leftovers = new RegExp(`\\b(${['TO', 'DO'].join('')}|${['FIX', 'ME'].join('')}|${['X', 'XX'].join('')})\\b`)

function nothingLeftOver(/** @type {Tree} */ tree) {
  const files = [
    ...codeFiles(tree),
    ...tree.paths.filter((path) => /\.(md|sql|json)$/.test(path) && !path.includes('/fixtures/')),
  ]
  return files.flatMap((path) => linesMatching(tree, path, leftovers, 'do it now, or write an issue'))
}

/** @type {readonly import('./form.mjs').Law[]} */
export const meaningLaws = [
  { name: 'exact-counts', why: '"retries: 3" may mean three calls or four; attempts cannot', find: exactCounts },
  { name: 'no-top-level-await', why: 'CommonJS programs load the package with require', find: noTopLevelAwait },
  { name: 'test-beside', why: 'a source is read together with its test', find: testBeside },
  { name: 'documented-exports', why: 'what is offered is explained', find: documentedExports },
  { name: 'every-test-runs', why: 'a test that does not run proves nothing', find: everyTestRuns },
  { name: 'codes-documented', why: 'errors are API: each code has its explanation', find: codesDocumented },
  { name: 'codes-used', why: 'the closed list holds no code that cannot happen', find: codesUsed },
  { name: 'not-silenced', why: 'a law that a comment can switch off is none', find: notSilenced },
  { name: 'nothing-left-over', why: 'notes to oneself are forgotten in code', find: nothingLeftOver },
]
