import { expect, it } from 'vitest'
import type { StoredKey } from '../../identity/index.js'
import { eventLoopTurn } from '../../kernel/index.js'
import { insideOperation, refuseReentry } from './reentry.js'

const [queue, other] = [{}, {}]
const [a, b] = ['a' as StoredKey, 'b' as StoredKey]
const reentered = expect.objectContaining({ code: 'OPERATION_REENTERED' })

it('sees every operation around it, of the same domain and key, and no other', async () => {
  await insideOperation(queue, a, async () => {
    await insideOperation(queue, b, async () => {
      await eventLoopTurn()
      expect(() => refuseReentry(queue, a)).toThrow(reentered)
      expect(() => refuseReentry(queue, b)).toThrow(reentered)
      refuseReentry(other, a)
    })
    refuseReentry(queue, b)
  })
  refuseReentry(queue, a)
})

it('sees nothing any more in what was left running', async () => {
  let left: Promise<void> | undefined
  await insideOperation(queue, a, async () => {
    left = eventLoopTurn().then(() => refuseReentry(queue, a))
  })
  await expect(left).resolves.toBeUndefined()
})
