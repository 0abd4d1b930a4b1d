import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { repositoryFiles } from '../../tools/repository-files.mjs'
import { copyRepository, root } from './repository-copy.js'

describe('the files of a repository', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reprise-files-'))
    write('.gitignore', 'dist/\n*.tgz\n')
    for (const path of ['a.md', 'b/c.ts', 'b/.d.json']) write(path)
    for (const path of ['dist/e.js', 'b/dist/f.js', 'g.tgz', 'node_modules/h.js', 'b/node_modules/i.js']) write(path)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const files = ['.gitignore', 'a.md', 'b/.d.json', 'b/c.ts']
  const write = (path: string, text = '') => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, stdio: 'ignore' })

  it('are those that git would commit', () => {
    write('.gitignore', 'dist/\n*.tgz\nnode_modules/\n')
    git('init')
    write('gone.md')
    git('add', 'a.md', 'gone.md')
    rmSync(join(folder, 'gone.md'))
    expect(repositoryFiles(folder)).toEqual(files)
  })

  it('are the same without git, whatever lies around them', () => {
    expect(repositoryFiles(folder)).toEqual(files)
    git('init')
    write('inner/.gitignore', '*.tgz\n')
    write('inner/a.md')
    write('inner/b.tgz')
    write('.gitignore', 'inner\n')
    expect(repositoryFiles(join(folder, 'inner'))).toEqual(['.gitignore', 'a.md'])
  })
})

describe('an unpacked archive of this repository', () => {
  let copy = ''
  beforeEach(() => {
    copy = copyRepository()
    rmSync(join(copy, '.git'), { recursive: true, force: true })
  })
  afterEach(() => rmSync(copy, { recursive: true, force: true }))

  it('has the same files, and passes the checks that read them', () => {
    expect(repositoryFiles(copy)).toEqual(repositoryFiles(root))
    const args = ['tools/run.mjs', 'check', 'lint', 'time-and-chance', 'dead-code', 'lock-files', 'tidy']
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' })
    expect(status, stdout + stderr).toBe(0)
  })
})
