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

/** The account of all payments that are about receipts: their events stay in their order. */
export const till = 'till'

/** Begins the drill of their calls, so that they can be told from the others. */
export const tillDrill = 'till'

/** The amount of a payment, in the minor unit. */
export const usualMinor = 1_200

/** The route with Reprise, and the one without, which is there where drills are on. */
const routes = { keyed: '/payments', plain: '/drill/without-reprise/payments' } as const

/** Which of the two a call goes to. */
export type Route = keyof typeof routes

/** What a call is sent with beside its intent. */
export interface CallOptions {
  readonly drill?: string | undefined
  /** Default: the keyed one. The plain one is sent the same key, and does not read it. */
  readonly route?: Route
  /** Default: the usual amount. */
  readonly amountMinor?: number
}

/** What came back: a status, where the answer came from and which payment it names, or nothing. */
export type Seen =
  | { readonly status: number; readonly replayed: boolean; readonly payment: string | undefined }
  | 'nothing'

/** Sends the payment of an intent. */
export async function pay({ key, account }: Intent, options: CallOptions = {}): Promise<Seen> {
  const { drill, route = 'keyed', amountMinor = usualMinor } = options
  try {
    const response = await fetch(routes[route], {
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
    const { status, headers } = response
    const payment = headers.get('location')?.split('/').at(-1)
    return { status, replayed: headers.get('idempotent-replayed') === 'true', payment }
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
  /** Said by the route without Reprise. */
  readonly note?: string
}

/** The route that made a payment. */
export function routeOf({ note }: Listed): Route {
  return note === 'made without Reprise' ? 'plain' : 'keyed'
}

/** Our payments, oldest first; undefined while the service is away. */
export async function payments(): Promise<readonly Listed[] | undefined> {
  return (await asked<{ items: Listed[] }>('/payments'))?.items
}

/** How far the receipt of a payment is. */
export interface Receipt {
  readonly payment: string
  readonly wire: number
  readonly dropped: number
  readonly receipts: number
}

/** How far our receipts are, the newest first, and what is in their way. */
export interface Looked {
  readonly items: readonly Receipt[]
  readonly letters: readonly {
    readonly payment: string
    readonly reason: string
    readonly state: string
    readonly parks: boolean
  }[]
}

/** The receipts of an account; undefined while the service is away. */
export function receipts(account: string): Promise<Looked | undefined> {
  return asked<Looked>(`/receipts?account=${encodeURIComponent(account)}`)
}

/** Mends a dead letter and sends it again; false: there was none, or the service is away. */
export async function redrive(payment: string): Promise<boolean> {
  return (await asked(`/receipts/${payment}/redrive`, 'POST')) !== undefined
}

async function asked<Body>(path: string, method = 'GET'): Promise<Body | undefined> {
  try {
    const response = await fetch(path, { method, headers: authorization })
    return response.ok ? ((await response.json()) as Body) : undefined
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
