import { describe, expect, it } from 'vitest'
import { commits, StatementReader, statementsOf } from './statements.js'

function frame(type: string, content: string): { type: string; bytes: Buffer } {
  const body = Buffer.from(content)
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return { type, bytes: Buffer.concat([Buffer.from(type), length, body]) }
}

/** The texts and the kind of each group that the messages make. */
function groups(...frames: readonly { type: string; bytes: Buffer }[]): [string, boolean, boolean][] {
  const reader = new StatementReader()
  return frames.flatMap((one) => {
    const group = reader.take(one)
    return group === undefined ? [] : [[group.texts.join('|'), group.answered, group.endsReady]]
  })
}

const parse = (name: string, text: string) => frame('P', `${name}\0${text}\0\0\0`)
const bind = (portal: string, name: string) => frame('B', `${portal}\0${name}\0\0\0\0\0\0\0`)
const execute = (portal = '') => frame('E', `${portal}\0\0\0\0\0`)
const sync = frame('S', '')
const flush = frame('H', '')

describe('messages of a client', () => {
  it('a simple query is a group', () => {
    expect(groups(frame('Q', 'begin; select 1\0'))).toEqual([['begin; select 1', true, true]])
  })

  it('extended messages are a group up to their Sync', () => {
    expect(groups(parse('', 'commit'), bind('', ''), frame('D', 'P\0'), execute(), sync)).toEqual([
      ['commit', true, true],
    ])
  })

  it('a prepared statement is known by its name, until it is closed', () => {
    const again = [bind('', 's'), execute(), sync]
    const found = groups(parse('s', 'commit'), flush, ...again, ...again, frame('C', 'Ss\0'), sync, ...again)
    expect(found.map(([text]) => text)).toEqual(['', 'commit', 'commit', '', ''])
    expect(found[0]).toEqual(['', true, false])
  })

  it('portals are known by their names', () => {
    const found = groups(
      parse('a', 'one'),
      parse('b', 'two'),
      bind('p', 'a'),
      bind('q', 'b'),
      execute('q'),
      execute('p'),
      sync,
    )
    expect(found).toEqual([['two|one', true, true]])
  })

  it('closing a portal leaves a statement of the same name alone', () => {
    const found = groups(
      parse('x', 'one'),
      bind('x', 'x'),
      frame('C', 'Px\0'),
      execute('x'),
      bind('y', 'x'),
      execute('y'),
      sync,
    )
    expect(found).toEqual([['|one', true, true]])
  })

  it('other messages pass by themselves, and nobody answers them', () => {
    expect(groups(frame('d', 'row'), frame('c', ''), frame('X', ''))).toEqual(Array(3).fill(['', false, false]))
  })

  it('a group holds the bytes of all its messages, in order', () => {
    const reader = new StatementReader()
    const frames = [parse('', 'select 1'), bind('', ''), execute(), sync]
    const [group] = frames.flatMap((one) => reader.take(one) ?? [])
    expect(group?.bytes).toEqual(Buffer.concat(frames.map(({ bytes }) => bytes)))
  })

  it('names are forgotten, the oldest first, before they fill the memory', () => {
    const reader = new StatementReader()
    for (let n = 0; n <= 10_000; n += 1) reader.take(parse(`s${n}`, `text ${n}`))
    for (const n of [0, 1, 10_000]) for (const one of [bind('', `s${n}`), execute()]) reader.take(one)
    expect(reader.take(sync)?.texts).toEqual(['', 'text 1', 'text 10000'])
  })
})

describe('a text that commits', () => {
  it.each([
    'COMMIT',
    ' commit ;',
    'End',
    'commit work',
    'commit and chain',
    'begin; select 1; COMMIT',
    '-- done\ncommit',
    '/* x */ commit',
    `with done as (update t set value = E'it''s \\\\' returning 1) select 1 from done; COMMIT`,
    `select E'\\''; commit`,
  ])('%s', (text) => {
    expect(commits(text)).toBe(true)
  })

  it.each([
    'select 1',
    '',
    'rollback',
    `select 'x; commit'`,
    `select ';commit;' as "; commit"`,
    'insert into commit values (1)',
    'select case when true then 1 end',
    'do $$ begin perform 1; end; $$',
    'do $body$ begin; commit; $$ ; commit $body$',
    '-- ; commit\nselect 1',
    `select 'it''s; commit'`,
    `select E'\\'; commit; --'`,
    `commit prepared 'x'`,
    'committed',
  ])('is not: %s', (text) => {
    expect(commits(text)).toBe(false)
  })

  it('statements are told apart', () => {
    expect(statementsOf(`begin; insert into t values (';');; commit -- now`)).toEqual([
      'begin',
      `insert into t values ('')`,
      'commit',
    ])
  })
})
