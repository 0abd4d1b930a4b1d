// An app in a process of its own, started as its user does.

import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { until } from '../../servers/server-process.js'

const watched = fileURLToPath(new URL('../processes/watched-app.mjs', import.meta.url))

/** A running program. */
export interface Program {
  /** What it has written so far. */
  said(): string
  /** How often it has written a line. */
  count(line: string): number
  /** Waits until it has written what this finds; an end before that is an error. */
  says(what: RegExp): Promise<RegExpExecArray>
  /** Waits until it has ended, and tells by which code or signal. */
  ended(): Promise<number | NodeJS.Signals | null>
  signal(name: NodeJS.Signals): void
}

const running = new Set<ChildProcess>()

/** Ends what is running still. */
export function endPrograms(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Starts a program in a folder. */
export function startProgram(folder: string, script: string, env: Readonly<Record<string, string>>): Program {
  const flags = ['--disable-warning=ExperimentalWarning', '--import', watched]
  const child = spawn(process.execPath, [...flags, script], { cwd: folder, env: { ...process.env, ...env } })
  running.add(child)
  let said = ''
  let isOver = false
  child.on('close', () => {
    running.delete(child)
    isOver = true
  })
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  return {
    said: () => said,
    count: (line) => said.split('\n').filter((one) => one === line).length,
    async says(what) {
      await until(() => what.test(said) || isOver, `${what} of ${folder}`)
      const found = what.exec(said)
      if (found === null) throw new Error(`${folder} ended.\n${said}`)
      return found
    },
    async ended() {
      await until(() => isOver, `the end of ${folder}`)
      return child.signalCode ?? child.exitCode
    },
    signal: (name) => void child.kill(name),
  }
}

/** A running server. */
export interface App extends Program {
  readonly url: string
}

/** Starts `server.js` of a folder, and waits until it says where it listens. */
export async function startApp(folder: string, env: Readonly<Record<string, string>>): Promise<App> {
  const program = startProgram(folder, 'server.js', env)
  const [, url = ''] = await program.says(/^ready (http:\S+)$/m)
  return { ...program, url }
}

/** Stops a server. */
export async function stopApp(app: App | undefined): Promise<void> {
  app?.signal('SIGTERM')
  await app?.ended()
}
