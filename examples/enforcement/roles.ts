// What each process does, once it knows its settings.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { armFromEnvironment } from 'reprise/testing'
import { actionClient, type Intent } from './client.js'
import { Journal, type Role } from './processes.js'
import { openRegister } from './register.js'
import { actionRelay, quick } from './relay.js'
import { actionService } from './service.js'
import { openStore } from './store.js'

/** The settings of all roles; each reads its own. */
export interface RoleSettings {
  readonly journal: string
  /** The store of the service. */
  readonly database: string
  /** The file of the register. */
  readonly file: string
  /** Where to listen; 0 is any free port. */
  readonly port: string
  /** Whom to call. */
  readonly url: string
  /** What a client wants, as JSON. */
  readonly intents: string
}

/** Runs a role until it is asked to end. */
export async function runRole(role: Role, settings: RoleSettings): Promise<void> {
  armFromEnvironment() // for the drill; in production nobody arms fault points
  await roles[role](settings)
}

const roles: Readonly<Record<Role, (settings: RoleSettings) => Promise<void>>> = {
  async service({ journal, database, port }) {
    const store = openStore(database)
    const server = actionService(store, new Journal(journal).note)
    ready(await listen(server, Number(port)))
    await asked()
    await close(server)
    await store.close()
  },

  async relay({ database, url }) {
    const store = openStore(database)
    const ending = new AbortController()
    const relaying = actionRelay(store.db, url, quick).run({ signal: ending.signal })
    ready('nowhere')
    await Promise.race([asked(), relaying])
    ending.abort()
    await relaying
    await store.close()
  },

  async register({ journal, file, port }) {
    const register = await openRegister(file, new Journal(journal).note)
    const ending = new AbortController()
    const consuming = register.consumer.run({ signal: ending.signal })
    const server = createServer((request, response) => void register.source.take(request, response))
    ready(await listen(server, Number(port)))
    await Promise.race([asked(), consuming])
    ending.abort()
    await consuming
    await close(server)
    await register.close()
  },

  async client({ url, intents }) {
    const create = actionClient(url)
    const wanted = JSON.parse(intents) as readonly Intent[]
    const answers = await Promise.all(wanted.map(create))
    console.log(JSON.stringify(answers))
  },
}

/** Listens, and gives the address. */
export async function listen(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Takes no more requests, and waits for those at work. */
export async function close(server: Server): Promise<void> {
  server.close()
  server.closeIdleConnections()
  await once(server, 'close')
}

function ready(address: string): void {
  console.log(`ready ${address}`)
}

const longestEndMs = 60_000

// SIGTERM ends a process, and so does the end of whoever started it. What is at work then is waited for, and not for ever.
function asked(): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      setTimeout(() => process.exit(1), longestEndMs).unref()
      resolve()
    }
    process.once('SIGTERM', end)
    process.once('disconnect', end)
    if (process.connected === false) end() // whoever it was is gone already
  })
}
