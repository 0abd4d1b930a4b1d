import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyDiff, recipeSteps } from './recipe.js'
import { copyRepository } from './repository-copy.js'

describe('CONTRIBUTING.md, followed to the letter', () => {
  let copy = ''
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['tools/run.mjs', ...args], { cwd: copy, encoding: 'utf8' })

  beforeAll(() => {
    copy = copyRepository()
    for (const { path, isDiff, text } of recipeSteps()) {
      const file = join(copy, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, isDiff ? applyDiff(readFileSync(file, 'utf8'), text) : text)
    }
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  it('gives a module whose tests pass', () => {
    const { stdout, status } = run('test', 'src/pace')
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('5 passed, 0 failed, 0 skipped')
    expect(status).toBe(0)
  })

  it('gives a repository that passes every check, once the reference is written anew', () => {
    const stale = run('check', 'api-reference')
    expect(stale.status).toBe(1)
    expect(run('docs').status).toBe(0)
    const { stdout, stderr, status } = run('check')
    expect(status, stdout + stderr).toBe(0)
  })

  it('gives an entry point that loads and an error that carries its code', () => {
    const program = `import { intervalMs } from 'reprise/pace'
      console.log(intervalMs(4)); try { intervalMs(0) } catch (error) { console.log(error.code) }`
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: copy,
      encoding: 'utf8',
    })
    expect(stdout).toBe('250\nPACE_INVALID\n')
  })
})
