// The page for newcomers, done as it says: the tarball is packed, apps with Express and Fastify, on SQLite and
// PostgreSQL, are made from it, called, and compiled. REPRISE_WRITE_DOCS=1 writes what the commands print.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Fence, root } from '../markdown.js'
import { createDatabase } from '../servers/fresh-database.js'
import { startPostgres } from '../servers/postgres.js'
import { freePort, until } from '../servers/server-process.js'
import { appBlocks, postgresBlocks, startPage } from './start-page.js'

const write = process.env['REPRISE_WRITE_DOCS'] === '1'
const folder = mkdtempSync(join(tmpdir(), 'reprise-start-'))
const running: ChildProcess[] = []
/** The database that the page names; the test has one of its own. */
const namedDatabase = 'postgres://shop@127.0.0.1:5432/shop'
let port = 0
let databaseUrl = namedDatabase

beforeAll(async () => {
  mkdirSync(join(folder, 'reprise'))
  port = await freePort()
})

afterAll(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** The same on the port of this run, where the page says 3000, and with its database. */
const here = (text: string): string =>
  text.replaceAll(/\b3000\b/g, String(port)).replaceAll(namedDatabase, () => databaseUrl)
const there = (text: string): string => text.replaceAll(String(port), '3000')

/** What differs from run to run. */
const steady = (text: string): string =>
  text
    .replaceAll('\r', '')
    .replaceAll(/^date: .*$/gim, 'Date: …')
    .replaceAll(/"heldSinceMs":\d+/g, '"heldSinceMs":…')

const install = `npm() { if [ "$1" = install ]; then "${process.execPath}" "${root}/test/package/fixtures/install.mjs" "${root}" "$@"; else command npm "$@"; fi; }\n`
/** What was defined in the shell by blocks before. */
let functions = ''

function shell(text: string, cwd: string): string {
  functions += /^\w+\(\) \{.*\}\n/m.exec(text)?.[0] ?? ''
  const env = {
    ...process.env,
    npm_config_pack_destination: join(folder, 'reprise'),
    npm_config_loglevel: 'error',
    // The tests began with a build; another one, perhaps by another Node, must not change what they stand on.
    npm_config_ignore_scripts: 'true',
  }
  return execFileSync('sh', ['-ec', install + here(functions + text)], { cwd, encoding: 'utf8', env, timeout: 900_000 })
}

async function serve(cwd: string, prints: string): Promise<ChildProcess> {
  const env = { ...process.env, DATABASE_URL: databaseUrl }
  const child = spawn(process.execPath, ['server.js'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
  running.push(child)
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
  })
  await until(() => stdout !== '' || child.exitCode !== null, 'the first line of the server')
  expect(there(stdout)).toBe(prints)
  return child
}

async function stop(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined) return
  child.kill('SIGTERM')
  await until(() => child.exitCode !== null || child.signalCode !== null, 'the end of the server')
}

function writePage(commands: string, before: string, printed: string): void {
  const blocks = (prints: string): string => `\`\`\`sh\n${commands}\`\`\`\n\n\`\`\`text\n${prints}\`\`\`\n`
  const text = readFileSync(join(root, startPage), 'utf8')
  writeFileSync(
    join(root, startPage),
    text.replace(blocks(before === '\n' ? '' : before), () => blocks(printed)),
  )
}

it('what npm packs is built first: a fresh clone packs no empty tarball', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  expect(scripts['prepack']).toBe(scripts['build'])
})

/** Does what these blocks say, in order; the answer is the apps that were made, and how many outputs were compared. */
async function follow(blocks: readonly Fence[]): Promise<{ apps: string[]; shown: number }> {
  const apps: string[] = []
  let server: ChildProcess | undefined
  let shown = 0
  for (const [index, { info, text, line }] of blocks.entries()) {
    const cwd = apps.at(-1) === undefined ? root : join(folder, apps.at(-1) ?? '')
    const next = blocks[index + 1]
    const prints = next?.info === 'text' ? next.text : undefined
    const made = /^mkdir (\S+)\ncd \1\n/.exec(text)?.[1]
    if (info === 'ts') writeFileSync(join(cwd, 'server.js'), here(text))
    else if (info === 'text') shown++
    else if (made !== undefined) {
      await stop(server)
      apps.push(made)
      shell(text, folder)
    } else if (text === 'node server.js\n') server = await serve(cwd, prints ?? '')
    else if (text.includes('npx tsc')) {
      await stop(server)
      const [commands = '', rest] = text.split('node server.js\n')
      expect(rest).toBe('')
      for (const app of apps) {
        shell(commands, join(folder, app))
        await stop(await serve(join(folder, app), 'http://127.0.0.1:3000\n'))
      }
    } else {
      const printed = steady(there(shell(text, cwd)))
      if (write && prints !== undefined) writePage(text, prints, printed)
      else if (prints !== undefined) expect(printed, `${startPage}:${line}`).toBe(prints)
    }
  }
  await stop(server)
  return { apps, shown }
}

const inTypeScript = (): Fence[] => appBlocks().filter(({ text }) => text.includes('npx tsc'))

it('the apps of the page are made, run, answer and compile as it says', async () => {
  const onPostgres = new Set(postgresBlocks().map(({ line }) => line))
  const blocks = appBlocks().filter(({ line }) => !onPostgres.has(line))
  expect(await follow(blocks)).toEqual({ apps: ['shop-express', 'shop-fastify'], shown: 5 })
})

it('so is the one on PostgreSQL', async () => {
  const server = await startPostgres({ fsync: false })
  try {
    databaseUrl = (await createDatabase(server.url)).url
    const blocks = [...postgresBlocks(), ...inTypeScript()]
    expect(await follow(blocks)).toEqual({ apps: ['shop-postgres'], shown: 3 })
  } finally {
    await server.dispose()
  }
})
