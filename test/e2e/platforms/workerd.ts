// Cloudflare's runtime of Workers, workerd: a Worker is bundled as Wrangler does it, from the installed tarball, and
// served on a free port.

import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'
import { root } from '../../markdown.js'
import { freePort, until } from '../../servers/server-process.js'
import { installTarball, platformModules } from './platform-packages.js'

const fixtures = fileURLToPath(new URL('fixtures/workers', import.meta.url))

/** How a Worker is compiled: with which behaviour of the runtime. */
export interface Compatibility {
  readonly date: string
  readonly flags?: readonly string[]
}

/** A running Worker. */
export interface Worker {
  readonly url: string
  stop(): Promise<void>
}

/** A folder with the package, in which Workers are bundled. */
export interface WorkersProject {
  readonly folder: string
  /** Serves a Worker of the fixtures. Rejects with what the runtime says where it does not start. */
  serve(file: string, compatibility: Compatibility, bindings?: Readonly<Record<string, string>>): Promise<Worker>
  /** Serves a Worker that loads the module it is asked for, each of them bundled by itself. */
  serveModules(names: readonly string[], compatibility: Compatibility): Promise<Worker>
  remove(): void
}

// Modules of Node are the runtime's. Those that CommonJS requires are imported, as Wrangler does it.
const modulesOfNode: Plugin = {
  name: 'modules of Node',
  setup(build) {
    const plain = (path: string): string => path.replace(/^node:/, '')
    build.onResolve({ filter: new RegExp(`^(node:)?(${builtinModules.join('|')})$`) }, ({ path, kind }) =>
      kind === 'require-call'
        ? { path: plain(path), namespace: 'required' }
        : { path: `node:${plain(path)}`, external: true },
    )
    build.onLoad({ filter: /.*/, namespace: 'required' }, ({ path }) => ({
      contents: `import found from 'node:${path}'\nmodule.exports = found`,
      loader: 'js',
    }))
  },
}

async function bundle(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', '@nestjs/*', 'rxjs', 'rxjs/*', 'pg-native'],
    plugins: [modulesOfNode],
    logLevel: 'silent',
  })
}

const text = (value: string): string => JSON.stringify(value)

async function serve(
  folder: string,
  modules: readonly string[],
  { date, flags = [] }: Compatibility,
  bindings: Readonly<Record<string, string>> = {},
): Promise<Worker> {
  const port = await freePort()
  const embedded = modules.map((name) => `(name = ${text(name)}, esModule = embed ${text(name)})`)
  const given = Object.entries(bindings).map(([name, value]) => `(name = ${text(name)}, text = ${text(value)})`)
  const config = join(folder, 'config.capnp')
  // "internet" is what a Worker's fetch goes through; without it only public addresses can be reached.
  writeFileSync(
    config,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["private"]))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  modules = [${embedded.join(', ')}],
  compatibilityDate = ${text(date)},
  compatibilityFlags = [${flags.map(text).join(', ')}],
  bindings = [${given.join(', ')}],
);
`,
  )
  const child = spawn(join(platformModules, '@cloudflare', 'workerd-linux-64', 'bin', 'workerd'), ['serve', config])
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  let isOver = false
  const over = new Promise<void>((resolve) =>
    child.once('close', () => {
      isOver = true
      resolve()
    }),
  )
  const url = `http://127.0.0.1:${port}`
  // It listens before the Worker is loaded, and ends where that cannot be.
  const isUp = (): Promise<boolean> =>
    fetch(url, { method: 'OPTIONS' }).then(
      () => true,
      () => false,
    )
  await until(async () => isOver || (await isUp()), 'workerd')
  if (isOver) throw new Error(said)
  return {
    url,
    stop: () => {
      child.kill('SIGTERM')
      return over
    },
  }
}

/** Makes a folder with the package, and `pg` beside it. */
export function workersProject(): WorkersProject {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-workers-'))
  installTarball(folder)
  symlinkSync(join(root, 'node_modules', 'pg'), join(folder, 'node_modules', 'pg'))
  cpSync(fixtures, join(folder, 'workers'), { recursive: true })
  let served = 0
  const fresh = (): string => {
    served += 1
    const place = join(folder, `served-${served}`)
    mkdirSync(place)
    return place
  }
  return {
    folder,
    serve: async (file, compatibility, bindings) => {
      const place = fresh()
      await bundle(join(folder, 'workers', file), join(place, 'worker.js'))
      return serve(place, ['worker.js'], compatibility, bindings)
    },
    serveModules: async (names, compatibility) => {
      const place = fresh()
      const files = names.map((name) => `${name.replaceAll('/', '.')}.js`)
      for (const [index, name] of names.entries()) {
        const entry = join(place, `${index}.js`)
        writeFileSync(entry, `export * from ${text(name)}`)
        await bundle(entry, join(place, files[index] ?? ''))
      }
      writeFileSync(
        join(place, 'worker.js'),
        `export default { fetch: ({ url }) => import(new URL(url).searchParams.get('module')).then(
          (module) => Response.json(Object.keys(module)), (error) => new Response(String(error), { status: 500 })) }`,
      )
      return serve(place, ['worker.js', ...files], compatibility)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
