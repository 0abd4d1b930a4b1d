// Request bodies of the kind that services receive, made from a fixed seed so that every run measures the same bytes.

/**
 * A small generator (mulberry32), since runs have to be repeatable.
 * @param {number} seed
 */
function generator(seed) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (/** @type {number} */ limit) => Math.floor(next() * limit)
  return { below, pick: (/** @type {readonly any[]} */ list) => list[below(list.length)] }
}

const words = [
  'blue',
  'Größe',
  'enamel',
  'café',
  'walnut',
  'steel',
  '茶碗',
  'lamp',
  'folding',
  'crème',
  'oak',
  'small',
  '🚲 lock',
]
const remarks = [
  'leave at the door\nring twice',
  'say "hello" first',
  'C:\\labels\\out',
  'no remark',
  'call before\tnoon',
  'fragile',
]
const cities = ['Zürich', 'Lyon', 'Gdańsk', 'Oslo', 'Málaga', 'Leeds', '京都', 'Turin']

/** @param {ReturnType<typeof generator>} random */
function orderLine({ below, pick }) {
  return {
    sku: `SKU-${100_000 + below(900_000)}`,
    quantity: 1 + below(9),
    title: `${pick(words)} ${pick(words)} ${pick(words)}`,
    unitPrice: (100 + below(99_900)) / 100,
    taxRate: pick([0.07, 0.19, 0.2]),
    options: {
      colour: pick(['red', 'black', 'natural']),
      gift: below(5) === 0,
      engraving: below(4) === 0 ? pick(remarks) : null,
    },
  }
}

/**
 * An order: members in the order a programmer wrote them, which is not alphabetical.
 * @param {number} lineCount
 * @param {number} seed
 */
function order(lineCount, seed) {
  const random = generator(seed)
  const { below, pick } = random
  return {
    orderId: `ord_${below(2 ** 31).toString(36)}${below(2 ** 31).toString(36)}`,
    customer: {
      name: `${pick(['Ana', 'Jörg', 'Mei', 'Zoë'])} ${pick(['Kowalska', 'Müller', 'Sato', 'Dubois'])}`,
      email: `user${below(100_000)}@example.com`,
      vip: below(2) === 0,
      address: {
        street: `${pick(words)} street ${below(200)}`,
        city: pick(cities),
        zip: String(10_000 + below(89_999)),
      },
    },
    currency: pick(['EUR', 'CHF', 'JPY']),
    total: below(1_000_000) / 100,
    placedAtMs: 1_700_000_000_000 + below(1e9),
    remark: pick(remarks),
    lines: Array.from({ length: lineCount }, () => orderLine(random)),
  }
}

/**
 * A document of about that many bytes: as many of `make`'s parts as it takes.
 * @param {number} bytes
 * @param {(count: number) => unknown} make
 * @param {(value: unknown) => string} print
 */
function ofSize(bytes, make, print) {
  let count = 1
  let best = Buffer.from(print(make(count)))
  for (let guess = 0; guess < 4; guess++) {
    count = Math.max(1, Math.floor((count * bytes) / best.length))
    best = Buffer.from(print(make(count)))
  }
  return best
}

const compact = (/** @type {unknown} */ value) => JSON.stringify(value)
const pretty = (/** @type {unknown} */ value) => JSON.stringify(value, null, 2)
// As Python's json.dumps prints by default: a space behind colons and commas, and escapes for all that is not ASCII.
const python = (/** @type {unknown} */ value) =>
  JSON.stringify(value)
    .replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replaceAll('":', '": ')
    .replaceAll(/([\]}"0-9el]),"/g, '$1, "')

/** The body of 200 bytes: one payment. */
const payment = () => ({
  orderId: 'ord_81hq2k0zt5f3',
  amount: { value: 129.5, currency: 'EUR' },
  customer: { name: 'Jörg Müller', email: 'joerg@example.com', vip: false },
  attempt: 1,
  note: 'say "hello" first\nring twice',
})

/** @param {unknown} value @returns {unknown} */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  )
}

const orders = (/** @type {number} */ count) => order(count, 7)
const texts = (/** @type {number} */ count) => {
  const { pick } = generator(11)
  const paragraph = () => Array.from({ length: 40 }, () => pick(words)).join(' ')
  return { kind: 'article', body: Array.from({ length: count }, () => `${paragraph()}\n${pick(remarks)}`) }
}
const numbers = (/** @type {number} */ count) => {
  const { below } = generator(13)
  const sample = () => [below(1e9), below(1e9) / 1e4, -below(1e6) / 1e3, below(100), below(1e6) / 1e12]
  return { unit: 'mm', samples: Array.from({ length: count }, sample) }
}
// One object whose names begin with escapes, differ only at their ends and are in reverse order: the worst case for
// sorting.
const escapedNames = (/** @type {number} */ count) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${'\u0001'.repeat(10)}${999_999 - index}`, 'a']))

/** The realistic body at the three sizes: targets apply to these. */
export const mainBodies = [
  { name: 'order, 200 B', body: Buffer.from(compact(payment())) },
  { name: 'order, 4 kB', body: ofSize(4_096, orders, compact) },
  { name: 'order, 256 kB', body: ofSize(262_144, orders, compact) },
]

/** Other shapes, so that nothing is won by one fortunate shape. */
export const furtherBodies = [
  { name: 'order, already canonical, 4 kB', body: ofSize(4_096, (count) => sorted(orders(count)), compact) },
  { name: 'order, already canonical, 256 kB', body: ofSize(262_144, (count) => sorted(orders(count)), compact) },
  { name: 'order, pretty printed, 4 kB', body: ofSize(4_096, orders, pretty) },
  { name: 'order, pretty printed, 256 kB', body: ofSize(262_144, orders, pretty) },
  { name: 'order, ASCII with \\u escapes and spaces, 256 kB', body: ofSize(262_144, orders, python) },
  { name: 'text, 256 kB', body: ofSize(262_144, texts, compact) },
  { name: 'numbers, 256 kB', body: ofSize(262_144, numbers, compact) },
  { name: 'names with escapes, in reverse, 256 kB', body: ofSize(262_144, escapedNames, compact) },
]
