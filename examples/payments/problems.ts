// The problems that the service answers with: those of Reprise and a few of its own. The type of each is a URL with a
// page that explains it.

import { type Answer, type ProblemKind, problemKinds, reply } from 'reprise/http/core'

/** Where the pages of problems are. */
export const problemPath = '/problems/'

const ownKinds = {
  'amount-over-limit': {
    status: 402,
    title: 'The amount is over the limit',
    detail: 'Payments here go up to 1000000 in the minor unit. This is final: a repeat gets the same answer.',
    retryable: false,
  },
  'drill-failure': {
    status: 503,
    title: 'A failure was asked for',
    detail: 'The Drill field of the request asked for this answer. No payment was made.',
    retryable: true,
  },
  failed: {
    status: 500,
    title: 'Something went wrong',
    detail: 'What was written for this request was rolled back. It can be repeated with the same key.',
    retryable: true,
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    detail: 'Nothing has this address, or it belongs to somebody else.',
    retryable: false,
  },
} as const satisfies Record<string, ProblemKind>

const kinds: Readonly<Record<string, ProblemKind>> = { ...problemKinds, ...ownKinds }

/** What differs from the usual in one problem. */
interface ProblemParts {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** The service's own problems, all with types that begin in one place. */
export type OwnProblems = (name: keyof typeof ownKinds, parts?: ProblemParts) => Answer

/** Makes the service's own problems. @param base What types begin with, up to the name. */
export function ownProblems(base: string): OwnProblems {
  return (name, { status = ownKinds[name].status, headers = {} } = {}) => {
    const { title, detail, retryable } = ownKinds[name]
    const members = { type: base + name, title, status, detail, retryable }
    return reply(status, JSON.stringify(members), {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...(retryable ? { 'retry-after': '1' } : {}),
      ...headers,
    })
  }
}

/** The page of a problem, or the list of all at the path itself; undefined: there is no such page. */
export function problemPage(path: string): Answer | undefined {
  const name = path.slice(problemPath.length)
  if (name === '') {
    const items = Object.keys(kinds).map((each) => `<li><a href="${problemPath}${each}">${each}</a></li>`)
    return page('Problems', `<ul>${items.join('')}</ul>`)
  }
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
  if (kind === undefined) return undefined
  const again = kind.retryable
    ? 'The same request, with the same key, may succeed later.'
    : 'Repeating the same request does not help.'
  return page(
    kind.title,
    `<p>${kind.detail}</p>
<dl><dt>type</dt><dd><code>${name}</code></dd><dt>usual status</dt><dd>${kind.status}</dd><dt>retryable</dt><dd>${kind.retryable}. ${again}</dd></dl>
<p><a href="${problemPath}">All problems</a> · <a href="/">The page</a></p>`,
  )
}

function page(title: string, content: string): Answer {
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><link rel="stylesheet" href="/style.css"></head>
<body class="text"><main><h1>${title}</h1>${content}</main></body></html>
`
  return reply(200, html, { 'content-type': 'text/html; charset=utf-8' })
}
