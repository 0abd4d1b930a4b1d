// The classification table claims to have been seen in tests: they are there.

import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { sqliteClassification } from '../../../src/stores/sqlite/index.js'

it('has a test for every sign that can be produced', () => {
  const names = ['failing-sync', 'failures', 'locks', 'shared-commit']
  const tests = names.map((name) => readFileSync(new URL(`./${name}.test.ts`, import.meta.url), 'utf8')).join('\n')
  for (const { sign, evidence } of sqliteClassification) {
    if ('triggered' in evidence) expect(tests, sign).toContain(`'${evidence.triggered}'`)
    else expect(evidence.notProducible, sign).toMatch(/\.$/)
  }
})
