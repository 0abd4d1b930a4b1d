// A project with the apps of new users, made from the packed tarball: every form of every app is compiled in it, once.

import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeTarballProject, type TarballProject } from '../../package/tarball-project.js'

const fixtures = fileURLToPath(new URL('fixtures', import.meta.url))

/** As it was before anybody thought of repeats, made safe with a table of one's own, and made safe with Reprise. */
export const forms = ['as-it-was', 'by-hand', 'with-reprise'] as const
export type Form = (typeof forms)[number]

/** The files of a form that differ from the app as it was; of that form, all. */
export function filesOf(app: string, form: Form): ReadonlyMap<string, string> {
  const folder = join(fixtures, app, form)
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/** A project with apps. */
export interface Project extends Pick<TarballProject, 'npx' | 'remove'> {
  /** Where a form of an app is, compiled. */
  folderOf(app: string, form: Form): string
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

/** Compiles every form of these apps: the files of the app as it was, with those of the form in their place. */
function compile({ folder, npx }: TarballProject, apps: readonly string[]): void {
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: apps }))
  for (const app of apps) {
    for (const form of forms) {
      const place = join(folder, app, form)
      for (const from of ['as-it-was', form]) cpSync(join(fixtures, app, from), place, { recursive: true })
      const schema = join(place, 'schema.prisma')
      // Before it writes the client, Prisma's command would download an engine for migrations, which nothing here uses:
      // any program that can be run is taken in its place.
      const env = { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath }
      if (existsSync(schema)) npx(['prisma', 'generate', '--schema', schema], env)
    }
  }
  npx(['tsc', '--pretty', 'false'])
}

/** Makes a project with these apps. */
export function makeProject(apps: readonly string[], packages: readonly string[]): Project {
  const project = makeTarballProject({ type: 'module' }, packages)
  try {
    compile(project, apps)
  } catch (error) {
    project.remove()
    throw error
  }
  return { ...project, folderOf: (app, form) => join(project.folder, app, form) }
}
