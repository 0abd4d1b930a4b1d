import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { root } from '../markdown.js'

function bench(...options: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ['tools/run.mjs', 'bench', ...options], {
    cwd: root,
    encoding: 'utf8',
    timeout: 1_500_000,
  })
}

// A smoke run: that every subject runs and agrees with the others. How fast they are is never a test.
describe('npm run bench', () => {
  it('runs every subject of identity once and finds that all agree', () => {
    const { status, stdout } = bench('identity', '--smoke')
    expect(stdout).toContain('all subjects ran and agreed')
    expect(status).toBe(0)
  })

  it('runs every subject of retry once and finds that all agree', () => {
    const { status, stdout, stderr } = bench('retry', '--smoke')
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(status).toBe(0)
  })

  it('runs on another Node, with the peers that it allows', () => {
    const { status, stdout, stderr } = bench('retry', '--smoke', '--node', '24')
    expect(stdout, stderr).toMatch(/^node v24\./m)
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(status).toBe(0)
    const refused = bench('retry', '--smoke', '--node=19')
    expect([refused.status, refused.stdout + refused.stderr]).toEqual([
      2,
      expect.stringMatching(/--node takes one of 22, 24/),
    ])
  })

  it('runs every subject of transaction once and finds that all agree', () => {
    const { status, stdout, stderr } = bench('transaction', '--smoke')
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(stdout).toContain('round trips of transact: 2')
    expect(status).toBe(0)
  })

  it('runs every subject of operation once and finds that all agree', () => {
    const { status, stdout, stderr } = bench('operation', '--smoke', '--curve')
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(stdout).toContain('round trips of operation: 3')
    expect(stdout).toContain('round trips of replay: 1')
    expect(status).toBe(0)
  })

  it('runs every subject of http once and finds that all agree', () => {
    const { status, stdout, stderr } = bench('http', '--smoke')
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(status).toBe(0)
  })

  it('runs every subject of messaging once and finds that all agree', () => {
    const { status, stdout, stderr } = bench('messaging', '--smoke')
    expect(stdout, stderr).toContain('all subjects ran and agreed')
    expect(stdout).toContain('round trips of transact with an emit: 2')
    expect(stdout).toMatch(/graphile-worker.*not run: it needs Node 22\.18/)
    expect(status).toBe(0)
  })

  it('writes nothing but JSON when asked to', () => {
    const { stdout } = bench('identity', '--smoke', '--json')
    expect(JSON.parse(stdout)).toBeTypeOf('object')
  })

  it('refuses an unknown name with the list of names', () => {
    const { status, stdout, stderr } = bench('nothing')
    expect(status).toBe(2)
    expect(stdout + stderr).toContain('identity')
  })
})
