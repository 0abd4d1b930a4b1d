import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { root } from './markdown.js'

const examples = readdirSync(`${root}/examples`)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length))

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
