// A server of Node on a free port, and its end.

import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Served } from './mounted.js'

/** Listens on a free port of the loopback interface. */
export async function listening(server: Server): Promise<Served> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
