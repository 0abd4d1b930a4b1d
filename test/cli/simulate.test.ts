// The program itself, as a process of its own: compiled to a folder of the test's, run with and without pipes.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const fixtures = fileURLToPath(new URL('fixtures', import.meta.url))
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
let folder = ''

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

function node(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 26 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err })
    })
  })
}

const reprise = (...args: readonly string[]): Promise<Ended> => node(join(folder, 'cli', 'main.js'), ...args)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reprise-cli-'))
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
  // Only what the program loads, and without checking types: that is somebody else's test.
  const entry = join(root, 'src', 'cli', 'main.ts')
  const settings = {
    extends: join(root, 'tsconfig.build.json'),
    compilerOptions: {
      rootDir: join(root, 'src'),
      outDir: folder,
      typeRoots: [join(root, 'node_modules', '@types')],
      incremental: false,
      tsBuildInfoFile: null,
      declaration: false,
      isolatedDeclarations: false,
      noCheck: true,
    },
    files: [entry],
    include: [],
  }
  const project = join(folder, 'tsconfig.json')
  await writeFile(project, JSON.stringify(settings))
  const built = await node(tsc, '-p', project)
  expect(built.out + built.err).toBe('')
})

afterAll(() => rm(folder, { recursive: true, force: true }))

describe('reprise', () => {
  it('has a first line that lets a shell run it', async () => {
    expect(await readFile(join(folder, 'cli', 'main.js'), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  it('shows the storm and its end', async () => {
    const bare = await reprise('simulate', 'storm', '--attempts', '6', '--budget', 'none', '--seconds', '60')
    expect(bare).toMatchObject({ code: 0, err: '' })
    expect(bare.out.trimEnd().split('\n').at(-1)).toMatch(/^STORM, METASTABLE: /)
    const limited = await reprise('simulate', 'storm', '--attempts', '6', '--seconds', '60')
    expect(limited.out.trimEnd().split('\n').at(-1)).toMatch(/^Recovered 1\d s after the trigger\.$/)
  })

  it('writes files, the same for the same seed', async () => {
    const args = ['simulate', 'storm', '--seconds', '30', '--seed', '3']
    await reprise(...args, '--svg', 'first.svg', '--json', 'first.json')
    await reprise(...args, '--svg', 'second.svg', '--json', 'second.json')
    for (const kind of ['svg', 'json']) {
      const first = await readFile(join(folder, `first.${kind}`), 'utf8')
      expect(first.length).toBeGreaterThan(1000)
      expect(await readFile(join(folder, `second.${kind}`), 'utf8')).toBe(first)
    }
  })

  it('hands a whole JSON to a pipe', async () => {
    const { out } = await reprise(
      'simulate',
      'storm',
      '--seconds',
      '300',
      '--load',
      '50',
      '--capacity',
      '100',
      '--json',
    )
    expect(JSON.parse(out).series).toHaveLength(300)
  })

  it('does not mind a reader who leaves', async () => {
    const child = spawn(process.execPath, [
      join(folder, 'cli', 'main.js'),
      'simulate',
      'storm',
      '--seconds',
      '300',
      '--json',
    ])
    let err = ''
    child.stderr.on('data', (data) => {
      err += data
    })
    child.stdout.destroy()
    const [code] = await once(child, 'close')
    expect({ code, err }).toEqual({ code: 0, err: '' })
  })

  it('runs policies of one’s own: JSON and modules', async () => {
    const json = await reprise('simulate', 'storm', '--seconds', '5', '--policy', join(fixtures, 'six-attempts.json'))
    expect(json.out).toContain('6 attempts, backoff full 100..5000 ms, no budget')
    const entryPoint = pathToFileURL(join(folder, 'retry', 'index.js')).href
    await writeFile(
      join(folder, 'policy.mjs'),
      `import { equalJitter, retryPolicy } from '${entryPoint}'\nexport default retryPolicy({ attempts: 5, backoff: equalJitter() })\n`,
    )
    const module = await reprise('simulate', 'storm', '--seconds', '5', '--policy', 'policy.mjs')
    expect(module.out).toContain('5 attempts, backoff equal 50..2000 ms, token budget 10/0.1')
    const wrong = await reprise('simulate', 'storm', '--policy', join(fixtures, 'not-a-policy.mjs'))
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('the default export is not a policy') })
  })

  it('runs a gRPC service config, and refuses the method that hedges until told to leave that out', async () => {
    const args = ['simulate', 'storm', '--seconds', '5', '--policy', join(fixtures, 'grpc-service-config.json')]
    const first = await reprise(...args)
    expect(first.out).toContain('shop.Orders/Place: 4 attempts, backoff grpc 100..1000 ms, token budget 10/0.1')
    const hedging = await reprise(...args, '--method', 'shop.Orders/Find')
    expect(hedging).toMatchObject({ code: 2, out: '', err: expect.stringContaining('[SIMULATION_UNSUPPORTED]\n') })
    const rest = await reprise(...args, '--method', 'shop.Orders/Find', '--no-hedge')
    expect(rest.out).toContain('shop.Orders/Find: 3 attempts')
    const absent = await reprise(...args, '--method', 'shop.Stock/Find')
    expect(absent).toMatchObject({ code: 2, err: expect.stringContaining('[POLICY_INVALID]\n') })
  })

  it('compares jitter', async () => {
    const { out, code } = await reprise('simulate', 'jitter', '--clients', '20', '--trials', '5')
    expect(code).toBe(0)
    expect(out).toMatch(/^full +\d+ \/ \d\.\d\d s$/m)
  })

  it('ends with 2 and a line when used wrongly', async () => {
    expect(await reprise('simulate', 'storm', '--atempts', '3')).toEqual({
      code: 2,
      out: '',
      err: 'reprise: Unknown option: --atempts; did you mean --attempts?\nSee reprise simulate storm --help.\n',
    })
  })
})
