import { describe, expect, it } from 'vitest'
import { type OptionGroup, optionHelp, readOptions, UsageError } from './option-table.js'

const groups: readonly OptionGroup[] = [
  {
    title: 'First',
    options: [
      { name: 'attempts', kind: 'number', text: 'calls in all (3)' },
      { name: 'budget', kind: 'choice', choices: ['token', 'none'], text: 'its kind (token)' },
      { name: 'svg', kind: 'text', value: 'FILE', text: 'draws it' },
      { name: 'json', kind: 'maybe-text', value: 'FILE', text: 'writes it' },
      { name: 'idempotent', kind: 'flag', opposite: 'not-idempotent', text: 'whether it is' },
    ],
  },
]
const read = (...args: string[]) => readOptions(args, groups)

describe('readOptions', () => {
  it('reads values behind a space or an equals sign', () => {
    const given = read('--attempts', '6', '--budget=none', '--svg', 'a b.svg', '--json')
    expect(given.number('attempts')).toBe(6)
    expect(given.text('budget')).toBe('none')
    expect(given.text('svg')).toBe('a b.svg')
    expect(given.text('json')).toBe('')
    expect(given.has('idempotent')).toBe(false)
    expect(given.flag('idempotent')).toBeUndefined()
  })

  it.each([
    ['1e3', 1000],
    ['.5', 0.5],
    ['-2', -2],
    ['0.25', 0.25],
  ])('takes %s as a number', (text, expected) => {
    expect(read('--attempts', text).number('attempts')).toBe(expected)
  })

  it('reads flags and their opposites', () => {
    expect(read('--idempotent').flag('idempotent')).toBe(true)
    expect(read('--not-idempotent').flag('idempotent')).toBe(false)
  })

  it('lets a text that may be missing be followed by the next option', () => {
    const given = read('--json', '--attempts', '2')
    expect([given.text('json'), given.number('attempts')]).toEqual(['', 2])
    expect(read('--json', 'out.json').text('json')).toBe('out.json')
  })

  it('gives numbers under other names, and only those that are there', () => {
    expect(read('--attempts', '6').numbers({ attempts: 'calls', other: 'more' })).toEqual({ calls: 6 })
  })

  it.each([
    [['--atempts', '3'], 'Unknown option: --atempts; did you mean --attempts?'],
    [['--not-idempotnt'], 'Unknown option: --not-idempotnt; did you mean --not-idempotent?'],
    [['--something-else'], 'Unknown option: --something-else'],
    [['--key'], 'Unknown option: --key'],
    [['storm'], 'Unexpected argument: storm'],
    [['-a'], 'Unexpected argument: -a'],
    [['--attempts'], '--attempts needs a value'],
    [['--attempts='], '--attempts needs a value'],
    [['--attempts', '--svg', 'x'], '--attempts needs a value'],
    [['--attempts', 'six'], '--attempts takes a number; not six'],
    [['--attempts', '0x10'], '--attempts takes a number; not 0x10'],
    [['--attempts', 'Infinity'], '--attempts takes a number; not Infinity'],
    [['--budget', 'gold'], '--budget is one of token, none; not gold'],
    [['--idempotent=yes'], '--idempotent takes no value'],
    [['--attempts', '1', '--attempts', '2'], '--attempts is given twice'],
    [['--idempotent', '--not-idempotent'], '--idempotent is given twice'],
  ])('refuses %j', (args, message) => {
    expect(() => read(...args)).toThrowError(new UsageError(message))
  })
})

describe('optionHelp', () => {
  it('explains every option in a line', () => {
    expect(optionHelp(groups)).toBe(
      [
        'First',
        '  --attempts N                calls in all (3)',
        '  --budget token|none         its kind (token)',
        '  --svg FILE                  draws it',
        '  --json [FILE]               writes it',
        '  --idempotent, --not-idempotent',
        '                              whether it is',
        '',
      ].join('\n'),
    )
  })
})
