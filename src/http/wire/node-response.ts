// Sends an answer on a response of `node:http`: after the fields that others have set, at the pace of the client, whole or cut.

import type { ServerResponse } from 'node:http'
import type { FinishedAnswer } from '../core/index.js'
import { isSent, mergeInto } from './response-fields.js'
import { letGo } from './stream.js'

/**
 * Sends an answer. That the client has gone is no error. Rejects where the body fails halfway, with the connection cut, so that nobody takes a part for the whole.
 */
export async function sendToNode(response: ServerResponse, answer: FinishedAnswer): Promise<void> {
  const { status, body } = answer
  if (isGone(response)) return letGo(body)
  response.statusCode = status
  mergeInto(
    {
      get: (name) => {
        const value = response.getHeader(name)
        return typeof value === 'number' ? String(value) : value
      },
      set: (name, value) => response.setHeader(name, value),
      remove: (name) => response.removeHeader(name),
    },
    answer,
  )
  if (!isSent(answer, response.req?.method)) {
    response.end()
    return letGo(body)
  }
  if (body instanceof Uint8Array) {
    if (body.length === 0) response.end()
    // Fields and text leave in one write, fields and bytes in two.
    else if (answer.text === undefined) response.end(body)
    else response.end(answer.text)
    return
  }
  try {
    for await (const part of body) {
      if (isGone(response)) return
      if (!response.write(part)) await hasRoom(response)
    }
  } catch (error) {
    response.destroy()
    throw error
  }
  response.end()
}

function isGone(response: ServerResponse): boolean {
  return response.destroyed || response.writableEnded || response.closed
}

function hasRoom(response: ServerResponse): Promise<void> {
  if (isGone(response)) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done).off('close', done)
      resolve()
    }
    response.on('drain', done).on('close', done)
  })
}
