// The files of the page and what it links to, read once. They lie beside the compiled service.

import { readFileSync } from 'node:fs'
import { type Answer, reply } from 'reprise/http/core'
import { readPages } from './read.js'

const files = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/style.css': ['style.css', 'text/css; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
} as const

/** The page's files by their paths. */
export function pageFiles(): ReadonlyMap<string, Answer> {
  const answers = Object.entries(files).map(([path, [name, type]]) => {
    const bytes = readFileSync(new URL(`./page/${name}`, import.meta.url))
    const headers = {
      'content-type': type,
      'cache-control': 'no-cache',
      'content-security-policy': "default-src 'self'; img-src data:; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
    }
    return [path, reply(200, Uint8Array.from(bytes), headers)] as const
  })
  return new Map([...answers, ...readPages()])
}
