// What the page links to: a few sources of this example and a few guides, as pages. Each declaration of a source has its
// name as an anchor, so that a link leads to the few lines behind a button.

import { readdirSync, readFileSync } from 'node:fs'
import { type Answer, reply } from 'reprise/http/core'

/** Where they are. */
const readPath = '/read/'

/** The pages by their paths. The texts lie beside the page, in the folder of the compiled examples. */
export function readPages(): ReadonlyMap<string, Answer> {
  const folder = new URL('./page/read/', import.meta.url)
  const answers = readdirSync(folder).map((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8')
    return [readPath + name, reply(200, pageOf(name, text), { 'content-type': 'text/html; charset=utf-8' })] as const
  })
  return new Map(answers)
}

function pageOf(name: string, text: string): string {
  const content = name.endsWith('.ts') ? withAnchors(escaped(text)) : escaped(text)
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${name}</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"></head>
<body class="text"><main><p><a href="/">The page</a></p><h1>${name}</h1><pre>${content}</pre></main></body></html>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

// A declaration at the left edge, with the comment above it, up to the line that closes it there and opens nothing else.
function withAnchors(text: string): string {
  const head = /(?:export )?(?:async )?(?:function|class|const|interface) (?<name>\w+)/
  const block = new RegExp(
    `^(?:(?://|/\\*\\*) .*\\n)*${head.source}.*(?:\\n(?:[ })\\]].*)?)*?\\n[})\\]](?:.*[^({[])?$`,
    'gm',
  )
  return text.replace(block, (lines, name: string) => `<span id="${name}">${lines}</span>`)
}
