// That a large document leaves no large memory behind.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { canonicalJson } from './index.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const size = 16_777_216

function keptBytes(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

it.each([
  ['a large source', `"${'x'.repeat(size)}"`],
  ['a large text of a small source', `[${'1e20,'.repeat(size / 24)}0]`],
])('keeps no memory of %s', async (_, source) => {
  canonicalJson('{"b":0,"a":0}')
  const before = keptBytes()
  expect(canonicalJson(source, { maxBytes: 2 * size }).length).toBeGreaterThanOrEqual(size / 2)
  // The engine gives memory back by and by.
  await expect.poll(() => keptBytes() - before).toBeLessThan(size / 8)
})
