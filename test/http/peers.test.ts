// The results of peers are those of the cases as they are now, and the subject that peers are mounted on does what it
// should by itself.

import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { httpCaseClient, httpCaseRunner, httpCases } from '../../src/testing/index.js'
import { peerResults, peers } from '../http-peers.js'
import { root } from '../markdown.js'

describe('the results of peers', () => {
  const ids = httpCases.map(({ id }) => id)

  it('are those of the peers on the list, at the versions on the list', () => {
    expect(Object.keys(peerResults).sort()).toEqual(peers.map(({ name }) => name).sort())
    for (const { name, version } of peers) expect(peerResults[name]?.version, name).toBe(version)
  })

  it.each(peers.map((peer) => [peer.name, peer] as const))('carry every case, and no other: %s', (_name, peer) => {
    const results = peerResults[peer.name]?.results ?? {}
    expect(Object.keys(results)).toEqual(ids)
    for (const { outcome, why } of Object.values(results)) {
      expect(['passed', 'failed', 'not offered']).toContain(outcome)
      expect(why !== undefined && why !== '').toBe(outcome !== 'passed')
    }
    for (const [id, why] of Object.entries(peer.lacks ?? {})) {
      expect(results[id], id).toEqual({ outcome: 'not offered', why })
    }
  })

  it('are without a failure for Reprise', () => {
    const failed = Object.entries(peerResults['Reprise']?.results ?? {}).filter(
      ([, { outcome }]) => outcome !== 'passed',
    )
    expect(failed).toEqual([])
  })
})

describe('the subject of peers, without any layer', () => {
  async function plain(framework: string): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'reprise-peer-'))
    const program = fileURLToPath(new URL('../../bench/http-peers/mounts/plain.mjs', import.meta.url))
    const child = spawn(process.execPath, [program, folder, framework], { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    onTestFinished(async () => {
      child.kill()
      await ended
      rmSync(folder, { recursive: true, force: true })
    })
    return new Promise((resolve, reject) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        const ready = /^ready (\S+)$/m.exec(text)
        if (ready?.[1] !== undefined) resolve(ready[1])
      })
      void ended.then(() => reject(new Error('the subject ended before it was ready')))
    })
  }

  // Not a word of memory: these only ask that the layer is not in the way.
  const needNoLayer =
    'http-02 http-03 http-07b http-11 http-11b http-13 http-13b http-13c http-15 http-38 http-38b http-50 http-67c'

  it.each(['express', 'hono'])(
    'offers what it should, and passes only what asks for no memory: %s',
    async (framework) => {
      const runner = httpCaseRunner(httpCaseClient({ urls: [await plain(framework)] }))
      const ends: Record<string, string[]> = { passed: [], failed: [], 'not offered': [] }
      for (const one of httpCases) {
        // Dozens of slow requests at once add nothing here.
        if (!one.routes.some((route) => /slow|waiting/.test(route))) ends[(await runner.run(one)).outcome]?.push(one.id)
      }
      expect(ends['not offered']).toEqual(['http-41', 'http-46c'])
      expect(ends['passed']).toEqual(needNoLayer.split(' '))
      expect(ends['failed']?.length).toBeGreaterThan(50)
    },
  )
})

describe('npm run peers', () => {
  function runPeers(...words: string[]): { status: number | null; stdout: string; stderr: string } {
    const args = ['tools/run.mjs', 'peers', ...words]
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', timeout: 240_000 })
  }

  // Two that are not cloned from anywhere, and three cases: the whole run belongs to whoever wants new results.
  it('sees again what the results say, and writes nothing for some cases only', { timeout: 300_000 }, () => {
    const results = `${root}/bench/http-peers/results.json`
    const before = readFileSync(results, 'utf8')
    const ids = ['http-15', 'http-46c', 'http-67']
    const only = ids.flatMap((id) => ['--only', id])
    const { status, stdout, stderr } = runPeers('Reprise', 'express-idempotency', ...only)
    expect(stdout, stderr).toContain('Reprise (this repository): 3 passed, 0 failed, 0 not offered\n')
    expect(stdout).toContain('express-idempotency (1.0.6): 1 passed, 1 failed, 1 not offered\n')
    const seen = peerResults['express-idempotency']?.results
    expect(stdout).toContain(`  failed       http-67   ${seen?.['http-67']?.why}\n`)
    expect(status).toBe(0)
    expect(readFileSync(results, 'utf8')).toBe(before)
  })

  it('refuses a peer and a case that are not on the list', () => {
    expect(runPeers('nobody')).toMatchObject({ status: 2, stderr: expect.stringContaining('no peer named nobody') })
    expect(runPeers('--only', 'http-99')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('no case http-99'),
    })
  })
})
