import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  ensureServers,
  findChromium,
  findPgbouncer,
  findPostgres,
  missingServers,
  needServers,
} from '../../tools/servers.mjs'
import { ensureSqliteDrivers, findSqliteDrivers } from '../../tools/sqlite-drivers.mjs'

afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
})

describe('servers for the tests', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-servers-'))
  beforeEach(() => mkdirSync(folder, { recursive: true }))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('are all there, so that nothing is installed', async () => {
    const startedMs = performance.now()
    await ensureServers(folder)
    expect(performance.now() - startedMs).toBeLessThan(2_000)
    expect(findPostgres()).toBeDefined()
    expect(findPgbouncer()).toBeDefined()
    expect(findChromium()).toBeDefined()
  })

  it('that are missing and cannot be installed are named, with their packages and the reason', async () => {
    vi.stubEnv('PATH', folder) // no apt-get in here
    const wanted = [{ what: 'Nowhere', package: 'nowhere-server', find: () => undefined }]
    const why = "Debian's package nowhere-server is not installed; there is no apt-get here"
    expect(await missingServers(folder, wanted)).toEqual([{ what: 'Nowhere', why }])
    await expect(ensureServers(folder, wanted)).rejects.toThrow(`Nowhere is missing: ${why}.`)
  })

  it('that apt-get cannot install are missing, with the code that it ended with', async () => {
    writeFileSync(join(folder, 'apt-get'), '#!/bin/sh\nexit 100\n', { mode: 0o755 })
    vi.stubEnv('PATH', `${folder}:/bin`)
    vi.stubGlobal('process', Object.assign(Object.create(process), { getuid: () => 0 }))
    const wanted = [{ what: 'Nowhere', package: 'nowhere-server', find: () => undefined }]
    const why = "Debian's package nowhere-server is not installed; apt-get update ended with code 100."
    expect(await missingServers(folder, wanted)).toEqual([{ what: 'Nowhere', why }])
  })

  it('that REPRISE_WITHOUT names are treated as missing', async () => {
    vi.stubEnv('REPRISE_WITHOUT', 'PgBouncer, Chromium')
    const missing = await missingServers(folder)
    expect(missing.map(({ what }) => what)).toEqual(['PgBouncer', 'Chromium'])
  })

  it('come from the chosen folder, and from no other when that one is of no use', () => {
    vi.stubEnv('REPRISE_POSTGRES_BIN', folder)
    expect(() => findPostgres()).toThrow('REPRISE_POSTGRES_BIN')
    vi.stubEnv('REPRISE_PGBOUNCER', `${folder}/pgbouncer`)
    expect(() => findPgbouncer()).toThrow('REPRISE_PGBOUNCER')
    writeFileSync(join(folder, 'pgbouncer'), '', { mode: 0o755 })
    expect(findPgbouncer()).toBe(join(folder, 'pgbouncer'))
  })

  it('are needed by the tests of stores and by all tests, not by the others', () => {
    expect(needServers([])).toBe(true)
    expect(needServers(['src/kernel'])).toBe(true)
    expect(needServers(['--project', 'stores'])).toBe(true)
    expect(needServers(['--project=unit', '--project=stores'])).toBe(true)
    expect(needServers(['--project=package'])).toBe(true)
    expect(needServers(['--project=unit'])).toBe(false)
    expect(needServers(['--project', 'tools', '-t', 'x'])).toBe(false)
  })
})

describe('drivers of SQLite for the tests', () => {
  const nowhere = join(tmpdir(), 'reprise-no-such-folder')
  /** As if this were an old Node on that platform. */
  const pretend = (platform: string, arch: string): void => {
    const changed = { platform, arch, versions: { ...process.versions, napi: '9' } }
    vi.stubGlobal('process', { ...process, ...changed })
  }

  it('that are not installed are missed in words, and a project without them needs none', async () => {
    pretend('linux', 'x64')
    await ensureSqliteDrivers(nowhere)
    expect(() => findSqliteDrivers(nowhere)).toThrow('The drivers of SQLite are not installed.')
  })

  it('are refused where this Node is too old and no other one can be had', () => {
    pretend('darwin', 'arm64')
    const why =
      /^Node [\d.]+ is too old for this driver, and other versions of Node are set up here for linux-x64 only$/
    expect(findSqliteDrivers(nowhere)).toEqual({ why: expect.stringMatching(why) })
  })
})
