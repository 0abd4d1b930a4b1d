// What a process cannot load is told by its process itself; kills are tested on the built package, in test/e2e.

import { describe, expect, it } from 'vitest'
import type { FromChild } from './child.js'
import { visitedInProcess } from './processes.js'

describe('a process of a proof', () => {
  it('is refused where its program is not there, and does not hang', async () => {
    const answer: FromChild['failed'] = 'its process ended by exit 1'
    await expect(visitedInProcess({ module: 'nowhere' }, 'one')).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: expect.stringContaining(answer),
    })
  })
})
