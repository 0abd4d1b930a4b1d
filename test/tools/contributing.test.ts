import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fences } from '../markdown.js'
import { copyRepository } from './repository-copy.js'

/** Adds the lines marked by `+` where the lines around them stand, one after another, in the file. */
function applyDiff(source: string, diff: string): string {
  const lines = diff.replace(/\n$/, '').split('\n')
  const before = lines.filter((line) => !line.startsWith('+')).map((line) => line.slice(1))
  const after = lines.map((line) => line.slice(1))
  const found = source.split(`${before.join('\n')}\n`)
  if (found.length !== 2) throw new Error(`the lines around the change stand ${found.length - 1} times in the file`)
  return found.join(`${after.join('\n')}\n`)
}

describe('CONTRIBUTING.md, followed to the letter', () => {
  let copy = ''
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['tools/run.mjs', ...args], { cwd: copy, encoding: 'utf8' })

  beforeAll(() => {
    copy = copyRepository()
    for (const { info, text } of fences('CONTRIBUTING.md')) {
      const [kind, path] = info.split(' ')
      if (path === undefined) continue
      const file = join(copy, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, kind === 'diff' ? applyDiff(readFileSync(file, 'utf8'), text) : text)
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
