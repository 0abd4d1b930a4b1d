// That a large document leaves no large memory behind.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { canonicalJson, canonicalJsonOf } from './index.js'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')
const size = 16_777_216

function keptBytes(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

const limits = { maxBytes: 2 * size }

it.each([
  ['a large source', () => canonicalJson(`"${'x'.repeat(size)}"`, limits)],
  ['a large text of a small source', () => canonicalJson(`[${'1e20,'.repeat(size / 24)}0]`, limits)],
  ['a large value', () => canonicalJsonOf('x'.repeat(size), limits)],
])('keeps no memory of %s', async (_, print) => {
  canonicalJson('{"b":0,"a":0}')
  canonicalJsonOf({ b: 0, a: 0 })
  const before = keptBytes()
  expect(print().length).toBeGreaterThanOrEqual(size / 2)
  // The engine gives memory back by and by.
  await expect.poll(() => keptBytes() - before).toBeLessThan(size / 8)
})
