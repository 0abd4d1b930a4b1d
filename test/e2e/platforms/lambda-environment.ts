// A function of Lambda: bundled as it is deployed, in a process of its own that stands still between two calls.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const fixtures = fileURLToPath(new URL('fixtures/lambda', import.meta.url))
const environment = fileURLToPath(new URL('processes/lambda-environment.mjs', import.meta.url))

/** An environment of a function. */
export interface Environment {
  /** Thaws it, calls the function, and freezes it again. */
  call<Result>(event: object): Promise<Result>
  /** Ends it as Lambda does: without a word. */
  end(): Promise<void>
}

/** Starts an environment of the function in a file. */
export async function startEnvironment(file: string, env: Readonly<Record<string, string>>): Promise<Environment> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-lambda-'))
  const outfile = join(folder, 'index.js')
  await build({
    entryPoints: [join(fixtures, file)],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    external: ['pg-native'],
  })
  const child = spawn(process.execPath, [environment, outfile], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async <Result>(): Promise<Result> => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`The environment of ${file} has ended.\n${said}`)
    child.kill('SIGSTOP')
    return JSON.parse(value) as Result
  }
  await answer()
  return {
    call: (event) => {
      child.kill('SIGCONT')
      child.stdin.write(`${JSON.stringify(event)}\n`)
      return answer()
    },
    end: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
