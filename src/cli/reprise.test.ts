import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ioInMemory, type Seen } from '../../test/cli/io-in-memory.js'
import { runCommandLine } from './reprise.js'

async function run(line: string, io: Seen = ioInMemory()): Promise<Seen> {
  await runCommandLine(line.split(' ').filter(Boolean), io)
  return io
}

const helps = ['migrate', 'doctor', 'inspect', 'sweep', 'purge', 'settle', 'simulate storm', 'simulate jitter']

describe('help', () => {
  it.each(['', '--help', 'simulate --help', '-h'])('"%s" names the commands', async (line) => {
    const { out, code } = await run(line)
    expect(out).toContain('reprise simulate storm')
    expect(code).toBe(0)
  })

  it.each(helps.filter((name) => !name.startsWith('simulate')))('%s teaches with an example', async (name) => {
    const { out, code } = await run(`${name} --help`)
    expect(out).toMatch(new RegExp(`^ {2}reprise ${name} --\\w+ \\S`, 'm'))
    expect(out).toContain('\nExit codes: 0 ')
    expect(out).toContain('  --json')
    expect(code).toBe(0)
  })

  it.each(['storm', 'jitter'])('%s teaches with an example', async (name) => {
    const { out, code } = await run(`simulate ${name} --help`)
    expect(out).toContain(`  reprise simulate ${name} --`)
    expect(out).toContain('--seed N')
    expect(code).toBe(0)
  })
})

it.each(['', ...helps.map((name) => `${name} --help`)])('"%s" fits into any terminal', async (line) => {
  for (const columns of [20, 30, 39, 80]) {
    const { out } = await run(line, ioInMemory({ columns }))
    for (const written of out.split('\n')) expect(written.length).toBeLessThanOrEqual(columns)
  }
})

it.each(['', ...helps.map((name) => `${name} --help`)])('"%s" breaks prose only where it must', async (line) => {
  const isProse = (written: string) => /^\S(?:(?! {2}).)*$/.test(written)
  for (const columns of [40, 60, 100, 200]) {
    const { out } = await run(line, ioInMemory({ columns }))
    const lines = out.split('\n')
    for (const [index, written] of lines.entries()) {
      const [word = ''] = (lines[index + 1] ?? '').split(' ')
      if (!isProse(written) || !isProse(lines[index + 1] ?? '')) continue
      expect(`${written} ${word}`.length, written).toBeGreaterThan(Math.min(columns, 110))
    }
  }
})

it.each(['--version', '-v'])('%s names the version of the package', async (line) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  expect(await run(line)).toMatchObject({ out: `${version}\n`, err: '', code: 0 })
})

describe('used wrongly', () => {
  it.each([
    ['fly', 'Unknown command: fly'],
    ['constructor', 'Unknown command: constructor'],
    ['inspct', 'Unknown command: inspct; did you mean inspect?'],
    ['postgres://app:s3cret@db.example/app', 'Unknown command: postgres://…@db.example/app'],
  ])('%s', async (line, message) => {
    const { err, out, code } = await run(line)
    expect(err).toBe(`reprise: ${message}\nSee reprise --help.\n`)
    expect({ out, code }).toEqual({ out: '', code: 2 })
  })

  it.each([
    ['simulate', 'simulate what? storm or jitter'],
    ['simulate weather', 'Cannot simulate weather: storm or jitter'],
    ['simulate storm --lod 3', 'Unknown option: --lod; did you mean --load?'],
    ['simulate storm --attempts 0', 'attempts must be a whole number from 1 to 20. [POLICY_INVALID]'],
    ['simulate storm --load -1', 'load is a number from 0.001 to 100000. [ARGUMENT_INVALID]'],
    ['simulate storm --policy absent.json', 'absent.json: cannot be read: ENOENT'],
    ['simulate jitter --clients ten', '--clients takes whole numbers from 1 to 10000, such as 10,50,100'],
    ['simulate jitter --clients 100000', '--clients takes whole numbers from 1 to 10000, such as 10,50,100'],
    ['simulate jitter --clients 10,10001', '--clients takes whole numbers from 1 to 10000, such as 10,50,100'],
    ['simulate jitter --svg -', '--svg takes the name of a file; the standard output is not one'],
    ['simulate storm --svg -', '--svg takes the name of a file; the standard output is not one'],
    ['simulate storm --json -', '--json writes to the standard output without a name, not with -'],
    ['simulate jitter --trials 0', 'trials is a whole number from 1 to 10000. [ARGUMENT_INVALID]'],
    ['simulate jitter --method a.B/C', '--method needs --policy'],
  ])('%s', async (line, message) => {
    const { err, out, code } = await run(line)
    expect(err).toMatch(
      new RegExp(`^reprise: ${message.replace(/[.?[\]]/g, '\\$&')}\nSee reprise simulate (storm|jitter) --help.\n$`),
    )
    expect(out).toBe('')
    expect(code).toBe(2)
  })

  it.each([
    ['{ "backoff": null }', 'Not valid: backoff.'],
    ['{ "backoff": {} }', 'Not valid: backoff.kind.'],
    ['{ "budget": {} }', 'Not valid: budget.kind.'],
    ['{ "breaker": {} }', 'Not valid: breaker.openFor.'],
    ['{ "attempts": "six" }', 'attempts must be a whole number from 1 to 20.'],
  ])('a policy file with %s', async (text, message) => {
    for (const name of ['storm', 'jitter']) {
      const io = ioInMemory()
      io.files.set('own.json', text)
      const { err, out, code } = await run(`simulate ${name} --policy own.json`, io)
      expect(err).toBe(`reprise: own.json: ${message} [POLICY_INVALID]\nSee reprise simulate ${name} --help.\n`)
      expect({ out, code }).toEqual({ out: '', code: 2 })
    }
  })

  it('prints no control characters of others', async () => {
    const io = ioInMemory()
    const importModule = () => Promise.reject(new Error('a\u001b[2J\u009b\r\nb\u202ec'))
    const seen: string[] = []
    const complain = (text: string) => void seen.push(text)
    await runCommandLine(['simulate', 'storm', '--policy', 'own.mjs'], { ...io, importModule, complain })
    expect(seen[0]).toBe('reprise: own.mjs: cannot be loaded: a [2J b c\n')
  })

  it.each(['storm --svg', 'storm --json', 'jitter --svg', 'jitter --json'])(
    '%s into a file that cannot be written, before the run',
    async (line) => {
      const io = ioInMemory()
      const refuse = () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' }))
      io.checkWritable = refuse
      const { err, out, code } = await run(`simulate ${line} a/b`, io)
      expect(err).toMatch(/^reprise: a\/b: cannot be written: EACCES\n/)
      expect({ out, code }).toEqual({ out: '', code: 2 })
    },
  )

  it('is told apart from what failed', async () => {
    const io = { ...ioInMemory(), writeText: () => Promise.reject(new Error('disk full')) }
    const codes: number[] = []
    await runCommandLine('simulate storm --seconds 2 --svg a.svg'.split(' '), {
      ...io,
      exit: (code) => void codes.push(code),
    })
    expect(codes.at(-1)).toBe(1)
  })
})
