// The entry points of the built package, loaded by the names that users write. Run on every version of Node of the
// matrix.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { name: string; exports: object }
const entryPoints = Object.entries(manifest.exports)
  .filter(([, target]) => typeof target === 'object')
  .map(([entryPoint]) => manifest.name + entryPoint.slice(1))

/** Runs a program in a process of its own, started like a user's: nothing of the test runner is in it. */
function run(program: string, kind: 'module' | 'commonjs' = 'module') {
  const args = ['--disable-warning=ExperimentalWarning', `--input-type=${kind}`, '-e', program]
  return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', env: { PATH: process.env['PATH'] } })
}

const namesOf = (program: string, kind?: 'commonjs') => {
  const { stdout, stderr } = run(program, kind)
  expect(stderr).toBe('')
  return JSON.parse(stdout) as string[]
}

describe.each(entryPoints)('%s', (entryPoint) => {
  const imported = `console.log(JSON.stringify(Object.keys(await import('${entryPoint}')).sort()))`

  it('opens with import, says nothing, and lets the process end', () => {
    expect(namesOf(imported).length).toBeGreaterThan(0)
  })

  it('opens with require, and gives the same names', () => {
    const required = `console.log(JSON.stringify(Object.keys(require('${entryPoint}')).sort()))`
    expect(namesOf(required, 'commonjs')).toEqual(namesOf(imported))
  })

  it('leaves the globals as they are', () => {
    const program = `
      const facts = () => JSON.stringify([Object.getOwnPropertyNames(globalThis), process.eventNames().length,
        [Object, Array, Error, Promise, Date].map((of) => [Object.getOwnPropertyNames(of), Object.getOwnPropertyNames(of.prototype)])])
      const before = facts()
      await import('${entryPoint}')
      console.log(JSON.stringify(before === facts() ? ['same'] : ['different']))`
    expect(namesOf(program)).toEqual(['same'])
  })
})

describe('the entry points together', () => {
  // Adapters of servers are used one at a time, and in the same words.
  const sameWords = ['idempotency', 'idempotent', 'idempotentLeased']

  it('give one and the same thing under one name', () => {
    const program = `
      const sameWords = ${JSON.stringify(sameWords)}
      const entryPoints = await Promise.all(${JSON.stringify(entryPoints)}.map((entryPoint) => import(entryPoint)))
      const found = new Map()
      const clashes = []
      for (const [name, value] of entryPoints.flatMap((entryPoint) => Object.entries(entryPoint))) {
        if (found.has(name) && found.get(name) !== value && !sameWords.includes(name)) clashes.push(name)
        found.set(name, value)
      }
      console.log(JSON.stringify(clashes))`
    expect(namesOf(program)).toEqual([])
  })

  it('are the only ways in', () => {
    const { stderr } = run(`await import('${manifest.name}/dist/index.js')`)
    expect(stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })
})
