// Laws about the form of code: names, sizes, and what stands at the top of a file.

import ts from 'typescript'
import { codeFiles, isTest, lineOf, sourceFiles, walk } from './tree.mjs'

/** @typedef {import('./tree.mjs').Tree} Tree */
/** @typedef {{ name: string, why: string, find: (tree: Tree) => string[] }} Law */

const maxLines = 400
const usualLines = 300
const maxFunctionLines = 70
const maxRoomFiles = 12

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
  const sized = codeFiles(tree).map((path) => ({ path, lines: tree.text(path).trimEnd().split('\n').length }))
  // A test may be a long list of cases; what it tests may not.
  const usual = (/** @type {string} */ path) => (isTest(path) ? maxLines : usualLines)
  const long = sized.filter(({ path, lines }) => lines > usual(path))
  const findings = long.flatMap(({ path, lines }) => {
    if (lines > maxLines && !isTest(path)) return [`${path}: ${lines} lines; the limit is ${maxLines}`]
    if (path in tree.exemptions.longFiles) return []
    return [`${path}: ${lines} lines; over ${usual(path)} needs an exemption with a reason`]
  })
  const needed = long.map(({ path }) => path)
  return [...findings, ...unneeded(tree.exemptions.longFiles, needed)]
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

function roomSize(/** @type {Tree} */ tree) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const path of sourceFiles(tree)) {
    const folder = path.replace(/\/[^/]+$/, '')
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const large = [...counts].filter(([, count]) => count > maxRoomFiles)
  const findings = large.flatMap(([folder, count]) => {
    const limit = tree.exemptions.largeRooms[folder]?.files ?? maxRoomFiles
    return count > limit ? [`${folder}: ${count} source files; the limit is ${limit}`] : []
  })
  return [
    ...findings,
    ...unneeded(
      tree.exemptions.largeRooms,
      large.map(([folder]) => folder),
    ),
  ]
}

function roomContract(/** @type {Tree} */ tree) {
  // These hold a room for each adapter.
  const roomOf = /^src\/(?:(?:stores|brokers|http)\/[^/]+|[^/]+)(?=\/)/
  const rooms = new Set(sourceFiles(tree).flatMap((path) => roomOf.exec(path) ?? []))
  return [...rooms].flatMap((room) => {
    const contract = `${room}/index.ts`
    if (!tree.has(contract)) return [`${room}: a room has an index.ts, its only entrance`]
    const [first = ''] = tree.text(contract).split('\n')
    return /^(\/\/|\/\*\*?) *\S{2,}/.test(first)
      ? []
      : [`${contract}: its first line is a comment that says what the room promises`]
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
  { name: 'file-size', why: 'a file is read in one sitting', find: fileSize },
  { name: 'function-size', why: 'a function fits on a screen', find: functionSize },
  { name: 'room-size', why: 'a room is understood as a whole', find: roomSize },
  { name: 'room-contract', why: 'a room is entered by its contract', find: roomContract },
  { name: 'first-comment', why: 'a reader knows at once what a file is for', find: firstComment },
]
