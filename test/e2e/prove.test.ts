// `prove` on real stores: connections that are cut, processes that are killed, the sample service, and a wrong way to
// pay, which it must find.

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ProofFailed, type ProofReport, type ProofSubject, prove } from 'reprise/testing'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Ledger, openLedger } from '../../examples/payments/ledger.js'
import { paymentRoute } from '../../examples/payments/payments.js'
import { ownProblems } from '../../examples/payments/problems.js'
import { Receipts } from '../../examples/payments/receipts/receipts.js'
import { freshDatabase } from '../servers/fresh-database.js'

const folder = mkdtempSync(join(tmpdir(), 'reprise-prove-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const moduleOf = (name: string) => new URL(`./processes/${name}.mjs`, import.meta.url)
interface Opened {
  readonly count: (intent: string) => Promise<number>
}
const right = (await import(moduleOf('right').href)) as Required<ProofSubject<string, Opened>>
const wrong = (await import(moduleOf('wrong').href)) as Required<ProofSubject<string, Opened>>
const effects = (intent: string, { count }: Opened) => count(intent)

const failed = (proof: Promise<ProofReport>): Promise<ProofReport> =>
  proof.then(
    () => expect.fail('nothing was found'),
    (error: unknown) => {
      if (error instanceof ProofFailed) return error.report
      throw error
    },
  )
const kindsOf = ({ lines }: ProofReport) =>
  new Set(lines.map(({ schedule }) => schedule.split(' ').slice(0, 2).join(' ').replace(/\d+/, 'n')))

describe('a proof with processes', () => {
  it('kills them at every point, on SQLite', async () => {
    process.env['PROOF_FILE'] = join(folder, 'proof.db')
    onTestFinished(() => void delete process.env['PROOF_FILE'])
    const report = await prove(right.operation, { ...right, effects, processes: moduleOf('right'), rounds: 3 })
    const killed = report.lines.filter(({ schedule }) => schedule.startsWith('killed at '))
    expect(killed.map(({ schedule }) => schedule)).toContain('killed at transaction.before-commit')
    expect(killed.filter(({ met }) => !met)).toEqual([])
  })

  it('kills them and cuts connections, on PostgreSQL', async () => {
    const { url } = await freshDatabase()
    const report = await prove(right.operation, {
      ...right,
      effects,
      postgres: url,
      processes: moduleOf('right').href,
      rounds: 3,
    })
    expect(kindsOf(report)).toEqual(
      new Set(['called again', 'n calls', 'an error', 'duplicates while', 'cut at', 'killed at', 'round n']),
    )
    const cut = report.lines.filter(({ schedule }) => schedule.startsWith('cut at '))
    expect(cut.some(({ schedule }) => schedule.endsWith('and it arrives late'))).toBe(true)
    expect(report.missed.filter((schedule) => !schedule.startsWith('round '))).toEqual([])
    expect(report.lines.filter((line) => line.effects !== 1)).toEqual([])
  })

  it('finds a write through the pool, by each kind of fault', async () => {
    const { url } = await freshDatabase()
    const report = await failed(
      prove(wrong.operation, { ...wrong, effects, postgres: url, processes: moduleOf('wrong'), rounds: 0 }),
    )
    const found = report.findings.filter(({ kind }) => kind === 'duplicate').map(({ schedule }) => schedule)
    expect(found).toEqual(
      expect.arrayContaining(['an error at transaction.body-done', 'killed at transaction.before-commit']),
    )
    expect(found.some((schedule) => schedule.startsWith('cut at '))).toBe(true)
  })

  it('says why the module of the processes cannot be used', async () => {
    const { url } = await freshDatabase()
    const options = { ...right, effects, postgres: url }
    const prove1 = (name: string) => prove(right.operation, { ...options, processes: moduleOf(name) })
    await expect(prove1('nowhere')).rejects.toMatchObject({ code: 'ARGUMENT_INVALID', message: /nowhere\.mjs/ })
    await expect(prove1('payments')).rejects.toMatchObject({ message: /must export operation/ })
  })
})

describe('the sample service', () => {
  const world = async ({ databaseUrl }: { readonly databaseUrl?: string }) => {
    const ledger = openLedger(
      databaseUrl === undefined
        ? { engine: 'sqlite', file: join(folder, 'sample.db') }
        : { engine: 'postgres', url: databaseUrl },
    )
    await ledger.migrate()
    const problems = ownProblems('/problems/')
    const pay = paymentRoute({
      ledger,
      receipts: new Receipts(ledger, () => undefined),
      problemBase: '/problems/',
      problems,
      drill: false,
      around: () => ({ cut: () => undefined, announceExit: async () => undefined, failure: () => problems('failed') }),
      onError: (_error, _request, response) => void response.writeHead(500).end(),
    })
    const server = createServer(pay)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const close = async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      await ledger.close()
    }
    return { url, ledger, close }
  }
  const headers = { 'content-type': 'application/json', authorization: 'Bearer prover' }
  const post = (account: string, { url }: { readonly url: string }) =>
    fetch(`${url}/payments`, {
      method: 'POST',
      headers: { ...headers, 'idempotency-key': `"${account}"` },
      body: JSON.stringify({ account, amountMinor: 1200, currency: 'EUR' }),
    })
  const count = async (account: string, { ledger }: { readonly ledger: Ledger }) =>
    (await ledger.list('prover', account)).length
  const options = { world, input: (id: string) => id, effects: count, rounds: 5 }

  it('pays once on SQLite', async () => {
    const { lines, missed } = await prove(post, options)
    expect(lines.length).toBeGreaterThan(20)
    expect(missed.filter((schedule) => !schedule.startsWith('round '))).toEqual([])
  })

  it('pays once on PostgreSQL, cut at every statement', async () => {
    const { url } = await freshDatabase()
    const report = await prove(post, { ...options, postgres: url })
    expect(report.lines.filter(({ schedule }) => schedule.startsWith('cut at ')).length).toBeGreaterThan(5)
  })
})
