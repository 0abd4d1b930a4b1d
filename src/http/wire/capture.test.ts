import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import type { Answer } from '../core/index.js'
import { CapturedResponse } from './capture.js'
import { sendToNode } from './node.js'

async function answeredBy(listener: RequestListener): Promise<Response> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    return await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { method: 'POST' })
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

it('gives what is written as an answer, with the fields that were set since', async () => {
  const answers: Answer[] = []
  const flags: boolean[] = []
  const response = await answeredBy((_request, response) => {
    response.setHeader('x-before', '1')
    const captured = new CapturedResponse(
      response,
      (answer) => answers.push(answer),
      () => undefined,
    )
    response.setHeader('x-since', ['a', 'b'])
    response.writeHead(202, ['x-pair', '1', 'content-type', 'text/plain'])
    flags.push(response.headersSent, response.writableEnded)
    response.write('one ', () => flags.push(true))
    response.end(Buffer.from('two'))
    flags.push(response.writableEnded)
    response.write('three')
    captured.release()
    flags.push(response.headersSent, response.hasHeader('x-since'), response.statusCode === 200)
    // As a handler does that goes on, before the answer leaves and after it.
    const late = (): void => {
      response.setHeader('late', '1')
      response.statusCode = 500
      response.end('late')
      flags.push(response.headersSent, response.writableEnded)
    }
    captured.run(late)
    flags.push(response.headersSent, response.writableEnded)
    void sendToNode(response, answers[0] as Answer)
    captured.run(late)
    response.once('close', late)
  })
  expect(answers).toMatchObject([{ status: 202 }])
  expect(answers[0]?.headers).toEqual([
    ['x-since', 'a'],
    ['x-since', 'b'],
    ['x-pair', '1'],
    ['content-type', 'text/plain'],
  ])
  expect([response.status, await response.text(), response.headers.get('x-before')]).toEqual([202, 'one two', '1'])
  expect(response.headers.get('late')).toBeNull()
  const whileHeld = [true, false, true, false, false, true]
  const late = [true, true]
  await expect.poll(() => flags.length).toBe(15)
  expect(flags).toEqual([...whileHeld, ...late, false, false, ...late, true, ...late])
})

it('is told once of what cannot be held back, and throws nothing at who writes', async () => {
  const refusals: string[] = []
  const response = await answeredBy((_request, response) => {
    const captured = new CapturedResponse(
      response,
      () => refusals.push('answered'),
      (error) => refusals.push((error as { code?: string }).code ?? error.name),
    )
    const part = Buffer.alloc(1_048_576)
    for (let parts = 0; parts < 18; parts += 1) expect(response.write(part)).toBe(true)
    response.end()
    captured.release()
    response.statusCode = 500
    response.end('refused')
  })
  expect([response.status, await response.text(), refusals]).toEqual([500, 'refused', ['ANSWER_NOT_HELD']])
})
