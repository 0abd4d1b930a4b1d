// The one script behind every command: it installs and builds when it must, never when it need not, and says so.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copyRepository, root } from './repository-copy.js'
import { TinyProject } from './tiny-project.js'

let project: TinyProject
beforeEach(() => {
  project = new TinyProject()
})
afterEach(() => project.remove())

const silence = { code: 0, stdout: '', stderr: '' }
const installsAndBuilds = /^installing package-lock\.json \.\.\.\ninstalled in \d+ s\nbuilding dist \.\.\.\n$/

describe('installing', () => {
  it('happens once, and then costs nothing', async () => {
    const first = await project.run(['build'])
    expect(first.stderr).toMatch(installsAndBuilds)
    expect(first.code).toBe(0)
    expect(await project.run(['build'])).toMatchObject(silence)
  })

  it.each([
    { NODE_ENV: 'production' },
    { npm_config_omit: 'dev' },
    { npm_config_production: 'true' },
    { npm_config_dry_run: 'true' },
    { npm_config_package_lock: 'false' },
  ])('brings dev dependencies even with %j', async (env) => {
    expect(await project.run(['build'], env)).toMatchObject({ code: 0 })
    expect(existsSync(project.path('node_modules/typescript/tsc.mjs'))).toBe(true)
    expect(await project.run(['build'])).toMatchObject(silence)
  })

  it.each([
    ['the stamp is damaged', () => project.write('node_modules/.reprise-lock', 'damaged')],
    ['it was interrupted', () => rmSync(project.path('node_modules/.reprise-lock'))],
    ['node_modules is gone', () => rmSync(project.path('node_modules'), { recursive: true })],
    ['the lock file changed', () => project.write('package-lock.json', `${project.read('package-lock.json')}\n`)],
  ])('happens again when %s', async (_why, change) => {
    await project.run(['build'])
    change()
    expect((await project.run(['build'])).stderr).toContain('installing package-lock.json')
    expect(await project.run(['build'])).toMatchObject(silence)
  })

  it('says what is wrong when package.json and the lock file disagree, and leaves no stamp', async () => {
    const changed = project
      .read('package.json')
      .replace('"file:compiler"', '"file:compiler", "left-over": "file:compiler"')
    project.write('package.json', changed)
    const { code, stderr } = await project.run(['build'])
    expect(code).toBe(1)
    expect(stderr).toContain('Installing in . failed: package.json and package-lock.json do not agree')
    expect(existsSync(project.path('node_modules/.reprise-lock'))).toBe(false)
  })

  it('counts as a failed test when tests cannot even begin', async () => {
    rmSync(project.path('package-lock.json'))
    const { code, stdout } = await project.run(['test'])
    expect(stdout).toBe('0 passed, 1 failed, 0 skipped\n')
    expect(code).toBe(1)
  })

  it('says so when there is no npm', async () => {
    const { code, stderr } = await project.run(['build'], { PATH: '/nowhere', npm_execpath: '' })
    expect(stderr).toContain('npm was not found')
    expect(code).toBe(1)
  })

  it('never empties a node_modules that is a link', async () => {
    mkdirSync(project.path('elsewhere/precious'), { recursive: true })
    symlinkSync(project.path('elsewhere'), project.path('node_modules'))
    const { code, stderr } = await project.run(['build'])
    expect(stderr).toContain('its node_modules is a link')
    expect(code).toBe(1)
    expect(readdirSync(project.path('elsewhere'))).toEqual(['precious'])
  })
})

