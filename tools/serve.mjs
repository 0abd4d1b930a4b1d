// `npm start`: runs the sample service, passes signals on to it, and starts it again after a crash that its page asked for.
//
// A crash that was asked for without the wish to go on, as with curl, ends this command too, with the code of a killed process: 137.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { passSignals, say } from './process.mjs'

/** @typedef {{ code: number, restart: { port: number } | undefined }} Life how one process ended, and what it asked for before */

/**
 * One life of the service.
 * @param {string} script
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Life>}
 */
function live(script, args, env) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], { env, stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
    const release = passSignals(child)
    /** @type {Life['restart']} */
    let restart
    child.on('message', (/** @type {{ restart?: { port: number } }} */ message) => {
      restart = message.restart
    })
    child.on('error', (error) => {
      release()
      say(`The service could not be started: ${error.message}`)
      resolve({ code: 127, restart: undefined })
    })
    child.on('close', (code, signal) => {
      release()
      const ended = code ?? 128 + constants.signals[signal ?? 'SIGKILL']
      resolve({ code: ended, restart: signal === 'SIGKILL' ? restart : undefined })
    })
  })
}

/** Serves until the service ends by itself. The answer is its exit code. @param {string} folder of the compiled examples */
export async function serve(folder) {
  const script = join(folder, 'payments', 'main.js')
  let life = await live(script, [], process.env)
  while (life.restart !== undefined) {
    // On the same port: the page is open on it.
    life = await live(script, ['again'], { ...process.env, PORT: String(life.restart.port) })
  }
  return life.code
}
