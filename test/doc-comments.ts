// The examples in the doc comments of src, and the names that must have one.

import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { repositoryFiles } from '../tools/repository-files.mjs'
import { type Fence, fencesOf, root } from './markdown.js'

/** A fenced block in a doc comment. */
export interface CommentFence extends Fence {
  /** What the comment describes: `mintKey`, or `Domain.transact` for a member. */
  readonly name: string
}

/** What users call most, by entry point. Each of these has an example in its doc comment. */
export const namesWithExample: Readonly<Record<string, readonly string[]>> = {
  identity: ['mintKey', 'contentKey', 'deriveKey', 'scope', 'withIntent', 'fingerprint', 'keyWindow'],
  retry: ['retryPolicy', 'keyed', 'readOnly', 'fullJitter', 'tokenBudget', 'ratioBudget', 'consecutiveBreaker'],
  transaction: ['Domain.transact'],
  idempotency: [
    'Operations.operation',
    'leased',
    'rerunKeyed',
    'resolve',
    'fail',
    'lookup',
    'settle',
    'sweep',
    'purge',
  ],
  simulator: ['simulateStorm'],
  'stores/callback': ['callback'],
  'stores/memory': ['memory'],
  'stores/postgres': ['postgres'],
  'stores/sqlite': ['sqlite'],
  'http/client': ['httpClient'],
  'http/core': ['reply', 'AnswerError'],
  'http/express': ['idempotent'],
  'http/fastify': ['idempotent'],
  'http/fetch': ['idempotent'],
  'http/hono': ['idempotent'],
  'http/koa': ['idempotent'],
  'http/nest': ['Idempotent'],
  'http/node': ['idempotent'],
  testing: ['manualClock', 'faultPoints', 'postgresProxy', 'checkEffects', 'barrier', 'runConformanceCase'],
}

/** Every fenced block in the doc comments of src. */
export function commentFences(): CommentFence[] {
  return repositoryFiles(root)
    .filter((path) => /^src\/.*(?<!\.test)\.ts$/.test(path))
    .flatMap((path) => {
      const text = readFileSync(`${root}/${path}`, 'utf8')
      return text.includes('```') ? commentFencesOf(path, text) : []
    })
}

/** The fenced blocks in the doc comments of a source text. */
export function commentFencesOf(path: string, text: string): CommentFence[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const found: CommentFence[] = []
  const visit = (node: ts.Node, outer: string): void => {
    // The comment of `const a = …` belongs to the statement, its name to the declaration inside.
    const named = ts.isVariableStatement(node) ? node.declarationList.declarations[0] : node
    const own = ts.getNameOfDeclaration(named as ts.Declaration)?.getText(source)
    const name = [outer, own].filter(Boolean).join('.')
    for (const comment of ts.getJSDocCommentsAndTags(node)) {
      if (!ts.isJSDoc(comment) || comment.parent !== node) continue
      const { line } = source.getLineAndCharacterOfPosition(comment.getStart(source))
      const lines = comment.getText(source).split('\n')
      const markdown = lines.map((each) => each.replace(/^ *\*(\/$| ?)/, '')).join('\n')
      found.push(...fencesOf(path, '\n'.repeat(line) + markdown).map((fence) => ({ ...fence, name })))
    }
    if (!ts.isVariableStatement(node)) ts.forEachChild(node, (child) => visit(child, name))
  }
  ts.forEachChild(source, (node) => visit(node, ''))
  return found
}

/** The names of the list above that have no example: `identity: mintKey`. */
export function namesWithoutExample(examples: readonly CommentFence[]): string[] {
  return Object.entries(namesWithExample).flatMap(([entry, names]) =>
    names
      .filter(
        (name) => !examples.some((it) => it.info === 'ts' && it.name === name && it.page.startsWith(`src/${entry}/`)),
      )
      .map((name) => `${entry}: ${name}`),
  )
}
