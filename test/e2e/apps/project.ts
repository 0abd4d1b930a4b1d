// A project with the apps of new users: the packed tarball is really installed in it, and every form of every app is
// compiled in it, once.

import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from '../../markdown.js'

const fixtures = fileURLToPath(new URL('fixtures', import.meta.url))

/** As it was before anybody thought of repeats, made safe with a table of one's own, and made safe with Reprise. */
export const forms = ['as-it-was', 'by-hand', 'with-reprise'] as const
export type Form = (typeof forms)[number]

/** The files of a form that differ from the app as it was; of that form, all. */
export function filesOf(app: string, form: Form): ReadonlyMap<string, string> {
  const folder = join(fixtures, app, form)
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/** A project in a folder of its own. */
export interface Project {
  /** Where a form of an app is, compiled. */
  folderOf(app: string, form: Form): string
  /** Runs a program of the project, as `npx` does, to its end. */
  npx(words: readonly string[], env: Readonly<Record<string, string>>): string
  remove(): void
}

/** What a user tells the compiler. Nest needs the two options for decorators. */
const compilerOptions = {
  module: 'nodenext',
  target: 'es2023',
  strict: true,
  types: ['node'],
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
}

/** Packs the package and installs it. What a registry would give is linked from the repository. */
function install(folder: string, packages: readonly string[]): void {
  const quiet = ['--ignore-scripts', '--loglevel=error']
  execFileSync('npm', ['pack', ...quiet, '--pack-destination', folder], { cwd: root, encoding: 'utf8' })
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? ''
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
  const script = join(root, 'test', 'package', 'fixtures', 'install.mjs')
  const words = [script, root, 'install', join(folder, tarball), 'typescript', '@types/node', ...packages]
  execFileSync(process.execPath, words, { cwd: folder, encoding: 'utf8' })
}

/** Compiles every form of these apps: the files of the app as it was, with those of the form in their place. */
function compile(folder: string, apps: readonly string[]): void {
  for (const app of apps) {
    for (const form of forms) {
      for (const from of ['as-it-was', form])
        cpSync(join(fixtures, app, from), join(folder, app, form), { recursive: true })
    }
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: apps }))
  const tsc = join(folder, 'node_modules', '.bin', 'tsc')
  const { stdout, status } = spawnSync(tsc, ['--pretty', 'false'], { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
}

/** Makes a project with these apps. */
export function makeProject(apps: readonly string[], packages: readonly string[]): Project {
  const folder = mkdtempSync(join(tmpdir(), 'reprise-apps-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    install(folder, packages)
    compile(folder, apps)
  } catch (error) {
    remove()
    throw error
  }
  return {
    folderOf: (app, form) => join(folder, app, form),
    npx([program = '', ...rest], env) {
      const path = join(folder, 'node_modules', '.bin', program)
      return execFileSync(path, rest, { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env } })
    },
    remove,
  }
}
