import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const command = fileURLToPath(new URL('./run.mjs', import.meta.url))

function fuzz(...options: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [command, ...options], { encoding: 'utf8', timeout: 240_000 })
}

interface Report {
  readonly results: readonly { name: string; error?: string; index?: number; codes: Record<string, number> }[]
}

describe('npm run fuzz', () => {
  it('finds no crash, hang or error without a code in a short run', { timeout: 300_000 }, () => {
    const { status, stdout, stderr } = fuzz('--cases', '20000', '--json')
    expect(stderr).toBe('')
    const report = JSON.parse(stdout) as Report
    expect(report.results.filter(({ error }) => error !== undefined)).toEqual([])
    expect(status).toBe(0)
    // Inputs reach both sides of every parser: something is accepted, and what can refuse does.
    for (const { name, codes } of report.results) {
      expect(codes['accepted'], name).toBeGreaterThan(100)
    }
    const json = report.results.find(({ name }) => name === 'canonicalJson of text')?.codes ?? {}
    expect(Object.keys(json)).toEqual(
      expect.arrayContaining(['JSON_LONE_SURROGATE', 'JSON_NUMBER_RANGE', 'JSON_SYNTAX', 'JSON_TOO_DEEP']),
    )
  })

  it('names a crash and a hang with the case that replays it', () => {
    const { status, stdout } = fuzz(
      '--cases',
      '500',
      '--seed',
      '7',
      '--parser',
      'parseKey',
      '--plant',
      'crash',
      '--plant',
      'hang',
    )
    expect(status).toBe(1)
    expect(stdout).toMatch(/FAIL {2}planted crash, case \d+: TypeError/)
    expect(stdout).toMatch(/FAIL {2}planted hang, case \d+: no answer/)
    expect(stdout).toMatch(/replay: npm run fuzz -- --parser 'planted hang' --seed 7 --case \d+/)
  })

  it.each([['--cases', '0'], ['--parser', 'nobody'], ['--what']])(
    'refuses bad options %j with exit code 2',
    (...options) => {
      const { status, stderr } = fuzz(...options)
      expect(status).toBe(2)
      expect(stderr).toContain('npm run fuzz -- [options]')
    },
  )
})