describe('two commands at once', () => {
  it('do not install or build over each other', async () => {
    const both = await Promise.all([project.run(['build']), project.run(['build'])])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    const said = both.map(({ stderr }) => stderr).join('')
    expect(said.match(/^installing/gm)).toHaveLength(1)
    expect(said.match(/^building dist/gm)).toHaveLength(1)
    expect(said).toMatch(/^waiting for another run \(process \d+\) that is installing in \.$/m)
    expect(existsSync(project.path('.cache/install.lock'))).toBe(false)
  })

  const lock = (owner: object | undefined, ageMs = 0) => {
    const folder = project.path('.cache/install.lock')
    mkdirSync(folder, { recursive: true })
    const at = new Date(Date.now() - ageMs)
    if (owner !== undefined) {
      writeFileSync(join(folder, 'owner'), JSON.stringify(owner))
      utimesSync(join(folder, 'owner'), at, at)
    }
    utimesSync(folder, at, at)
  }
  const ended = () => spawnSync(process.execPath, ['-e', '']).pid

  it.each([
    ['by a process that is gone', () => lock({ pid: ended(), host: hostName() })],
    ['by another machine long ago', () => lock({ pid: 1, host: 'another' }, 60_000)],
    [
      'long ago by a process whose number was given to another',
      () => lock({ pid: process.pid, host: hostName() }, 60_000),
    ],
    ['empty by whatever', () => lock(undefined)],
  ])('take over a lock that was left %s', async (_who, leave) => {
    leave()
    const { code, stderr } = await project.run(['build'])
    expect(stderr).toMatch(installsAndBuilds)
    expect(code).toBe(0)
  })

  it('wait for a lock that is alive', async () => {
    lock({ pid: process.pid, host: hostName() })
    const { ended } = await project.start(['build'], {}, 'stderr')
    expect(existsSync(project.path('node_modules'))).toBe(false)
    rmSync(project.path('.cache/install.lock'), { recursive: true })
    const { code, stderr } = await ended
    expect(stderr).toMatch(new RegExp(`^waiting for another run \\(process ${process.pid}\\) .*\ninstalling `))
    expect(code).toBe(0)
  })
})

function hostName(): string {
  return spawnSync(process.execPath, ['-p', 'os.hostname()'], { encoding: 'utf8' }).stdout.trim()
}

describe('building', () => {
  const built = () => readdirSync(project.path('dist')).sort()

  it('follows the sources: changed, added and removed', async () => {
    await project.run(['build'])
    expect(built()).toEqual(['.stamp', 'a.js', 'b.js'])
    project.write('src/a.ts', 'export const a = 3\n')
    project.write('src/c.ts', 'export const c = 3\n')
    rmSync(project.path('src/b.ts'))
    expect((await project.run(['build'])).stderr).toBe('building dist ...\n')
    expect(built()).toEqual(['.stamp', 'a.js', 'c.js'])
    expect(project.read('dist/a.js')).toContain('a = 3')
    expect(await project.run(['build'])).toMatchObject(silence)
  })

  it('is not repeated for a test that changed, but for settings that changed', async () => {
    await project.run(['build'])
    project.write('src/a.test.ts', '')
    expect(await project.run(['build'])).toMatchObject(silence)
    project.write('tsconfig.json', '{ }')
    expect((await project.run(['build'])).stderr).toBe('building dist ...\n')
  })

  it('that fails keeps the last good one, and is tried again', async () => {
    await project.run(['build'])
    project.write('src/a.ts', 'BROKEN')
    for (const _ of [1, 2]) {
      const { code, stderr } = await project.run(['build'])
      expect(stderr).toContain('a.ts is broken\n\nbuilding dist failed: tsc -p tsconfig.build.json ended with code 2.')
      expect(code).toBe(1)
    }
    expect(project.read('dist/a.js')).toContain('a = 1')
    expect(readdirSync(project.path('.cache'))).toEqual([])
    project.write('src/a.ts', 'export const a = 1\n')
    expect(await project.run(['build'])).toMatchObject(silence)
  })

  it('that fails makes the tests fail', async () => {
    project.write('src/a.ts', 'BROKEN')
    expect(await project.run(['test'])).toMatchObject({ code: 1, stdout: '0 passed, 1 failed, 0 skipped\n' })
  })
})

