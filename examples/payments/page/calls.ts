// Calls to the service: the same key and the same body for every repeat, a drill beside them.

import { mintKey } from 'reprise/identity'

/** Who we are here: anything is a principal, and each tab is one. */
const principal = sessionStorage.getItem('principal') ?? mintKey()
sessionStorage.setItem('principal', principal)

/** The field that says who we are. */
export const authorization = { authorization: `Bearer ${principal}` }

/** What somebody wants once. */
export interface Intent {
  readonly key: string
  readonly account: string
}

/** The amount of every payment, in the minor unit. */
export const amountMinor = 1_200

/** What came back: a status and where the answer came from, or nothing. */
export type Seen = { readonly status: number; readonly replayed: boolean } | 'nothing'

/** Sends the payment of an intent. */
export async function pay({ key, account }: Intent, drill?: string): Promise<Seen> {
  try {
    const response = await fetch('/payments', {
      method: 'POST',
      headers: {
        ...authorization,
        'content-type': 'application/json',
        'idempotency-key': `"${key}"`,
        ...(drill === undefined ? {} : { drill }),
      },
      body: JSON.stringify({ account, amountMinor, currency: 'EUR' }),
    })
    await response.arrayBuffer()
    return { status: response.status, replayed: response.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return 'nothing'
  }
}

/** A payment in the ledger. */
export interface Listed {
  readonly id: string
  readonly account: string
  readonly amountMinor: number
  readonly currency: string
}

/** Our payments, oldest first; undefined while the service is away. */
export async function payments(): Promise<readonly Listed[] | undefined> {
  try {
    const response = await fetch('/payments', { headers: authorization })
    return response.ok ? ((await response.json()) as { items: Listed[] }).items : undefined
  } catch {
    return undefined
  }
}

/** Whether trouble can be asked for here; undefined while the service is away. */
export async function canDrill(): Promise<boolean | undefined> {
  try {
    const response = await fetch('/healthz')
    return ((await response.json()) as { drill: boolean }).drill
  } catch {
    return undefined
  }
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
