import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ensureServers, findPostgres, findProgram, needServers } from '../../tools/servers.mjs'

afterEach(() => vi.unstubAllEnvs())

describe('servers for the tests', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-servers-'))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('are all there, so that nothing is installed', async () => {
    const startedMs = performance.now()
    await ensureServers(folder)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    expect(findPostgres()).toBeDefined()
    expect(findProgram('pgbouncer')).toBeDefined()
  })

  it('that are missing and cannot be installed are named, with their packages', async () => {
    vi.stubEnv('PATH', folder) // no apt-get in here
    const wanted = [{ what: 'Nowhere', package: 'nowhere-server', find: () => undefined }]
    await expect(ensureServers(folder, wanted)).rejects.toThrow(
      'The tests need Nowhere. Install the Debian packages nowhere-server, or their like, and run again.',
    )
  })

  it('come from the chosen folder, and from no other when that one is of no use', () => {
    vi.stubEnv('REPRISE_POSTGRES_BIN', folder)
    expect(() => findPostgres()).toThrow('REPRISE_POSTGRES_BIN')
  })

  it('are needed by the tests of stores and by all tests, not by the others', () => {
    expect(needServers([])).toBe(true)
    expect(needServers(['src/kernel'])).toBe(true)
    expect(needServers(['--project', 'stores'])).toBe(true)
    expect(needServers(['--project=unit', '--project=stores'])).toBe(true)
    expect(needServers(['--project=unit'])).toBe(false)
    expect(needServers(['--project', 'tools', '-t', 'x'])).toBe(false)
  })
})
