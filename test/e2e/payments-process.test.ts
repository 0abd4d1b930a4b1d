// The sample service as a process: how it starts, is refused, crashes on purpose, is started again, and ends.

import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../servers/fresh-database.js'
import { until } from '../servers/server-process.js'
import { effects, freshFile, isReplay, pay, startCommand, startService, stop } from './service-process.js'

const isServing = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )

/** How many receipts each of the payments has, the newest first. */
async function receipts(url: string): Promise<number[]> {
  const response = await fetch(`${url}/receipts?account=shop`, { headers: { authorization: 'Bearer me' } })
  const { items } = (await response.json()) as { items: { receipts: number }[] }
  return items.map((item) => item.receipts)
}

describe('keeping house', () => {
  it('forgets keys past their window, and no payment', async () => {
    const database = freshFile()
    const first = await startService({ DATABASE_URL: database })
    for (const key of ['old', 'young']) expect((await pay(first.url, { key })).status).toBe(201)
    expect((await stop(first)).code).toBe(0)
    const file = new Database(database.slice('sqlite:'.length))
    // Whose turn it is to forget is a record as well.
    const ours = "from reprise_marker where operation is not 'reprise.upkeep'"
    const keys = (): number => (file.prepare(`select count(*) as n ${ours}`).get() as { n: number }).n
    expect(keys()).toBe(2)
    file.exec(`update reprise_marker set expires_at_ms = 1 where rowid = (select min(rowid) ${ours})`)
    file.exec("delete from reprise_marker where operation = 'reprise.upkeep'")
    const again = await startService({ DATABASE_URL: database })
    await until(() => keys() === 1, 'the old key to be forgotten')
    expect(await effects(again.url)).toBe(2)
    expect((await stop(again)).code).toBe(0)
    file.close()
  })

  it('forgets events that everybody has, and no receipt', async () => {
    const database = freshFile()
    const first = await startService({ DATABASE_URL: database })
    await pay(first.url)
    await until(async () => (await receipts(first.url)).join() === '1', 'the receipt to be written')
    expect((await stop(first)).code).toBe(0)
    const file = new Database(database.slice('sqlite:'.length))
    const events = (): number => (file.prepare('select count(*) as n from reprise_message').get() as { n: number }).n
    expect(events()).toBe(1)
    file.exec('update reprise_message set at_ms = 1')
    // The first life may have had its turn to forget, which lasts for ten minutes.
    file.exec("delete from reprise_marker where operation = 'reprise.upkeep'")
    const again = await startService({ DATABASE_URL: database })
    await until(() => events() === 0, 'the event to be forgotten')
    expect(await receipts(again.url)).toEqual([1])
    expect((await stop(again)).code).toBe(0)
    file.close()
  })

  it('answers what is no request, and goes on', async () => {
    const service = await startService({ DATABASE_URL: freshFile() })
    const { port } = new URL(service.url)
    const raw = (text: string): Promise<string> =>
      new Promise((resolve, reject) => {
        let heard = ''
        const socket = connect(Number(port), '127.0.0.1', () => socket.write(text))
        socket.on('data', (part) => {
          heard += part
        })
        socket.on('close', () => resolve(heard)).on('error', reject)
      })
    expect(await raw('no request at all\r\n\r\n')).toBe(
      'HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n',
    )
    expect(await raw(`GET / HTTP/1.1\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 .*content-length: 0/s,
    )
    expect(await isServing(service.url)).toBe(true)
    expect((await stop(service)).code).toBe(0)
  })
})

describe('starting', () => {
  it('says where it is in one line, and then three things to try, which work as they stand', async () => {
    const service = await startService({ DATABASE_URL: freshFile() })
    const [first, ...rest] = service.stdout().split('\n')
    expect(first).toBe(`ready ${service.url}`)
    expect(service.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    await until(() => service.stdout().includes('in a browser'), 'the whole welcome')
    const lines = service
      .stdout()
      .split('\n')
      .slice(rest.length > 0 ? 1 : 0)
    const commands = lines.filter((line) => line.startsWith('  curl '))
    expect(commands).toHaveLength(3)
    const [make = '', drop = '', count = ''] = commands
    const run = (command: string) => spawnSync('sh', ['-c', `${command} -s --max-time 20`], { encoding: 'utf8' })
    expect(run(make).stdout).toMatch(/^HTTP\/1\.1 201 Created/)
    expect(run(make).stdout).toMatch(/^idempotent-replayed: true/m)
    expect(run(drop)).toMatchObject({ status: 52, stdout: '' }) // an empty answer
    expect(run(drop).stdout).toMatch(/^idempotent-replayed: true/m)
    expect(JSON.parse(run(count).stdout).items).toHaveLength(2)
    expect(service.stdout().match(/^ready /gm)).toHaveLength(1)
    expect((await stop(service)).code).toBe(0)
  })

  it('is refused in one line where the port is in use', async () => {
    const service = await startService({ DATABASE_URL: freshFile() })
    const { port } = new URL(service.url)
    const refused = await startCommand({ DATABASE_URL: freshFile(), PORT: port }).ended
    const stderr = `Port ${port} of 127.0.0.1 is in use. Set PORT to another one; 0 is any free port.\n`
    expect(refused).toEqual({ code: 1, signal: null, stdout: '', stderr })
    expect((await stop(service)).code).toBe(0)
  })

  const shaped = 'DATABASE_URL is neither sqlite:FILE nor postgres://user@host:port/database.'
  it.each([
    [{ DATABASE_URL: 'mysql://root:secret@localhost/shop' }, shaped],
    [{ DATABASE_URL: 'data/reprise.db' }, shaped],
    [{ DATABASE_URL: 'postgres://me:secret@:nowhere' }, shaped],
    [
      { DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/shop' },
      'DATABASE_URL names a database that cannot be used (ECONNREFUSED).',
    ],
    [{ DATABASE_URL: 'sqlite:/dev/null/a.db' }, 'DATABASE_URL names a file in a folder that cannot be made.'],
    [{ DATABASE_URL: 'sqlite:/proc/nope/a.db' }, 'DATABASE_URL names a file in a folder that cannot be made.'],
    [{ DATABASE_URL: `sqlite:${tmpdir()}` }, /^DATABASE_URL names a database that cannot be used( \(\w+\))?\.$/],
    [{ PORT: '70000' }, 'PORT is a whole number from 0 to 65535; 0 is any free port.'],
    [{ PORT: 'x' }, 'PORT is a whole number from 0 to 65535; 0 is any free port.'],
    [{ REPRISE_DRILL: 'yes' }, 'REPRISE_DRILL is 1 (on) or 0 (off).'],
    [{ HOST: '192.0.2.1' }, /^The service cannot listen on port 0 of 192\.0\.2\.1 \(EADDRNOTAVAIL\)\./],
  ] as [Record<string, string>, string | RegExp][])('is refused in one line with %j', async (settings, line) => {
    const folder = mkdtempSync(join(tmpdir(), 'reprise-payments-'))
    const { code, stdout, stderr } = await startCommand({
      PORT: '0',
      DATABASE_URL: `sqlite:${join(folder, 'a.db')}`,
      ...settings,
    }).ended
    rmSync(folder, { recursive: true })
    expect([code, stdout]).toEqual([1, ''])
    const [said = '', ...more] = stderr.split('\n')
    if (typeof line === 'string') expect(said).toBe(line)
    else expect(said).toMatch(line)
    expect(more).toEqual([''])
    expect(stderr).not.toContain('secret')
  })
})

describe('without drills', () => {
  it.each([
    ['where they are switched off', { REPRISE_DRILL: '0' }, 'http://127.0.0.1'],
    ['where they are switched off in a word', { REPRISE_DRILL: 'off', HOST: 'localhost' }, 'http://localhost'],
    ['on an address that others reach', { HOST: '0.0.0.0' }, 'http://0.0.0.0:'],
    ['on every address of both kinds', { HOST: '::' }, 'http://[::]:'],
  ])('the field is ignored, and /drill is not there: %s', async (_where, settings, origin) => {
    const service = await startService({ DATABASE_URL: freshFile(), ...settings })
    expect(service.url.startsWith(origin)).toBe(true)
    const url = service.url.replace(/0\.0\.0\.0|\[::\]/, '127.0.0.1')
    const answer = await pay(url, { drill: 'exit=before-commit, drop, status=204, throw' })
    expect(answer.status).toBe(201)
    for (const path of ['effects', 'events', 'other']) expect((await fetch(`${url}/drill/${path}`)).status).toBe(404)
    expect((await pay(url, { path: '/drill/without-reprise/payments' })).status).toBe(404)
    const missing = (await (await pay(url, { key: undefined })).json()) as { type: string }
    expect((await fetch(new URL(missing.type, url))).status).toBe(200)
    expect((await stop(service)).code).toBe(0)
  })
})

describe.each(['sqlite', 'postgres'])('a crash that was asked for, on %s', (store) => {
  const database = async () => (store === 'sqlite' ? freshFile() : (await freshDatabase()).url)

  it.each([
    ['exit=before-commit', 0, false],
    ['exit=after-commit', 1, true],
  ])('%s ends the command by SIGKILL, and the next one finishes the intent once', async (drill, left, replayed) => {
    const settings = { DATABASE_URL: await database() }
    const [key, first] = [randomUUID(), await startService(settings)]
    expect(await effects(first.url)).toBe(0)
    await expect(pay(first.url, { key, drill })).rejects.toThrow('fetch failed')
    const stderr =
      'The drill killed the service, as it was asked to. Start it again with `npm start`, and repeat the request.\n'
    expect(await first.ended).toMatchObject({ code: 137, stderr })
    const second = await startService(settings)
    expect(await effects(second.url)).toBe(left)
    const repeat = await pay(second.url, { key, drill: 'exit=after-commit'.repeat(replayed ? 1 : 0) })
    expect([repeat.status, isReplay(repeat), await effects(second.url)]).toEqual([201, replayed, 1])
    expect(isReplay(await pay(second.url, { key }))).toBe(true)
    expect((await stop(second)).code).toBe(0)
  })

  it('with the wish to go on is followed by another life on the same port, and no second ready line', async () => {
    const [key, service] = [randomUUID(), await startService({ DATABASE_URL: await database() })]
    const { url } = service
    await expect(pay(url, { key, drill: 'exit=before-commit, restart' })).rejects.toThrow('fetch failed')
    await until(() => isServing(url), 'the service is back')
    expect(await effects(url)).toBe(0)
    await expect(pay(url, { key, drill: 'exit=after-commit, restart' })).rejects.toThrow('fetch failed')
    await until(() => isServing(url), 'the service is back once more')
    expect([isReplay(await pay(url, { key })), await effects(url)]).toEqual([true, 1])
    // The event was committed with the payment. Nobody was left to relay it, and then somebody was.
    await until(async () => (await receipts(url)).join() === '1', 'the receipt to be written')
    const { code, stdout, stderr } = await stop(service)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.match(/^ready /gm)).toHaveLength(1)
  })
})

describe('ending', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('by %s waits for what is under way, and takes no more', async (signal) => {
    const file = freshFile()
    const service = await startService({ DATABASE_URL: file })
    const key = randomUUID()
    const watching = await fetch(`${service.url}/drill/events`, { headers: { authorization: 'Bearer me' } })
    const text = watching.body?.pipeThrough(new TextDecoderStream()).getReader()
    const underWay = pay(service.url, { key, drill: 'slow=2000' })
    // Told by the service itself: the key is claimed, and the handler is at work.
    for (let seen = ''; !seen.includes('claimed'); ) seen += (await text?.read())?.value ?? 'claimed'
    service.signal(signal)
    service.signal(signal) // an impatient platform changes nothing
    await until(async () => !(await isServing(service.url)), 'nothing new is taken')
    expect(service.stdout()).toContain('ready')
    const answer = await underWay
    expect([answer.status, answer.headers.get('connection')]).toEqual([201, 'close'])
    expect(await service.ended).toMatchObject({ code: 0, signal: null, stderr: '' })
    const next = await startService({ DATABASE_URL: file })
    expect([isReplay(await pay(next.url, { key })), await effects(next.url)]).toEqual([true, 1])
    expect((await stop(next)).code).toBe(0)
  })

  it('happens also when whoever watches over it is killed: no service is left behind', async () => {
    const service = await startService({ DATABASE_URL: freshFile() })
    service.signal('SIGKILL')
    await until(async () => !(await isServing(service.url)), 'the service is gone')
    expect((await service.ended).signal).toBe('SIGKILL')
  })
})
