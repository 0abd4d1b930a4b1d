// `reprise conformance`: runs the HTTP cases against a server, whatever it is written in.

import { defined, durationMs } from '../../kernel/index.js'
import {
  ConformanceFailure,
  type HttpCase,
  type HttpCaseClient,
  type HttpCaseClientOptions,
  httpCaseClient,
  httpCaseRunner,
  httpCases,
} from '../../testing/index.js'
import { type Io, printable } from '../io.js'
import { type Command, type GivenOptions, UsageError } from '../option-table.js'
import { jsonOption, writeAnswer } from '../store/output.js'
import { type CaseResult, reportText } from './report.js'

/** The command `reprise conformance`. */
export const conformanceCommand: Command = {
  summary: 'what a server with Idempotency-Key does, case by case',
  about: `reprise conformance URL --i-know-this-writes [options]

What a server does with Idempotency-Key, seen from outside: ${httpCases.length} cases, from the form of the field to
500 duplicates at once. It need not be written with Reprise, nor in JavaScript. Give it a server of your own that
may be written to: every case has effects, under users and keys that it invents. The server needs GET /effects and
as many of the routes as you like; what it answers 404 to is reported as not offered, never as passed.
docs/reference/conformance.md says what the routes do.

  reprise conformance http://127.0.0.1:8080 --i-know-this-writes
  reprise conformance http://127.0.0.1:8080 --i-know-this-writes --only http-20 --only http-45
  reprise conformance http://127.0.0.1:8080 --also http://127.0.0.1:8081 --i-know-this-writes --json
`,
  options: [
    {
      title: 'Options',
      options: [
        { name: 'url', kind: 'text', value: 'URL', text: 'the server; the word after conformance' },
        { name: 'i-know-this-writes', kind: 'flag', text: 'mandatory: the cases have effects, hundreds of them' },
        {
          name: 'also',
          kind: 'texts',
          value: 'URL',
          text: 'another process of the server on the same store; requests take turns (none)',
        },
        {
          name: 'only',
          kind: 'texts',
          value: 'ID',
          text: 'a case, or a family such as http-20; may be repeated (all)',
        },
        {
          name: 'bearer',
          kind: 'text',
          value: 'TEMPLATE',
          text: 'what stands after Bearer; {user} is the name of a user that the case invents ({user})',
        },
        {
          name: 'header',
          kind: 'texts',
          value: "'NAME: VALUE'",
          text: 'a field of every request, such as a key of the gateway; may be repeated (none)',
        },
        { name: 'timeout', kind: 'text', value: 'DURATION', text: 'how long one answer may take (15s)' },
        { name: 'list', kind: 'flag', text: 'list the cases with what they prove, and send nothing' },
        jsonOption,
      ],
    },
  ],
  exitCodes: `0 something passed and nothing failed; 1 a case failed, or the server does not answer as it should; 2 used
wrongly; 3 the server offers none of the cases: nothing was run.`,
  argument: 'url',
  run: runConformance,
}

async function runConformance(given: GivenOptions, io: Io): Promise<void> {
  const cases = chosen(given.texts('only'))
  if (given.has('list')) {
    const json = cases.map(({ id, title, proves, routes }) => ({ id, title, proves, routes }))
    const lines = cases.map(({ id, title, proves }) => `${id.padEnd(10)}${title}\n${' '.repeat(10)}${proves}\n`)
    return writeAnswer(given, io, { json, text: lines.join('') })
  }
  const options = clientOptions(given)
  if (!given.has('i-know-this-writes')) {
    throw new UsageError(
      'the cases write to the server, hundreds of effects: say --i-know-this-writes if it may be written to',
    )
  }
  const client = httpCaseClient(options)
  const obstacle = await obstacleTo(client)
  if (obstacle !== undefined) return nothingRan(obstacle, io)
  const runner = httpCaseRunner(client)
  const ended = io.untilEnded?.()
  const results: CaseResult[] = []
  const shows = !given.has('json') && io.columns !== undefined
  for (const one of cases) {
    if (ended?.aborted) break
    if (shows) io.complain(`\r\u001b[K${results.length + 1} of ${cases.length}: ${one.id}`)
    const { id, title, proves } = one
    results.push({ id, title, proves, ...(await runner.run(one)) })
  }
  if (shows) io.complain('\r\u001b[K')
  const left = cases.length - results.length
  // What was seen comes from a server that nobody vouches for, so its control characters are not printed.
  const text = reportText(results, left).split('\n').map(printable).join('\n')
  writeAnswer(given, io, { json: { cases: results, left }, text })
  if (left > 0 || results.some(({ outcome }) => outcome === 'failed')) io.exit(1)
  else if (results.every(({ outcome }) => outcome === 'not offered')) {
    nothingRan({ why: 'the server offers none of these cases', exitCode: 3 }, io)
  }
}

interface Obstacle {
  readonly why: string
  readonly exitCode: 1 | 3
}

// Every case counts effects. If that is impossible, it is reported once and not for each case.
async function obstacleTo(client: HttpCaseClient): Promise<Obstacle | undefined> {
  try {
    for (let at = 0; at < client.places; at += 1) {
      const { status } = await client.user().send({ method: 'GET', path: '/effects', at })
      if (status === 404 || status === 405) {
        const why =
          'the server has no GET /effects, which every case needs: docs/reference/conformance.md says what it answers'
        return { why, exitCode: 3 }
      }
    }
    await client.user().effects()
    return undefined
  } catch (error) {
    if (error instanceof ConformanceFailure) return { why: error.message, exitCode: 1 }
    throw error
  }
}

function nothingRan({ why, exitCode }: Obstacle, io: Io): void {
  io.complain(`reprise: nothing was run: ${why}\n`)
  io.exit(exitCode)
}

function chosen(only: readonly string[] | undefined): readonly HttpCase[] {
  if (only === undefined) return httpCases
  const wanted = only.flatMap((ids) => ids.split(','))
  const fits = (id: string, word: string): boolean => id === word || (/^http-\d\d$/.test(word) && id.startsWith(word))
  const missing = wanted.find((word) => !httpCases.some(({ id }) => fits(id, word)))
  if (missing !== undefined) throw new UsageError(`there is no case ${missing}: --list shows them all`)
  return httpCases.filter(({ id }) => wanted.some((word) => fits(id, word)))
}

function clientOptions(given: GivenOptions): HttpCaseClientOptions {
  const url = given.text('url')
  if (url === undefined) throw new UsageError('which server? Give its URL')
  const urls = [url, ...(given.texts('also') ?? [])]
  for (const one of urls) {
    const protocol = URL.canParse(one) ? new URL(one).protocol : undefined
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new UsageError('the address of a server begins with http:// or https://')
  }
  const bearer = given.text('bearer') ?? '{user}'
  if (!bearer.includes('{user}')) throw new UsageError('--bearer needs {user} in it: cases tell users apart')
  const timeout = given.duration('timeout')
  const limitMs = timeout === undefined ? undefined : durationMs(timeout, { minMs: 1 })
  return {
    urls,
    credentials: { Authorization: `Bearer ${bearer}` },
    headers: Object.fromEntries((given.texts('header') ?? []).map(fieldOf)),
    ...defined({ limitMs }),
  }
}

function fieldOf(text: string): readonly [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e]*)$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError("--header takes 'NAME: VALUE'")
  return [name, value]
}
