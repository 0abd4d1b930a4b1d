import Database from 'libsql'
import { describe, expect, it } from 'vitest'
import { idempotent, idempotentLeased, reply } from '../../../src/http/fetch/index.js'
import { rerunKeyed } from '../../../src/idempotency/index.js'
import { type SqliteHandle, sqlite } from '../../../src/stores/sqlite/index.js'
import { openWorld } from './world.js'

const { db, file, route } = await openWorld()

// The same file, by a connection on which the first statement that begins so finds the database busy, as behind another
// process.
function busyOnce(start: string) {
  let isBusy = true
  const open = (): SqliteHandle => {
    const handle = new Database(file)
    return new Proxy(handle, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (name !== 'prepare') return typeof value === 'function' ? value.bind(target) : value
        return (text: string) => {
          if (isBusy && text.startsWith(start)) {
            isBusy = false
            throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' })
          }
          return target.prepare(text)
        }
      },
    }) as unknown as SqliteHandle
  }
  return sqlite({ name: 'busy', open })
}

const request = (body = '{"amount":7}') =>
  new Request('https://shop.example/charges/7?a=1', {
    method: 'POST',
    body,
    headers: { 'idempotency-key': 'k-1', 'content-type': 'application/json' },
  })

describe('as fetch', () => {
  it('every run gets a real Request of its own, and what the server passes beside it', async () => {
    const seen: Request[] = []
    const busy = busyOnce('insert into charge')
    const options = {
      ...route(),
      // As a route handler of Next is called.
      params: (context: { readonly params: Promise<{ id: string }> }) => context.params,
      parse: ({ params }: { readonly params: Readonly<Record<string, string>> }) => params['id'],
    }
    const POST = idempotent(busy, options, async ({ request: given, input, tx }) => {
      seen.push(given)
      const { amount } = (await given.json()) as { amount: number }
      await tx.query('insert into charge (id) values (?)', [input])
      return Response.json({ amount, id: input, url: given.url, attempt: tx.attempt }, { status: 201 })
    })
    const original = request()
    const answer = await POST(original, { params: Promise.resolve({ id: '7' }) })
    expect(await answer.json()).toEqual({ amount: 7, id: '7', url: 'https://shop.example/charges/7?a=1', attempt: 2 })
    expect(seen).toHaveLength(2)
    expect(new Set([...seen, original]).size).toBe(3)
    expect(seen.every((one) => one instanceof Request)).toBe(true)
    await busy.close()
  })

  it('what the handler throws rejects, and a Request that was read is refused', async () => {
    const thrown = new Error('no reply')
    const POST = idempotentLeased(db, { ...route(), recover: rerunKeyed('1h') }, ({ lease }) => {
      throw lease.notSent(thrown)
    })
    await expect(POST(request())).rejects.toBe(thrown)
    const read = request()
    await read.text()
    await expect(POST(read)).rejects.toMatchObject({ code: 'BODY_CONSUMED' })
  })

  it('two keys that were joined on the way are refused', async () => {
    const POST = idempotent(db, route(), () => reply(200, 'never'))
    const joined = request()
    joined.headers.append('idempotency-key', 'k-2')
    expect((await POST(joined)).status).toBe(400)
  })
})
