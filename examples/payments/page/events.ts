// The stream of what the service tells, as it happens.

import { authorization, pause } from './calls.js'

/** What the service tells: about a call, or about the event of a payment. */
export interface ServiceEvent {
  readonly what: string
  readonly request?: number
  /** What the call asked for. */
  readonly drill?: string
  readonly account?: string
  readonly payment?: string
  readonly how?: string
  readonly status?: number
  readonly problem?: string
}

/** Who hears of it. */
export interface ServiceListener {
  told(event: ServiceEvent): void
  /** The stream is there. @param isBack It was there before. */
  begun(isBack: boolean): void
  /** The stream broke: the service is gone. */
  lost(): void
}

/** Watches for ever, also over restarts of the service. */
export async function watch(hearers: readonly ServiceListener[]): Promise<never> {
  for (let isBack = false; ; ) {
    try {
      const response = await fetch('/drill/events', { headers: authorization })
      if (response.ok && response.body !== null) {
        for (const hearer of hearers) hearer.begun(isBack)
        isBack = true
        await follow(response.body, hearers).finally(() => {
          for (const hearer of hearers) hearer.lost()
        })
      } else await pause(2_000)
    } catch {
      // gone; it may come back
    }
    await pause(200)
  }
}

async function follow(body: ReadableStream<Uint8Array>, hearers: readonly ServiceListener[]): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as never).getReader() as ReadableStreamDefaultReader<string>
  let unread = ''
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (unread + part.value).split('\n\n')
    unread = events.pop() ?? ''
    for (const event of events) {
      if (!event.startsWith('data: ')) continue
      const told = JSON.parse(event.slice('data: '.length)) as ServiceEvent
      for (const hearer of hearers) hearer.told(told)
    }
  }
}
