// A subject as a process: it says `ready <address>`, and ends with its input. Whatever a peer calls its mark of a
// replay, here it has one name.

import { createServer } from 'node:http'

/**
 * @param {import('node:http').RequestListener} listener
 * @param {string} [mark] the field by which the layer says that an answer is a replay, where it is not
 *   Idempotent-Replayed
 */
export function listening(listener, mark = '') {
  const server = createServer((request, response) => {
    if (mark !== '') renamed(response, mark.toLowerCase())
    listener(request, response)
  })
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    console.log(`ready http://127.0.0.1:${port}`)
  })
  process.stdin.resume().on('end', () => process.exit(0))
}

/** @param {import('node:http').ServerResponse} response @param {string} mark */
function renamed(response, mark) {
  const writeHead = response.writeHead.bind(response)
  response.writeHead = (/** @type {[number, ...any[]]} */ ...head) => {
    const given = Object.entries(Object(head.at(-1))).some(([name]) => name.toLowerCase() === mark)
    if (given || response.hasHeader(mark)) response.setHeader('Idempotent-Replayed', 'true')
    return writeHead(...head)
  }
}
