// How an answer leaves through Fastify.

import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { Answer } from '../core/index.js'
import { type FieldTarget, setFields } from '../wire/index.js'

/** The fields of a reply. */
export function fieldsIn(reply: FastifyReply): FieldTarget & Pick<FastifyReply, 'getHeaders'> {
  return {
    getHeaders: () => reply.getHeaders(),
    getHeader: (name) => reply.getHeader(name),
    setHeader: (name, value) => {
      // Fastify adds cookies to those that are there; any other field it replaces.
      if (name === 'set-cookie') reply.removeHeader(name)
      reply.header(name, value)
    },
    removeHeader: (name) => reply.removeHeader(name),
  }
}

/** Sets the status and the fields of an answer, and gives what it carries. */
export function payloadOf(reply: FastifyReply, answer: Answer): Buffer | Readable | undefined {
  const { body } = answer
  reply.code(answer.status)
  setFields(fieldsIn(reply), answer)
  if (body === null || body === '') return undefined
  // Bytes, and not text, which a serializer of the application would be given.
  if (typeof body === 'string') return Buffer.from(body)
  if (!(body instanceof Uint8Array)) return Readable.from(body)
  return body.length === 0 ? undefined : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}
