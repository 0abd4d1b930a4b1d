// What is found where it is not looked for: keys, bodies and names at rest, in events and in logs.

import { beforeAll, expect, inject, it } from 'vitest'
import { onEveryAdapter, printedTable } from './cells.js'
import { bundled, openStage, type Stage } from './stage.js'

let program: string
beforeAll(async () => {
  program = await bundled()
})

const secret = (): string => `private-${crypto.randomUUID()}`

onEveryAdapter(printedTable('what is private'), (on) => {
  let stage: Stage
  beforeAll(async () => {
    stage = await openStage(program, { ...on, postgresUrl: inject('postgresUrl') })
    return stage.close
  })

  it('http-71 keys and users are hashed at rest, and answers are encrypted where they are to be', async () => {
    const sealed = await stage.start({ encrypts: true })
    const client = stage.client(sealed)
    const [user, key, note] = [client.user(), client.key(), secret()]
    const answers = []
    for (const path of ['/charges', '/leased/charges', '/fail422'])
      answers.push(await user.post(path, key, { amount: 5, note }))
    const rows = await stage.atRest()
    expect(rows).toContain('sha256:')
    const ids = answers.map((answer) => (answer.json() as { id: string }).id)
    expect(ids.every((id) => /^[0-9a-f-]{36}$/.test(id))).toBe(true)
    for (const text of [key, user.name, note, ...ids]) expect(rows.includes(text)).toBe(false)
    // And they are read again.
    expect((await user.post('/charges', key, { amount: 5, note })).body.equals(answers[0]?.body as Buffer)).toBe(true)
    await sealed.kill()
  })

  it('http-71 without encryption an answer is readable at rest, so the look would find it', async () => {
    const open = await stage.start()
    const client = stage.client(open)
    const [user, key, note] = [client.user(), client.key(), secret()]
    const { id } = (await user.post('/charges', key, { amount: 5, note })).json() as { id: string }
    const rows = await stage.atRest()
    expect([id, key, user.name, note].map((text) => rows.includes(text))).toEqual([true, false, false, false])
    await open.kill()
  })

  it('http-74 events, errors and logs hold neither key nor body nor user', async () => {
    const serving = await stage.start()
    const client = stage.client(serving)
    const [user, key, note] = [client.user(), client.key(), secret()]
    const body = { amount: 5, note }
    const statuses: number[] = []
    const send = async (path: string, sent: unknown = body, one: string | readonly string[] = key): Promise<void> => {
      statuses.push((await user.post(path, one, sent)).status)
    }
    await send('/charges')
    await send('/charges')
    await send('/charges', { ...body, amount: 6 })
    await send('/charges', { ...body, amount: 'x' })
    await send('/charges', body, `${key}\u00e9`)
    await send('/charges', body, [key, key])
    await send('/throw-after-effect')
    await send('/leased/throw-after-effect')
    await send('/leased/ambiguous')
    await send('/leased/ambiguous')
    const letGo = await stage.lock()
    await send('/charges', body, client.key())
    await letGo()
    await Promise.all(Array.from({ length: 5 }, () => send('/slow?ms=100')))
    const seen = [201, 422, 400, 500, 409, ...(on.store === 'SQLite' ? [] : [503])]
    expect([...new Set(statuses)]).toEqual(expect.arrayContaining(seen))
    const said = serving.said()
    for (const event of ['replayed', 'refused', 'executed', 'http.answered', 'operation.lease'])
      expect(said).toContain(event)
    for (const text of [key, note, user.name]) expect(said.includes(text)).toBe(false)
    await serving.kill()
  })
})
