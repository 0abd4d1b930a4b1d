// `npm start`: runs the sample service, passes signals on to it, and starts it again after a crash that its page asked
// for.
//
// A crash that was asked for without the wish to go on, as with curl, ends this command too, with a line that says so
// and the code of a killed process: 137.

import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { passSignals, say } from './process.mjs'

/** @typedef {{ port: number, restart: boolean }} Drill what a process says before it kills itself */
/** @typedef {{ code: number, drill: Drill | undefined }} Life how one process ended, and whether a drill ended it */

// Some versions of Node call their own SQLite experimental, on every start: nothing that whoever tries the sample could
// act on.
const quiet = ['--disable-warning=ExperimentalWarning']

/**
 * One life of the service.
 * @param {string} script
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Life>}
 */
function live(script, args, env) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...quiet, script, ...args], {
      env,
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    })
    const release = passSignals(child)
    /** @type {Drill | undefined} */
    let drill
    child.on('message', (/** @type {{ drill?: Drill }} */ message) => {
      drill = message.drill
    })
    child.on('error', (error) => {
      release()
      say(`The service could not be started: ${error.message}`)
      resolve({ code: 127, drill: undefined })
    })
    child.on('close', (code, signal) => {
      release()
      const ended = code ?? 128 + constants.signals[signal ?? 'SIGKILL']
      resolve({ code: ended, drill: signal === 'SIGKILL' ? drill : undefined })
    })
  })
}

/**
 * Serves until the service ends by itself. The answer is its exit code.
 * @param {string} folder of the compiled examples
 */
export async function serve(folder) {
  const script = join(folder, 'payments', 'main.js')
  let life = await live(script, [], process.env)
  while (life.drill?.restart) {
    // On the same port: the page is open on it.
    life = await live(script, ['again'], { ...process.env, PORT: String(life.drill.port) })
  }
  if (life.drill !== undefined) {
    say('The drill killed the service, as it was asked to. Start it again with `npm start`, and repeat the request.')
  }
  return life.code
}
