// Laws about documents: links that lead somewhere, pages with content, and no promise that cannot be kept.

import { posix } from 'node:path'
import { markdownFiles, sourceFiles } from './tree.mjs'

/** @typedef {import('./tree.mjs').Tree} Tree */

const blank = (/** @type {string} */ code) => code.replace(/[^\n]/g, ' ')

/** The text without blocks of code; line numbers stay. */
function withoutBlocks(/** @type {string} */ text) {
  return text.replace(/^(`{3,}|~{3,})[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, blank)
}

/** The text without any code, which may hold anything; line numbers stay. */
function prose(/** @type {string} */ text) {
  return withoutBlocks(text).replace(/(`+)[^`\n](?:[^\n]*?[^`\n])?\1(?!`)/g, blank)
}

/** Anchors as repository hosts make them: lower case, no punctuation, blanks to dashes, repeated ones numbered. */
export function anchorsOf(/** @type {string} */ text) {
  /** @type {Map<string, number>} */
  const seen = new Map()
  const fenced = withoutBlocks(text)
  const headings = [...fenced.matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm)].map(([, heading = '']) => {
    const plain = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/<[^>]*>/g, '')
      .replace(/\\(.)/g, '$1')
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
      .replace(/ /g, '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
  const explicit = [...fenced.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)
  return new Set([...headings, ...explicit])
}

/**
 * What is wrong with one link target, seen from a page; undefined when it leads somewhere inside.
 * @param {Tree} tree
 * @param {string} page
 * @param {string} target
 * @param {(page: string) => ReadonlySet<string>} anchors
 */
function linkProblem(tree, page, target, anchors) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(target)) return 'leads out of the repository'
  const [path = '', anchor] = decodeURI(target).split('#')
  const place = path === '' ? page : posix.normalize(posix.join(posix.dirname(page), path)).replace(/\/$/, '')
  if (path.startsWith('/') || place.startsWith('..')) return 'leads out of the repository'
  if (!tree.has(place === '.' ? '' : place)) return 'leads nowhere'
  if (anchor === undefined) return undefined
  if (!place.endsWith('.md')) return 'has an anchor, but does not lead to a page'
  return anchors(place).has(anchor) ? undefined : `finds no heading #${anchor}`
}

/** Links of pages that lead out of the tree, or to nothing in it. @param {Tree} tree @returns {string[]} */
export function linksResolve(tree) {
  /** @type {Map<string, ReadonlySet<string>>} */
  const known = new Map()
  const anchors = (/** @type {string} */ page) => {
    const found = known.get(page) ?? anchorsOf(tree.text(page))
    known.set(page, found)
    return found
  }
  return markdownFiles(tree).flatMap((page) => {
    const text = prose(tree.text(page))
    const inline = [...text.matchAll(/\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g)]
    const reference = [...text.matchAll(/^\s*\[[^\]]+\]:\s*<?(\S+?)>?(?:\s+"[^"]*")?\s*$/gm)]
    const bare = [...text.matchAll(/(?<![\w"'=([<])<?(https?:\/\/[^\s)>]+)/g)]
    return [...inline, ...reference, ...bare].flatMap((match) => {
      const target = match[1] ?? ''
      const problem = linkProblem(tree, page, target, anchors)
      const line = text.slice(0, match.index).split('\n').length
      return problem === undefined ? [] : [`${page}:${line}: ${target} ${problem}`]
    })
  })
}

function pagesHaveContent(/** @type {Tree} */ tree) {
  return markdownFiles(tree).flatMap((page) => {
    const text = tree.text(page)
    if (!/^#\s+\S/m.test(text)) return [`${page}: a page has a title`]
    const body = text.replace(/^#.*$/gm, '').trim()
    return body.length < 40 ? [`${page}: a page has something to say below its title`] : []
  })
}

const once = String.raw`\bexactly[-\s]+once\b`
const delivery = String.raw`\bdeliver(?:y|ies|s|ed|ing)?\b`
const fewWords = String.raw`(?:\W+\w+){0,3}?\W+`
const promise = new RegExp(`${once}${fewWords}${delivery}|${delivery}${fewWords}${once}`, 'i')
const denial = /does not exist|no such|never promise|impossible/i

function noImpossiblePromise(/** @type {Tree} */ tree) {
  const files = [...markdownFiles(tree), ...sourceFiles(tree), ...tree.paths.filter((path) => path === 'package.json')]
  return files.flatMap((path) => {
    const text = tree.text(path).replace(/\n\s*(\/\/|\*|>)?\s*(?=\S)/g, ' ')
    const sentences = text.split(/(?<=[.!?])\s|\n/)
    const bad = sentences.filter((sentence) => promise.test(sentence) && !denial.test(sentence))
    return bad.map(() => `${path}: speaks of exactly-once delivery without saying that it does not exist`)
  })
}

/**
 * What looks like a place in this repository: a path below one of its folders, or the name of a file of code or text.
 */
const place =
  /^(?:(?:\.ci|bench|docs|examples|src|test|tools)\/[\w./-]*|\.?[\w-]+(?:\.[\w-]+)*\.(?:[cm]?[jt]s|json|md|grit))$/

function namedFilesExist(/** @type {Tree} */ tree) {
  const names = new Set(tree.paths.map((path) => posix.basename(path)))
  return markdownFiles(tree).flatMap((page) => {
    // A recipe may name the files that it makes itself: the words after the language of a block.
    const made = [...tree.text(page).matchAll(/^```\w+ (\S+)$/gm)].map(([, path = '']) => path)
    const exists = (/** @type {string} */ path) =>
      tree.has(path) || names.has(path) || made.some((file) => file === path || file.startsWith(`${path}/`))
    const lines = withoutBlocks(tree.text(page)).split('\n')
    return lines.flatMap((line, index) => {
      const named = [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text)
      const missing = named.filter((text) => place.test(text) && !exists(text.replace(/\/$/, '')))
      return missing.map((text) => `${page}:${index + 1}: there is no ${text}`)
    })
  })
}

// A path below one of the usual homes of a machine. Written so that this line does not match itself.
const machinePath = /(?:^|[\s"'`(=:])(?:\/(?:home|root|Users|work|private|mnt)\/|[A-Z]:\\\\?Users)\w/

function noMachinePaths(/** @type {Tree} */ tree) {
  const files = tree.paths.filter((path) => !/\.(png|jpg|gif|ico|woff2?)$/.test(path))
  return files.flatMap((path) => {
    const lines = tree.text(path).split('\n')
    return lines.flatMap((line, index) =>
      machinePath.test(line) ? [`${path}:${index + 1}: a path of some machine`] : [],
    )
  })
}

/** @type {readonly import('./form.mjs').Law[]} */
export const documentLaws = [
  { name: 'links-resolve', why: 'a link stays inside the repository and finds its heading', find: linksResolve },
  { name: 'named-files-exist', why: 'a reader looks for what a page names', find: namedFilesExist },
  { name: 'pages-have-content', why: 'a page exists because it has something to say', find: pagesHaveContent },
  { name: 'no-impossible-promise', why: 'exactly-once delivery does not exist', find: noImpossiblePromise },
  { name: 'no-machine-paths', why: 'what works here works elsewhere', find: noMachinePaths },
]
