// The sample service: settings, store, server, and an end that waits for what is under way.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Ledger, openLedger } from './ledger.js'
import { Service } from './service.js'
import { addressOf, originOf, type Settings, SettingsError, settingsFrom } from './settings.js'

const longestDrainMs = 20_000

async function main(): Promise<void> {
  const settings = settingsFrom(process.env)
  const ledger = openLedger(settings.database)
  await ledger.migrate().catch((error) => {
    throw new SettingsError(`DATABASE_URL names a database that cannot be used${codeOf(error)}.`)
  })
  const server = createServer()
  const { port } = await listen(server, settings)
  const origin = originOf(settings.host, port)
  const service = new Service({
    ledger,
    origin,
    drill: settings.drill,
    announceExit: (restart) => announceExit(port, restart),
  })
  server.on('request', (request, response) => void service.handle(request, response))
  server.on('clientError', refuseUnreadable)
  const ending = new AbortController()
  const { signal } = ending
  // Keys past their window and messages that everybody has are forgotten from time to time, by one process of all.
  const onError = (error: unknown): void => console.error(`Upkeep failed: ${error}`)
  const running = Promise.all([ledger.db.upkeep({ signal, onError }), service.runReceipts(signal).catch(fail)])
  endOn(['SIGTERM', 'SIGINT', 'disconnect'], () => {
    ending.abort()
    return drain(server, service, ledger, running)
  })
  // After a crash that was asked for, everybody knows where it is.
  if (process.argv[2] !== 'again') welcome(addressOf(settings.host, port), settings)
}

async function listen(server: Server, { port, host }: Settings): Promise<AddressInfo> {
  const failed = new Promise<never>((_, reject) =>
    server.once('error', (error) => reject(new SettingsError(cannotListen(codeOf(error), port, host)))),
  )
  await Promise.race([once(server.listen(port, host), 'listening'), failed])
  return server.address() as AddressInfo
}

function cannotListen(code: string, port: number, host: string): string {
  if (code.includes('EADDRINUSE'))
    return `Port ${port} of ${host} is in use. Set PORT to another one; 0 is any free port.`
  return `The service cannot listen on port ${port} of ${host}${code}. Set PORT and HOST.`
}

function codeOf(error: unknown): string {
  for (let cause = error; cause !== undefined && cause !== null; cause = (cause as Error).cause) {
    const { code } = Object(cause) as { readonly code?: unknown }
    if (typeof code === 'string' && code !== '') return ` (${code})`
  }
  return ''
}

function welcome(url: string, { drill }: Settings): void {
  const post = (key: string, amountMinor: number, more = '') =>
    `curl -i ${url}/payments -H 'Authorization: Bearer me' -H 'Idempotency-Key: ${key}'${more} ` +
    `-H 'Content-Type: application/json' -d '{"account":"shop","amountMinor":${amountMinor},"currency":"EUR"}'`
  const second = drill
    ? `Lose the answer on the way, then repeat it without the drill: it had happened, and happens no second time.
  ${post('second-payment', 3400, " -H 'Drill: drop'")}`
    : `Ask for something else under the same key: refused.
  ${post('first-payment', 9900)}`
  console.log(`ready ${url}

Make a payment, then run the same line again: the answer comes from memory.
  ${post('first-payment', 1200)}

${second}

Count the payments.
  curl ${url}/payments -H 'Authorization: Bearer me'

Or open ${url} in a browser.`)
}

// Whoever started this process with a channel to it starts it again on the same port, or says why it is gone.
function announceExit(port: number, restart: boolean): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined) resolve()
    else process.send({ drill: { port, restart } }, () => resolve())
  })
}

// Disconnect: whoever started this process with a channel to it is gone.
function endOn(events: readonly ('SIGTERM' | 'SIGINT' | 'disconnect')[], drain: () => Promise<void>): void {
  let isEnding = false
  for (const event of events) {
    process.on(event as 'SIGTERM', () => {
      // A second signal changes nothing: the wait has a limit.
      if (isEnding) return
      isEnding = true
      drain().then(() => process.exit(0), fail)
    })
  }
  // Whoever it was may have gone before we listened. Without a channel it is undefined.
  if (process.connected === false) process.emit('disconnect')
}

// What is no HTTP, or has fields beyond the limit, never becomes a request: it is answered here, and the connection
// ends. One that the client has cut cannot be answered.
function refuseUnreadable(error: Error, socket: Socket): void {
  const { code } = error as { readonly code?: string }
  if (code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const line = code === 'HPE_HEADER_OVERFLOW' ? '431 Request Header Fields Too Large' : '400 Bad Request'
  socket.end(`HTTP/1.1 ${line}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}

async function drain(server: Server, service: Service, ledger: Ledger, running: Promise<unknown>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  service.drain()
  const late = setTimeout(() => server.closeAllConnections(), longestDrainMs)
  await closed
  clearTimeout(late)
  await running
  await ledger.close()
}

function fail(error: unknown): void {
  console.error(error instanceof SettingsError ? error.message : error)
  process.exit(1)
}

main().catch(fail)
