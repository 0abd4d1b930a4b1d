import { describe, expect, it } from 'vitest'
import { areForeignLayers, layersWith } from './foreign-layers.js'

describe('layers that are not ours', () => {
  it('multiply with our own', () => {
    expect(layersWith(3)).toEqual({ depth: 1, declared: 3 })
    const foreign = [
      { name: 'envoy', attempts: 2 },
      { name: 'sdk', attempts: 4 },
    ]
    expect(layersWith(3, foreign)).toEqual({ depth: 3, declared: 24 })
  })

  it('have a name and a number of attempts, and there are at most 20', () => {
    const sound = { name: 'envoy', attempts: 2 }
    expect(areForeignLayers([sound, { name: 'sdk', attempts: 100 }])).toBe(true)
    expect(areForeignLayers([])).toBe(true)
    const wrong = [null, 'x', {}, { name: '', attempts: 2 }, { name: 'x'.repeat(201), attempts: 2 }]
    const uncounted = [0, 101, 1.5, '2', undefined].map((attempts) => ({ name: 'sdk', attempts }))
    for (const layer of [...wrong, ...uncounted, { ...sound, retries: 1 }])
      expect(areForeignLayers([layer])).toBe(false)
    expect(areForeignLayers(Array(21).fill(sound))).toBe(false)
    expect(areForeignLayers({ 0: sound, length: 1 })).toBe(false)
  })
})
