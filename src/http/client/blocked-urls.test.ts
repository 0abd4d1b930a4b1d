import { describe, expect, it } from 'vitest'
import { UnknownOutcomeError } from '../../retry/index.js'
import { demandSendable } from './blocked-urls.js'
import { httpClient } from './client.js'

const isRefused = (url: string): boolean => {
  try {
    demandSendable(new URL(url))
    return false
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return true
  }
}

describe('what fetch does not send', () => {
  const ports = Array.from({ length: 65_536 }, (_, port) => port).filter((port) =>
    isRefused(`http://127.0.0.1:${port}/`),
  )

  it('is refused here only where the runtime does so too', async () => {
    expect(ports.length).toBeGreaterThan(75)
    for (const port of ports) {
      const error = await fetch(`http://127.0.0.1:${port}/`).catch((reason: unknown) => reason)
      expect(error, `${port}`).toMatchObject({ cause: { message: 'bad port' } })
    }
    for (const scheme of ['ftp', 'ws', 'gopher', 'javascript']) {
      expect(isRefused(`${scheme}://127.0.0.1/`)).toBe(true)
      await expect(fetch(`${scheme}://127.0.0.1/`)).rejects.toBeInstanceOf(TypeError)
    }
  })

  it('leaves the others alone', async () => {
    const urls = ['http://127.0.0.1/', 'https://127.0.0.1:8443/', 'http://127.0.0.1:8080', 'data:,x', 'about:blank']
    expect(urls.filter(isRefused)).toEqual([])
    expect(await (await httpClient().fetch('data:,hello')).text()).toBe('hello')
  })

  it.each(['ftp://127.0.0.1/', 'http://127.0.0.1:25/'])(
    'a POST to %s did not happen, and nobody doubts it',
    async (url) => {
      const error = await httpClient()
        .fetch(url, { method: 'POST', body: 'x' })
        .catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(TypeError)
      expect(error).not.toBeInstanceOf(UnknownOutcomeError)
    },
  )

  it('does not speak for a fetch of the caller’s own', async () => {
    const own: typeof fetch = async () => new Response('mine')
    expect(await (await httpClient({ fetch: own }).fetch('ftp://127.0.0.1/')).text()).toBe('mine')
  })
})
