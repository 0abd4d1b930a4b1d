// Loaded before an app, which stays as it is: says when a request arrives and, where it is told to, kills the process at
// the moment in which its answer would leave.

import { subscribe } from 'node:diagnostics_channel'
import { ServerResponse } from 'node:http'

subscribe('http.server.request.start', () => process.stdout.write('arrived\n'))

if (process.env['APP_DIES'] === 'before its answer') {
  ServerResponse.prototype.end = function end() {
    process.kill(process.pid, 'SIGKILL')
    return this
  }
}
