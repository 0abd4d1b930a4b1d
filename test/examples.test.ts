import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from './markdown.js'

// Programs, and folders with a story.
const examples = readdirSync(`${root}/examples`).flatMap((name) => {
  if (name.endsWith('.ts')) return [name.slice(0, -'.ts'.length)]
  return existsSync(`${root}/examples/${name}/story.ts`) ? [`${name}/story`] : []
})

describe('npm run examples', () => {
  let output = ''

  beforeAll(() => {
    const started = spawnSync(process.execPath, ['tools/run.mjs', 'examples'], {
      cwd: root,
      encoding: 'utf8',
      timeout: 280_000,
    })
    expect(started.status, started.stderr).toBe(0)
    output = started.stdout
  })

  it.each(examples)('shows the whole output of %s as it is written down', (name) => {
    expect(output).toContain(readFileSync(`${root}/examples/${name}.txt`, 'utf8'))
  })
})
