import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type SubjectProgram, subjectProgram } from '../subject/process.js'
import { adapterNames } from '../subject/subject.js'

const folder = mkdtempSync(join(tmpdir(), 'reprise-processes-'))
let program: SubjectProgram
beforeAll(async () => {
  program = await subjectProgram()
})
afterAll(async () => {
  await program.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('the subject as a process', () => {
  it.each(adapterNames)('serves %s, and what it has stored outlives it', async (adapter) => {
    const database = `sqlite:${join(folder, `${adapter}.db`)}`
    const [user, key] = [randomUUID(), randomUUID()]
    const headers = { authorization: `Bearer ${user}`, 'idempotency-key': key, 'content-type': 'application/json' }
    const texts: string[] = []
    for (const replayed of [null, 'true']) {
      const subject = await program.start(adapter, database, { sink: join(folder, `${adapter}-sink`) })
      const answer = await fetch(`${subject.url}/charges`, { method: 'POST', headers, body: '{"amount":7}' })
      expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, replayed])
      texts.push(await answer.text())
      await subject.kill()
      expect(subject.said()).toBe('')
    }
    expect(texts[1]).toBe(texts[0])
  })
})
