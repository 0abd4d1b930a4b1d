// Child processes: signals are passed on, exit codes come back, and output is shown or kept.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'

/**
 * @typedef {object} ChildOptions
 * @property {string} [cwd] where it runs; default: here
 * @property {NodeJS.ProcessEnv} [env] its whole environment; default: ours
 * @property {boolean} [quiet] keep the output instead of showing it; default false
 * @property {(chunk: string) => void} [onOutput] sees kept output as it comes
 */

/** @typedef {{ code: number, signal: NodeJS.Signals | null, output: string }} Ended */

/** The exit code of a shell: the code itself, or 128 + the number of the signal. */
function exitCode(/** @type {number | null} */ code, /** @type {NodeJS.Signals | null} */ signal) {
  return signal === null ? (code ?? 1) : 128 + (constants.signals[signal] ?? 0)
}

/**
 * Passes termination signals on to a child until the answer is called. The child decides how to end; we follow.
 * Ctrl-C at a terminal reaches the whole group by itself, so it is only passed on when there is no terminal.
 * @param {import('node:child_process').ChildProcess} child
 */
export function passSignals(child) {
  const pass = (/** @type {NodeJS.Signals} */ signal) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  const signals = /** @type {NodeJS.Signals[]} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
  for (const signal of signals) process.on(signal, pass)
  return () => {
    for (const signal of signals) process.off(signal, pass)
  }
}

/**
 * Runs a program to its end. Never throws: a program that cannot be started ends with code 127 and says why.
 * @param {string} program
 * @param {readonly string[]} args
 * @param {ChildOptions} [options]
 * @returns {Promise<Ended>}
 */
export function run(program, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: options.quiet ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    })
    const release = passSignals(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk) => {
        output += chunk
        options.onOutput?.(chunk)
      })
    }
    child.on('error', (error) => {
      release()
      if (!options.quiet) console.error(`${program} could not be started: ${error.message}`)
      resolve({ code: 127, signal: null, output: `${output}${program} could not be started: ${error.message}\n` })
    })
    child.on('close', (code, signal) => {
      release()
      resolve({ code: exitCode(code, signal), signal, output })
    })
  })
}

/** Runs a Node script with this Node. @type {typeof run} */
export const runNode = (script, args, options) => run(process.execPath, [script, ...args], options)

/**
 * The script behind a command of an installed package, from that package's own `bin` field:
 * unlike node_modules/.bin it is a JavaScript file on every platform.
 * @param {string} root
 * @param {string} packageName
 * @param {string} [command] default: the package's name without its scope
 */
export function packageScript(root, packageName, command = packageName.replace(/^@[^/]+\//, '')) {
  const folder = join(root, 'node_modules', packageName)
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return join(folder, typeof bin === 'string' ? bin : bin[command])
}

/** Our environment, asking for output without colours. @returns {NodeJS.ProcessEnv} */
export function plainEnvironment() {
  const { FORCE_COLOR: _, ...rest } = process.env
  return { ...rest, NO_COLOR: '1' }
}

/** A progress line. It goes to stderr, so that stdout holds only what the command itself has to say. */
export function say(/** @type {string} */ line) {
  process.stderr.write(`${line}\n`)
}

/** An ending that is explained by its message alone: no stack is shown. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {1 | 2} [exitCode] 2 where the command line is what is wrong; default 1
   */
  constructor(message, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}
