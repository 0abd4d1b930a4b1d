// What `npm run peers` has seen, as the tables of docs/reference/peers-http.md show it.

import { readFileSync } from 'node:fs'
import { type HttpCase, httpCases } from '../src/testing/index.js'

/** A peer, as the list in bench/http-peers names it. */
export interface Peer {
  readonly name: string
  readonly version: string
  readonly store: string
  /** How its subject is set up. */
  readonly mounted: string
  /** Cases that it documents no option for, and why. */
  readonly lacks?: Readonly<Record<string, string>>
}

/** What became of a case. */
interface PeerResult {
  readonly outcome: 'passed' | 'failed' | 'not offered'
  readonly why?: string
}

/** What was seen of all peers, by their names. */
type PeerResults = Readonly<
  Record<string, { readonly version: string; readonly results: Readonly<Record<string, PeerResult>> }>
>

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../bench/http-peers/${name}`, import.meta.url), 'utf8'))

/** The list of peers. */
export const peers = read('peers.json') as readonly Peer[]

/** The results as they were written last. */
export const peerResults = read('results.json') as PeerResults

/** A table: its head and its rows. */
type Table = [head: readonly string[], rows: readonly (readonly string[])[]]

const resultOf = ({ name }: Peer, { id }: HttpCase): PeerResult => {
  const result = peerResults[name]?.results[id]
  if (result === undefined) throw new Error(`${name} has no result of ${id}: npm run peers`)
  return result
}

const isAdvice = ({ title }: HttpCase): boolean => title.startsWith('SHOULD')

/** Who was tried, how, and with which counts. */
export function peerTable(): Table {
  const rows = peers.map((peer) => {
    const count = (outcome: PeerResult['outcome'], cases = httpCases): number =>
      cases.filter((one) => resultOf(peer, one).outcome === outcome).length
    const advice = count('failed', httpCases.filter(isAdvice))
    const failed = advice === 0 ? String(count('failed')) : `${count('failed')}, of which ${advice} SHOULD`
    const { name, version, store, mounted } = peer
    return [name, version, store, String(count('passed')), failed, String(count('not offered')), mounted]
  })
  return [['layer', 'version', 'store', 'passed', 'failed', 'not offered', 'how it is mounted'], rows]
}

/** Every case, and what each made of it. */
export function peerCaseTable(): Table {
  const rows = httpCases.map((one) => [
    `\`${one.id}\``,
    one.title,
    ...peers.map((peer) => {
      const { outcome } = resultOf(peer, one)
      return outcome === 'failed' ? '**failed**' : outcome
    }),
  ])
  return [['case', 'what a server does', ...peers.map(({ name }) => name)], rows]
}

/** What was seen, word for word, where a case did not pass. */
export function peerSeenTable(): Table {
  const rows = peers.flatMap((peer) =>
    httpCases.flatMap((one) => {
      const { outcome, why = '' } = resultOf(peer, one)
      return outcome === 'passed' ? [] : [[peer.name, `\`${one.id}\``, outcome, why]]
    }),
  )
  return [['layer', 'case', 'outcome', 'why'], rows]
}
