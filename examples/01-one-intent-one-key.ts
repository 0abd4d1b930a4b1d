// A payment whose answer is lost, repeated with the same key: the effect is there once.
// The Map stands where a database will stand; what the example shows is how a repeat is recognised.

import { fingerprint, type Key, mintKey, sameContent, scope, storedKey } from 'reprise'

const remembered = new Map<string, { content: string; receipt: string }>()
const charges: number[] = []

function pay(tenant: string, key: Key, body: string): string {
  const name = storedKey(scope(tenant, 'POST /payments'), key)
  const record = remembered.get(name)
  if (record !== undefined) {
    return sameContent(record.content, { json: body }) ? `${record.receipt} (replayed)` : 'refused: other content'
  }
  const { amountMinor } = JSON.parse(body) as { amountMinor: number }
  charges.push(amountMinor)
  const receipt = `receipt ${charges.length}`
  remembered.set(name, { content: fingerprint({ json: body }), receipt })
  return receipt
}

const key = mintKey() // once per intent, before the first attempt
console.log('first attempt:   ', pay('tenant-1', key, '{"order":4711,"amountMinor":1200}'))
console.log('its answer got lost; the caller cannot know whether it happened, and repeats')
console.log('second attempt:  ', pay('tenant-1', key, '{ "amountMinor": 1200.0, "order": 4711 }'))
console.log('another amount:  ', pay('tenant-1', key, '{"order":4711,"amountMinor":9900}'))
console.log('another tenant:  ', pay('tenant-2', key, '{"order":4711,"amountMinor":1200}'))
console.log('charged in all:  ', charges.join(' + '), '(one charge for each tenant)')