describe('a command', () => {
  it('gets its arguments, and its exit code comes back', async () => {
    expect(await project.run(['fuzz', '7', '--b', 'c d'])).toMatchObject({ code: 7, stdout: '["7","--b","c d"]\n' })
  })

  it('gets the signals that its runner gets', async () => {
    const script =
      "process.on('SIGTERM', () => { console.log('asked to end'); process.exit(5) })\nconsole.log('up')\nsetInterval(() => {}, 1000)\n"
    project.write('test/fuzz/run.mjs', script)
    const { child, ended } = await project.start(['fuzz'])
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 5, stdout: 'up\nasked to end\n' })
  })

  it('that a signal ends gives the code that shells give', async () => {
    project.write('test/fuzz/run.mjs', "process.kill(process.pid, 'SIGKILL')\nsetInterval(() => {}, 1000)\n")
    expect(await project.run(['fuzz'])).toMatchObject({ code: 128 + 9 })
  })

  it('format repairs what it finds', async () => {
    await project.run(['build'])
    symlinkSync(join(root, 'node_modules/@biomejs'), project.path('node_modules/@biomejs'))
    project.write('biome.json', '{ "files": { "includes": ["src/**"] } }\n')
    project.write('src/a.ts', "export const a   = 'b'")
    expect(await project.run(['format'])).toMatchObject({ code: 0 })
    expect(project.read('src/a.ts')).toBe('export const a = "b";\n')
  })

  /** Makes a command, whose project is installed already, believe that it runs on a platform. */
  const on = (platform: string) => {
    const pretend = `Object.defineProperties(process,{platform:{value:'${platform}'},arch:{value:'x64'}})`
    return { NODE_OPTIONS: `--import=data:text/javascript,${pretend}`, REPRISE_READY: project.folder }
  }

  it('test:matrix runs the tests on another Node, or says why not', async () => {
    project.addNode(22, process.execPath)
    project.addNode(24, '/nowhere')
    await project.run(['build'])
    const counts = '{"passed":2,"failed":0,"skipped":1,"finished":true}'
    const tests = `import { writeFileSync } from 'node:fs'\nwriteFileSync(process.env.REPRISE_COUNTS, '${counts}')\n`
    project.write('node_modules/vitest/vitest.mjs', tests)
    const { code, stdout } = await project.run(['test:matrix', 'long', '22', '24'], on('linux'))
    expect(stdout).toMatch(/^Node 22 +package +passed +2 passed, 0 failed, 1 skipped .*\nNode 22 +unit +passed /m)
    expect(stdout).toMatch(/^Node 24 +package +refused +npm installed no Node 24\nNode 24 +unit +refused /m)
    expect(stdout).toMatch(/^Node 22 +stores +passed /m)
    expect(code).toBe(0)
    const unknown = await project.run(['test:matrix', '22', '19'], on('linux'))
    expect(unknown).toMatchObject({
      code: 2,
      stderr: 'There is nothing named 19 to test on; there are long, apps, platforms, pgbouncer, 22, 24.\n',
    })
    project.write('node_modules/vitest/vitest.mjs', tests.replace('"failed":0', '"failed":1'))
    expect(await project.run(['test:matrix', '22'], on('linux'))).toMatchObject({ code: 1 })
    expect((await project.run(['test:matrix', '24'], on('plan9'))).stdout).toMatch(
      /refused +other .* for linux-x64 only$/m,
    )
    expect((await project.run(['test:matrix', 'pgbouncer'], on('plan9'))).stdout).toMatch(
      /^PgBouncer 1.24 +pooler +refused +it is set up here for linux-x64 only$/m,
    )
  })

  it('test:tools runs until it has passed on the same tools, and then with --if-changed no more', async () => {
    await project.run(['build'])
    const counts = '{"passed":2,"failed":0,"skipped":0,"finished":true}'
    const tests = `import { writeFileSync } from 'node:fs'\nwriteFileSync(process.env.REPRISE_COUNTS, '${counts}')\n`
    project.write('node_modules/vitest/vitest.mjs', tests)
    mkdirSync(project.path('.ci'))
    const ifChanged = async () => (await project.run(['test:tools', '--if-changed'])).stdout
    await project.run(['test:tools', 'test/tools/some.test.ts'])
    expect(existsSync(project.path('.ci/tools-tested')), 'a part says nothing of the whole').toBe(false)
    expect(await ifChanged()).toBe('2 passed, 0 failed, 0 skipped\n')
    expect(await ifChanged()).toMatch(/: not run again\n0 passed, 0 failed, 0 skipped\n$/)
    expect((await project.run(['test:tools'])).stdout).toBe('2 passed, 0 failed, 0 skipped\n')
    project.write('biome.json', '{}')
    expect(await ifChanged()).toBe('2 passed, 0 failed, 0 skipped\n')
    project.write('src/a.ts', 'export const a = 2\n')
    expect(await ifChanged()).toMatch(/: not run again\n/)
  })

  const run = (...args: string[]) => spawnSync(process.execPath, [...args], { cwd: tmpdir(), encoding: 'utf8' })
  const script = join(root, 'tools', 'run.mjs')

  it('that does not exist is refused with the list of those that do', () => {
    for (const args of [['deploy'], ['constructor'], []]) {
      const { status, stderr } = run(script, ...args)
      expect(status).toBe(2)
      for (const name of [
        'start',
        'examples',
        'test',
        'test:tools',
        'check',
        'bench',
        'peers',
        'walk',
        'fuzz',
        'torture',
        'build',
        'format',
        'docs',
        'test:matrix',
      ]) {
        expect(stderr).toMatch(new RegExp(`^  ${name} +\\S`, 'm'))
      }
    }
    expect(run(script, '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('test:matrix') })
  })

  it.each([
    [['start', '--nope'], 'The command start takes no arguments, and was given --nope.'],
    [['examples', '--nope'], 'There is no example named --nope; there are 01-one-intent-one-key, '],
    [['build', 'now'], 'The command build takes no arguments, and was given now.'],
    [['docs', '--nope'], 'The command docs takes no arguments, and was given --nope.'],
    [['bench', '--node', '19'], '--node takes one of 22, 24, 26.'],
    [['fuzz', '--nope'], "Unknown option '--nope'"],
    [['walk', '--nope'], 'npm run walk takes --json, --verbose and --write, not --nope.'],
    [['torture', '--nope'], "Unknown option '--nope'"],
    [['torture', 'nothing'], 'Name one part to torture.'],
    [['torture', 'operations', '--engine', 'oracle'], 'There is no engine oracle.'],
    [['torture', 'operations', '--seconds', '0'], '--seconds takes a number from 1 to 86400.'],
    [['test:matrix', '--nope'], 'There is nothing named --nope to test on; there are '],
    [['check', '--nope'], 'There is no check or option --nope.'],
  ])('%j is refused with a sentence and the code 2, without a stack', (args, sentence) => {
    const { status, stderr, stdout } = run(script, ...args)
    expect(stderr.startsWith(sentence)).toBe(true)
    expect(stdout + stderr).not.toMatch(/^ {4}at /m)
    expect(status).toBe(2)
  })

  it.each([
    ['bench/run.mjs', /^There is no option --nope\.\nusage: npm run bench /],
    ['bench/http-peers/run.mjs', /^Unknown option '--nope'\.\nusage: npm run peers /],
  ])('so does %s, whose command installs what it measures first', (file, sentence) => {
    const { status, stderr } = run(join(root, file), '--nope')
    expect(stderr).toMatch(sentence)
    expect(stderr).not.toMatch(/^ {4}at /m)
    expect(status).toBe(2)
  })

  it.each(['18.20.4', '20.18.3', '14.0.0', '21.7.3', '22.0.0', '22.11.0'])(
    'is refused on Node %s in one line',
    (version) => {
      const pretend = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`
      const { status, stderr, stdout } = run('--import', pretend, script, 'test')
      expect(stderr).toBe(`Reprise needs Node 20.19 or a newer 20, or 22.12 or newer; this is Node ${version}.\n`)
      expect(stdout).toBe('0 passed, 1 failed, 0 skipped\n')
      expect(status).toBe(1)
    },
  )
})

describe('a fresh clone', () => {
  let copy = ''
  beforeAll(() => {
    copy = copyRepository({ installed: false })
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  /** Starts, asks whether it is well when it says that it is ready, and ends it by SIGTERM. */
  const npmStart = () =>
    new Promise<{ code: number | null; stdout: string; stderr: string; health: unknown }>((resolve) => {
      const { DATABASE_URL: _, ...rest } = process.env
      const env = { ...rest, NODE_ENV: 'production', PORT: '0' }
      const child = spawn('npm', ['start'], { cwd: copy, env })
      let stdout = ''
      let stderr = ''
      let health: unknown
      child.stdout.setEncoding('utf8').on('data', async (chunk) => {
        const wasReady = stdout.includes('\nready ')
        stdout += chunk
        const url = /^ready (\S+)$/m.exec(stdout)?.[1]
        if (wasReady || url === undefined) return
        health = await (await fetch(`${url}/healthz`)).json()
        child.kill('SIGTERM')
      })
      child.stderr.setEncoding('utf8').on('data', (chunk) => {
        stderr += chunk
      })
      child.on('close', (code) => resolve({ code, stdout, stderr, health }))
    })

  it('starts with nothing installed, and at once the second time', { timeout: 600_000 }, async () => {
    const first = await npmStart()
    expect(first.code, first.stderr).toBe(0)
    expect(first.stderr).toMatch(/installing package-lock\.json.*building dist.*compiling examples/s)
    expect(first.health).toEqual({ status: 'ok', drill: true })
    expect(first.stdout.match(/^ {2}curl /gm)).toHaveLength(3)
    expect(existsSync(join(copy, 'data', 'reprise.db'))).toBe(true)
    const second = await npmStart()
    expect(second).toMatchObject({ code: 0, health: first.health })
    expect(second.stderr).not.toMatch(/installing|building|compiling/)
  })
})
