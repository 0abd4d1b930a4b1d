// Evidence cannot rot: what a classification table says is triggered by a test names a test that is there.

import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { ClassificationRow } from '../../src/atomicity/index.js'
import { callbackClassification } from '../../src/stores/callback/index.js'
import { memoryClassification } from '../../src/stores/memory/index.js'
import { postgresClassification } from '../../src/stores/postgres/index.js'
import { sqliteClassification } from '../../src/stores/sqlite/index.js'
import { runnerClassification } from '../../src/transaction/index.js'

const tables: Readonly<Record<string, readonly ClassificationRow[]>> = {
  callback: callbackClassification,
  memory: memoryClassification,
  postgres: postgresClassification,
  sqlite: sqliteClassification,
  runner: runnerClassification,
}

/** The text of all test files. */
function allTests(): string {
  const texts = ['src', 'test'].flatMap((folder) => {
    const root = fileURLToPath(new URL(`../../${folder}`, import.meta.url))
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.test.ts'))
    return files.map((path) => readFileSync(`${root}/${path}`, 'utf8'))
  })
  return texts.join('\n')
}

describe.each(Object.entries(tables))('the classification table of %s', (_, rows) => {
  it('names a test for every row that is triggered, and a reason for every other', () => {
    const tests = allTests()
    const without = rows.filter(({ evidence }) =>
      'triggered' in evidence ? !tests.includes(`'${evidence.triggered}'`) : evidence.notProducible.length < 20,
    )
    expect(without.map(({ sign, evidence }) => ({ sign, evidence }))).toEqual([])
    expect(rows.filter(({ evidence }) => 'triggered' in evidence).length).toBeGreaterThan(0)
  })

  it('has each sign once', () => {
    const signs = rows.map(({ sign }) => sign)
    expect(signs.filter((sign, index) => signs.indexOf(sign) !== index)).toEqual([])
  })
})
