import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { faultEnvironment, killAt } from '../../src/testing/index.js'
import { until } from '../servers/server-process.js'

const script = fileURLToPath(new URL('./processes/passes-points.mjs', import.meta.url))
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

function start(environment: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [script], { env: { ...process.env, ...environment } })
  children.push(child)
  const said = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      said[stream] += chunk
    })
  }
  const end = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal }))
  })
  return { child, said, end }
}

describe('a child process with REPRISE_FAULT', () => {
  it('is killed at the point, and not before', async () => {
    const { said, end } = start(killAt('one', 2))
    expect(await end).toEqual({ code: null, signal: 'SIGKILL' })
    expect(said).toEqual({ stdout: 'one\ntwo\n', stderr: 'reprise-fault one:2=kill\n' })
  })

  it('stands still as a whole until somebody lets it go on', async () => {
    const { child, said, end } = start(faultEnvironment('two', 'stop'))
    await until(() => said.stderr.includes('two:1=stop'), 'the point is reached')
    const stateOf = (): string | undefined =>
      /State:\s+(\w)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
    await until(() => stateOf() === 'T', 'the process is stopped')
    expect(said.stdout).toBe('one\n')
    child.kill('SIGCONT')
    expect(await end).toEqual({ code: 0, signal: null })
    expect(said.stdout).toBe('one\ntwo\none\n')
  })

  it('meets an error', async () => {
    const { said, end } = start(faultEnvironment('two', 'throw'))
    expect(await end).toEqual({ code: 0, signal: null })
    expect(said.stdout).toBe('one\ntwo: InjectedFault\none\n')
  })

  it('waits for ever, alive', async () => {
    const { child, said, end } = start(faultEnvironment('two', 'hang'))
    await until(() => said.stderr.includes('two:1=hang'), 'the point is reached')
    child.kill('SIGTERM')
    expect(await end).toEqual({ code: null, signal: 'SIGTERM' })
    expect(said.stdout).toBe('one\n')
  })

  it('passes them all when it is not set', async () => {
    const { said, end } = start({ REPRISE_FAULT: '' })
    expect(await end).toEqual({ code: 0, signal: null })
    expect(said).toEqual({ stdout: 'one\ntwo\none\n', stderr: '' })
  })
})
