import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ioInMemory, type Seen } from '../../../test/cli/io-in-memory.js'
import { memorySubject } from '../../../test/http/conformance/memory-subject.js'
import { httpCases } from '../../testing/index.js'
import { runCommandLine } from '../reprise.js'

async function run(words: readonly string[], io: Seen = ioInMemory()): Promise<Seen> {
  await runCommandLine(['conformance', ...words], io)
  return io
}

const go = '--i-know-this-writes'

describe('conformance', () => {
  it('sends nothing without the word that it may write', async () => {
    // Nobody listens there: it would fail otherwise.
    const { out, err, code } = await run(['http://127.0.0.1:9'])
    expect({ out, code }).toEqual({ out: '', code: 2 })
    expect(err).toBe(
      'reprise: the cases write to the server, hundreds of effects: say --i-know-this-writes if it may be written to\nSee reprise conformance --help.\n',
    )
  })

  it('says what passed, and ends well', async () => {
    const { out, err, code } = await run([await memorySubject(), go, '--only', 'http-16', '--only', 'http-20,http-46c'])
    expect(err).toBe('')
    expect(out).toBe('not offered  http-46c: it takes 2 processes on one store\n9 passed, 0 failed, 1 not offered\n')
    expect(code).toBe(0)
  })

  it('says what failed, what was seen and what it means, and ends with 1', async () => {
    const url = await memorySubject({ plant: { principal: () => 'everybody' } })
    const { out, code } = await run([`--url=${url}`, go, '--only', 'http-67'])
    expect(out).toContain(
      [
        'failed       http-67  MUST NOT answer a user with what another got under the same key and body',
        '             seen: the other user: "201 marked as a replay", and should be "an answer without that mark"',
        '             so:   a guessed or leaked key is worth nothing to a stranger',
      ].join('\n'),
    )
    expect(out).toMatch(/\n\d passed, \d failed, 0 not offered\n$/)
    expect(code).toBe(1)
  })

  it('answers as JSON', async () => {
    const { out, code } = await run(
      [await memorySubject(), go, '--only', 'http-15', '--json'],
      ioInMemory({ columns: 80 }),
    )
    const [only] = httpCases.filter(({ id }) => id === 'http-15')
    expect(JSON.parse(out)).toEqual({
      cases: [{ id: 'http-15', title: only?.title, proves: only?.proves, outcome: 'passed' }],
      left: 0,
    })
    expect(code).toBe(0)
  })

  it('shows how far it is, on a terminal', async () => {
    const io = await run([await memorySubject(), go, '--only', 'http-15,http-17'], ioInMemory({ columns: 80 }))
    expect(io.err).toBe('\r\u001b[K1 of 2: http-15\r\u001b[K2 of 2: http-17\r\u001b[K')
    expect(io.out).toBe('2 passed, 0 failed, 0 not offered\n')
  })

  it('ends after the case at hand when it is asked to', async () => {
    const io = ioInMemory({ columns: 80 })
    const asked = new AbortController()
    io.untilEnded = () => asked.signal
    io.complain = () => asked.abort()
    await run([await memorySubject(), go, '--only', 'http-15,http-17'], io)
    expect([io.out, io.code]).toEqual(['1 passed, 0 failed, 0 not offered, 1 not begun\n', 1])
  })

  it('takes a second process, a template for users, and fields of its own', async () => {
    const url = await memorySubject()
    const words = [url, '--also', url, go, '--only', 'http-46c', '--bearer', 'x-{user}', '--header', 'X-Gateway: 1']
    expect((await run([...words, '--timeout', '5s'])).out).toBe('1 passed, 0 failed, 0 not offered\n')
  })

  /** A server that answers everything alike, or nothing at all; it ends with the test, and counts what it was asked. */
  const serverWith = async (status: number, body = ''): Promise<{ url: string; asked: string[] }> => {
    const asked: string[] = []
    const server = createServer(({ method, url }, response) => {
      asked.push(`${method} ${url}`)
      if (status > 0) response.writeHead(status).end(body)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
  }

  it('says in one line that nobody answers, and ends with 1', async () => {
    const { out, err, code } = await run(['http://127.0.0.1:9', go])
    expect({ out, code }).toEqual({ out: '', code: 1 })
    expect(err).toBe('reprise: nothing was run: GET /effects: no answer: ECONNREFUSED\n')
  })

  it('waits no longer for an answer than it was told', async () => {
    const { err, code } = await run([(await serverWith(0)).url, go, '--timeout', '200ms'])
    expect({ err, code }).toEqual({
      err: 'reprise: nothing was run: GET /effects: no answer within 200 ms\n',
      code: 1,
    })
  })

  it('asks every process, before it runs anything', async () => {
    const { err, code } = await run([await memorySubject(), '--also', 'http://127.0.0.1:9', go])
    expect({ err, code }).toEqual({ err: 'reprise: nothing was run: GET /effects: no answer: ECONNREFUSED\n', code: 1 })
  })

  it.each([
    [
      404,
      'the server has no GET /effects, which every case needs: docs/reference/conformance.md says what it answers',
      3,
    ],
    [
      405,
      'the server has no GET /effects, which every case needs: docs/reference/conformance.md says what it answers',
      3,
    ],
    [401, 'GET /effects answers 401, and should 200 {"effects": n}', 1],
    [200, 'GET /effects answers 200, and should 200 {"effects": n}', 1],
  ])('writes nothing to a server whose /effects answers %i, and says so', async (status, why, ends) => {
    const { url, asked } = await serverWith(status, '{}')
    const { out, err, code } = await run([url, go])
    expect({ out, err, code }).toEqual({ out: '', err: `reprise: nothing was run: ${why}\n`, code: ends })
    expect(new Set(asked)).toEqual(new Set(['GET /effects']))
  })

  it('does not end well where nothing could be run', async () => {
    const { out, err, code } = await run([await memorySubject(), go, '--only', 'http-46c'])
    expect(out).toBe('not offered  http-46c: it takes 2 processes on one store\n0 passed, 0 failed, 1 not offered\n')
    expect({ err, code }).toEqual({ err: 'reprise: nothing was run: the server offers none of these cases\n', code: 3 })
  })

  it('lists the cases, and sends nothing', async () => {
    expect((await run(['--list', '--only', 'http-31'])).out).toMatch(
      /^http-31 {3}MUST remember a 204\n.*\nhttp-31b .*\n.*\n$/,
    )
    expect(JSON.parse((await run(['--list', '--json'])).out)).toHaveLength(httpCases.length)
  })

  it.each([
    [[go], 'which server? Give its URL'],
    [['ftp://x', go], 'the address of a server begins with http:// or https://'],
    [['nowhere', go], 'the address of a server begins with http:// or https://'],
    [['http://x', go, '--also', 'y'], 'the address of a server begins with http:// or https://'],
    [['http://x', go, '--only', 'http-99'], 'there is no case http-99: --list shows them all'],
    [['http://x', go, '--bearer', 'secret'], '--bearer needs {user} in it: cases tell users apart'],
    [['http://x', go, '--header', 'nonsense'], "--header takes 'NAME: VALUE'"],
    [['http://x', go, '--timeout', 'soon'], 'DURATION_INVALID'],
    [['http://x', 'http://y', go], 'Unexpected argument'],
  ])('refuses %j', async (words, message) => {
    const { out, err, code } = await run(words)
    expect(err).toContain(message)
    expect({ out, code }).toEqual({ out: '', code: 2 })
  })

  it('explains itself', async () => {
    const { out, code } = await run(['--help'])
    expect(out).toContain('never as passed')
    expect(code).toBe(0)
  })
})
