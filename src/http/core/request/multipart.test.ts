import { expect, it } from 'vitest'
import { readParts } from './multipart.js'

const type = 'multipart/form-data; boundary=b'
const read = (body: string, contentType = type) => readParts(contentType, Buffer.from(body, 'latin1'))

it('reads parts with their fields in order and their bytes', () => {
  const parts = read('--b\r\nX-B: 1\r\nA:  2 \r\n\r\none\r\n--b\r\n\r\n\r\ntwo\r\n\r\n--b--\r\n')
  expect(parts?.map(({ headers, body }) => [headers, Buffer.from(body).toString()])).toEqual([
    [
      [
        ['a', '2'],
        ['x-b', '1'],
      ],
      'one',
    ],
    [[], '\r\ntwo\r\n'],
  ])
  expect(read('--b--')).toEqual([])
})

it.each([
  ['no boundary', '--b--', 'multipart/form-data'],
  ['something before the first', 'x\r\n--b--', type],
  ['no end', '--b\r\n\r\nx', type],
  ['another boundary', '--c\r\n\r\nx\r\n--c--', type],
  ['a field without a colon', '--b\r\nx\r\n\r\ny\r\n--b--', type],
  ['a field without a name', '--b\r\n: x\r\n\r\ny\r\n--b--', type],
  ['fields without an end', '--b\r\na: x\r\n--b--', type],
  ['something after the end', '--b\r\n\r\nx\r\n--b--\r\ny', type],
  ['more parts than are read', `--b${'\r\n\r\nx\r\n--b'.repeat(1_001)}--`, type],
])('leaves a body alone that has %s', (_why, body, contentType) => {
  expect(read(body, contentType)).toBeUndefined()
})
