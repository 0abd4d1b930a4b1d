import { describe, expect, it } from 'vitest'
import { refuseUnpreparable } from './refusals.js'

describe('texts that may be prepared', () => {
  it('are let through each time, and others are refused each time', () => {
    for (let round = 1; round <= 3; round++) {
      refuseUnpreparable('SELECT 1 AS ended')
      expect(() => refuseUnpreparable('COMMIT')).toThrow('COMMIT')
      expect(() => refuseUnpreparable('SELECT 1; SELECT 2')).toThrow('one statement')
      expect(() => refuseUnpreparable('PRAGMA foreign_keys = off')).toThrow('pragma')
    }
  })

  it('are told apart however many there are and however long they be', () => {
    for (let number = 0; number < 1_200; number++) refuseUnpreparable(`SELECT ${number}`)
    const long = `SELECT '${'x'.repeat(3_000)}'`
    refuseUnpreparable(long)
    expect(() => refuseUnpreparable(`${long}; COMMIT`)).toThrow('COMMIT')
  })
})
