// What only a process of its own can show: when it ends, and what it still holds after a collection of garbage.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import typescript from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const sources = ['errors', 'live-scope', 'runtime', 'time/clock']
let folder = ''
let scripts = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reprise-kernel-'))
  await mkdir(join(folder, 'time'))
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  const { ESNext } = typescript.ModuleKind
  const compilerOptions = { module: ESNext, target: typescript.ScriptTarget.ES2023 }
  for (const name of sources) {
    const source = await readFile(new URL(`./${name}.ts`, import.meta.url), 'utf8')
    const { outputText } = typescript.transpileModule(source, { compilerOptions })
    await writeFile(join(folder, `${name}.js`), outputText)
  }
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** Runs a script beside the kernel's files; ends it with an error where it has not ended by itself in time. */
async function run(script: string, flags: readonly string[] = []): Promise<string> {
  scripts += 1
  const file = join(folder, `script-${scripts}.js`)
  await writeFile(file, script)
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, file], { timeout: 240_000 })
  return stdout
}

describe('a pending timer', () => {
  it('does not keep the process alive when asked not to, also beyond 31 bits', async () => {
    const output = await run(`
      import { systemClock } from './time/clock.js'
      for (const delayMs of [3_600_000, 2 ** 40]) {
        systemClock.setTimer(delayMs, () => console.log('fired'), { keepAlive: false })
      }
      console.log('end of script')
    `)
    expect(output).toBe('end of script\n')
  })

  it('keeps the process alive otherwise, until it has fired or was cancelled', async () => {
    const output = await run(`
      import { systemClock } from './time/clock.js'
      systemClock.setTimer(20, () => console.log('fired'))
      systemClock.setTimer(3_600_000, () => console.log('cancelled'))()
      console.log('end of script')
    `)
    expect(output).toBe('end of script\nfired\n')
  })
})

describe('scopes that come and go', () => {
  // Each link opens the next scope in the way of its case, and all of them carry a value of some size.
  const chain = (link: string) => `
    import { scopeKind } from './live-scope.js'
    const kind = scopeKind('chain')
    const links = 300_000
    const values = []
    const valueOf = (index) => {
      const value = { payload: new Array(20).fill(index) }
      if (index % 1000 === 0) values.push(new WeakRef(value))
      return value
    }
    const collected = () => {
      gc()
      return process.memoryUsage().heapUsed
    }
    let last
    let finish
    const finished = new Promise((resolve) => { finish = resolve })
    // A timer keeps the scope in which it was set, and with it all that can be reached from there.
    const finishHere = () => {
      last = setTimeout(() => undefined, 3_600_000).unref()
      finish()
    }
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    ${link}
    await turn()
    const beforeBytes = collected()
    start(0)
    await finished
    await turn()
    const grownBytes = collected() - beforeBytes
    clearTimeout(last)
    console.log(JSON.stringify({ grownBytes, held: values.filter((value) => value.deref() !== undefined).length }))
  `

  it.each([
    [
      'opened by work that outlived the one before',
      `function start(index) {
        if (index === links) return finishHere()
        let ended
        const end = new Promise((resolve) => { ended = resolve })
        kind.run(valueOf(index), async () => { end.then(() => start(index + 1)) }).then(ended)
      }`,
    ],
    [
      'opened inside the one before, which then ends',
      `function start(index) {
        if (index === links) return finishHere()
        kind.run(valueOf(index), async () => {
          await undefined
          Promise.resolve().then(() => start(index + 1))
          await undefined
        })
      }`,
    ],
    [
      'opened from timers inside one that stays',
      `function start(index) {
        kind.run('outer', async () => {
          const next = (at) => {
            if (at === links) return finishHere()
            let ended
            const end = new Promise((resolve) => { ended = resolve })
            kind.run(valueOf(at), async () => { end.then(() => at % 100 === 0 ? setImmediate(next, at + 1) : next(at + 1)) }).then(ended)
          }
          next(0)
          await new Promise(() => undefined)
        })
      }`,
    ],
  ])('leave nothing behind when %s', async (_, link) => {
    const { grownBytes, held } = JSON.parse(await run(chain(link), ['--expose-gc']))
    // A frame kept for each link would be 15 MB, a value 50 MB.
    expect(grownBytes).toBeLessThan(2_000_000)
    expect(held).toBeLessThanOrEqual(1)
  })

  it('do not keep their values for the timers that were set in them', async () => {
    const output = await run(
      `
      import { scopeKind } from './live-scope.js'
      const kind = scopeKind('value')
      const values = []
      const timers = []
      const enter = (work) => {
        const value = { payload: new Array(20).fill(0) }
        values.push(new WeakRef(value))
        return kind.run(value, work)
      }
      const setTimer = () => { timers.push(setTimeout(() => undefined, 3_600_000).unref()) }
      const held = () => {
        gc()
        return values.filter((value) => value.deref() !== undefined).length
      }
      const turn = () => new Promise((resolve) => setImmediate(resolve))
      let end
      const ended = new Promise((resolve) => { end = resolve })
      const running = []
      for (let index = 0; index < 100; index += 1) {
        running.push(enter(async () => { setTimer(); await ended }))
        enter(setTimer)
        try { enter(() => { setTimer(); throw new Error('inside') }) } catch {}
      }
      await turn()
      const heldWhileLive = held()
      end()
      await Promise.all(running)
      running.length = 0
      await turn()
      console.log(JSON.stringify([timers.length, heldWhileLive, held()]))
    `,
      ['--expose-gc'],
    )
    expect(JSON.parse(output)).toEqual([300, 100, 0])
  })
})
