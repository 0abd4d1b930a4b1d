import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { idempotent, idempotentLeased, reply } from '../../../src/http/node/index.js'
import { hold } from '../../../src/idempotency/index.js'
import { listening } from '../subject/listening.js'
import { openWorld } from './world.js'

const { db, post, route, rows, serve } = await openWorld()

describe('on node:http', () => {
  it('what the handler throws is a bare 500 and a warning, or what onError makes of it', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error): void => void warnings.push(warning)
    process.on('warning', onWarning)
    const bare = idempotent(db, route(), async ({ tx }) => {
      await tx.insertOnce('charge', { id: '1' }, ['id'])
      throw new Error('the secret of the ledger')
    })
    const first = await post(serve(await listening(createServer(bare))))
    expect([first.status, await first.text()]).toEqual([500, ''])
    expect(warnings.map(({ message }) => message)).toEqual(['the secret of the ledger'])
    const heard: unknown[] = []
    const own = idempotentLeased(
      db,
      {
        ...route(),
        recover: hold(),
        onError(error, _request, response) {
          heard.push(error)
          response.writeHead(502).end('down')
        },
      },
      ({ lease }) => {
        throw lease.notSent('text')
      },
    )
    const second = await post(serve(await listening(createServer(own))))
    expect([second.status, await second.text(), heard]).toEqual([502, 'down', ['text']])
    process.off('warning', onWarning)
    expect([warnings.length, await rows()]).toEqual([1, 0])
  })

  it('a client that is gone before its body has arrived disturbs nobody', async () => {
    let ran = 0
    const seen: unknown[] = []
    const listener = idempotent(db, { ...route(), onError: (error) => void seen.push(error) }, () => reply(200, ++ran))
    let done = (): void => undefined
    const handled = new Promise<void>((resolve) => {
      done = resolve
    })
    const server = createServer((request, response) => void listener(request, response).then(done))
    const url = serve(await listening(server))
    const stopped = new AbortController()
    const body = new ReadableStream({
      pull(controller) {
        controller.enqueue(new Uint8Array(10))
        setTimeout(() => stopped.abort(), 20)
        return new Promise<void>(() => undefined)
      },
    })
    const init = { method: 'POST', body, duplex: 'half', headers: { 'idempotency-key': 'k-1' }, signal: stopped.signal }
    await expect(fetch(url, init as RequestInit)).rejects.toThrow()
    await handled
    expect([ran, seen]).toEqual([0, []])
  })
})
