// `npm run examples -- enforcement`: the story in one process, or with --drill in many that are killed. The same script is
// also each of those processes.

import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { migrate } from './actions.js'
import { type Answer, actionClient, type Intent } from './client.js'
import { drill, isGood, resultTable, type Workplace, whileHeld } from './drill.js'
import { planTable, table } from './plan.js'
import type { Role, Word } from './processes.js'
import { openRegister } from './register.js'
import { actionRelay } from './relay.js'
import { close, listen, type RoleSettings, runRole } from './roles.js'
import { actionService } from './service.js'
import { openStore } from './store.js'

/** The story: a request, its repeats, a neighbour in the way, and an event that is published twice. */
async function tell({ folder, database }: Workplace): Promise<void> {
  console.log(`${planTable()}\n`)
  const counts = new Map<Word, number>()
  const count = (word: Word): number => counts.get(word) ?? 0
  const told = (word: Word): void => void counts.set(word, count(word) + 1)
  const repeats = (): number => count('repeat')
  const store = openStore(database)
  await migrate(store)
  const service = actionService(store, told)
  // More patient than the drill's: on a busy machine the story is the same.
  const create = actionClient(await listen(service), { deadline: 60_000, attempts: 20 })
  const register = await openRegister(join(folder, 'register.db'), told)
  const ending = new AbortController()
  const consuming = register.consumer.run({ signal: ending.signal })
  const registering = createServer((request, response) => void register.source.take(request, response))
  const url = await listen(registering)

  const first = intent('dumping')
  const second = intent('noise')
  const neighbour = openStore(database)
  const answers: (readonly [string, Answer])[] = [
    ['first request', await create(first)],
    ['the same again', await create(first)],
    ['the same action under another key', await create(intent('dumping'))],
    [
      'another one, while a neighbour holds its row',
      await whileHeld(neighbour, second.command, repeats, () => create(second)),
    ],
  ]
  await neighbour.close()
  const shown = ({ status, replayed, action }: Answer): string =>
    `${status}, action ${action.number} of the case${replayed ? ', from memory' : ''}`
  console.log(
    table(
      ['asked', 'answered'],
      answers.map(([asked, answer]) => [asked, shown(answer)]),
    ),
  )
  console.log(`\nrepeated as a whole: ${repeats() > 0 ? 'yes' : 'no'}\n`)

  // A relay of another name knows nothing of the first one: each publishes everything.
  const rows: (readonly [string, number, number, number, number])[] = []
  for (const name of ['register', 'once-more']) {
    const { published } = await actionRelay(store.db, url, { name }).drain()
    rows.push([name, published, count('wire'), count('duplicate'), await register.entries()])
  }
  console.log(table(['relay', 'published', 'arrived so far', 'dropped so far', 'entries'], rows))

  ending.abort()
  await consuming
  await Promise.all([close(service), close(registering)])
  await Promise.all([register.close(), store.close()])
}

function intent(violationCode: string): Intent {
  return { key: randomUUID(), command: { caseId: 'c-17', violationCode } }
}

/** Runs work in a folder and a database of its own, and leaves nothing behind. */
async function inPlace<Value>(url: string | undefined, work: (place: Workplace) => Promise<Value>): Promise<Value> {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-'))
  try {
    if (url === undefined) return await work({ folder, database: `sqlite:${join(folder, 'enforcement.db')}` })
    return await inSchema(url, (database) => work({ folder, database }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function inSchema<Value>(url: string, work: (database: string) => Promise<Value>): Promise<Value> {
  const schema = `enforcement_${randomUUID().replaceAll('-', '')}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(`create schema ${schema}`)
    const database = new URL(url)
    database.searchParams.set('schema', schema)
    return await work(database.href)
  } finally {
    await client.query(`drop schema if exists ${schema} cascade`)
    await client.end()
  }
}

interface Options {
  readonly drill?: boolean | undefined
  readonly json?: boolean | undefined
  readonly url?: string | undefined
}

// Undefined: there is something that cannot be understood.
function optionsFrom(args: string[]): Options | undefined {
  const options = { drill: { type: 'boolean' }, json: { type: 'boolean' }, url: { type: 'string' } } as const
  try {
    const { values } = parseArgs({ args, options })
    const isSound = values.url === undefined || (/^postgres(ql)?:/.test(values.url) && URL.canParse(values.url))
    return isSound ? values : undefined
  } catch {
    return undefined
  }
}

async function main(): Promise<void> {
  const roles: readonly string[] = ['service', 'relay', 'register', 'client'] satisfies readonly Role[]
  const [, , role = '', ...rest] = process.argv
  if (roles.includes(role)) {
    const names = ['journal', 'database', 'file', 'port', 'url', 'intents'] as const
    const options = Object.fromEntries(names.map((name) => [name, { type: 'string', default: '' } as const]))
    return runRole(role as Role, parseArgs({ args: rest, options }).values as unknown as RoleSettings)
  }
  const values = optionsFrom(process.argv.slice(2))
  if (values === undefined) {
    console.error('npm run examples -- enforcement takes --drill, --json and --url postgres://user@host:port/database.')
    process.exitCode = 2
    return
  }
  if (!values.drill) return inPlace(values.url, tell)
  const say = (line: string): void => console.log(`· ${line}`)
  const result = await inPlace(values.url, (place) => drill(place, say))
  console.log(`\n${planTable()}\n\n${resultTable(result)}`)
  if (values.json) console.log(JSON.stringify(result))
  if (!isGood(result)) process.exitCode = 1
}

await main()
process.exit()
