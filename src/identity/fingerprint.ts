// A fingerprint is a hash of the content bound to a key. It tells a repeat from a different request under the same key.
//
// It names the algorithm and the rule it was made with, and is compared by that, so that an upgrade or a changed rule
// never turns an honest repeat into a mismatch.

import {
  canonicalJson,
  canonicalJsonOf,
  isBytes,
  isRepriseError,
  type JsonLimits,
  RepriseError,
  sha256,
} from '../kernel/index.js'
import { checkPointers, type FieldRule, omitFields, onlyFields } from './fields.js'
import type { Pepper } from './pepper.js'

declare const fingerprintBrand: unique symbol

/**
 * `<algorithm>[;only=…|;omit=…]:<digest>`, for example `json1-sha256;omit=%2FsentAt:47DEQpj8…`; under a pepper
 * `json1-hmac256-<id of the pepper>;omit=…:…`.
 */
export type Fingerprint = string & { readonly [fingerprintBrand]: true }

/** What to take a fingerprint of: JSON as it arrived, a JavaScript value that JSON can express, or other bytes. */
export type Content =
  | { readonly json: string | Uint8Array }
  | { readonly value: unknown }
  | { readonly bytes: Uint8Array }

/** How a fingerprint is made. Default: the whole content counts. */
export interface FingerprintOptions extends FieldRule {
  /** Limits on JSON content. Default: those of `canonicalJson`. */
  readonly limits?: JsonLimits
}

type Algorithm = 'json1-sha256' | 'bytes-sha256'

interface Recipe {
  readonly algorithm: Algorithm
  readonly rule: FieldRule
}

const underPepper = /hmac256-[0-9a-f]{8}$/

const digestLength = 43

/**
 * The fingerprint of some content. JSON is made canonical first, from its raw text, so member order, whitespace and the
 * spelling of numbers and escapes do not matter, while every digit, duplicate member and `__proto__` does.
 *
 * @example
 * ```ts
 * import { fingerprint, sameContent } from 'reprise/identity'
 *
 * const stored = fingerprint({ json: '{"amount": 10.0, "to": "bob"}' })
 * console.log(sameContent(stored, { json: '{"to":"bob","amount":10}' }))
 * ```
 * ```text
 * true
 * ```
 */
export function fingerprint(content: Content, options: FingerprintOptions = {}): Fingerprint {
  checkContent(content)
  const algorithm: Algorithm = 'bytes' in content ? 'bytes-sha256' : 'json1-sha256'
  if (options.only === undefined && options.omit === undefined) {
    return digestBy({ algorithm, rule: options }, content, options.limits)
  }
  const rule = checkFieldRule(options)
  if (algorithm === 'bytes-sha256') {
    throw new RepriseError('FINGERPRINT_FIELDS_INVALID', 'Bytes have no fields: only JSON can be chosen from.')
  }
  return digestBy({ algorithm, rule }, content, options.limits)
}

/**
 * Whether content is the one a stored fingerprint was made of, judged by the algorithm and the field rule in the
 * stored fingerprint, whatever is in use today. Refuses with FINGERPRINT_INVALID when it cannot be read.
 *
 * @param pepper The store's, `db.records.pepper`; without it a fingerprint made under one cannot be read.
 */
export function sameContent(stored: string, content: Content, limits?: JsonLimits, pepper?: Pepper): boolean {
  checkContent(content)
  const { hidden, ...recipe } = parseFingerprint(stored)
  if (hidden && pepper === undefined) {
    throw new RepriseError('FINGERPRINT_INVALID', 'The fingerprint was made under a pepper, and none is given.')
  }
  try {
    const print = digestBy(recipe, content, limits)
    return (hidden ? pepper?.hide(print) : print) === stored
  } catch (error) {
    // Bytes that cannot be read as JSON cannot be what a JSON fingerprint was made of.
    if ('bytes' in content && isRepriseError(error) && error.code.startsWith('JSON_')) return false
    // At least one of the chosen fields was there when the fingerprint was made.
    if (isRepriseError(error, 'FINGERPRINT_FIELDS_INVALID')) return false
    throw error
  }
}

function digestBy({ algorithm, rule }: Recipe, content: Content, limits: JsonLimits | undefined): Fingerprint {
  let prefix: string = algorithm
  let counted: string | Uint8Array
  if (algorithm === 'bytes-sha256') counted = rawBytes(content, limits)
  else {
    counted =
      'value' in content
        ? canonicalJsonOf(content.value, limits)
        : canonicalJson('json' in content ? content.json : content.bytes, limits)
    if (rule.only !== undefined) {
      prefix += `;only=${printPointers(rule.only)}`
      counted = onlyFields(counted, rule.only)
    } else if (rule.omit !== undefined) {
      prefix += `;omit=${printPointers(rule.omit)}`
      counted = omitFields(counted, rule.omit)
    }
  }
  return `${prefix}${sha256(counted).slice('sha256'.length)}` as Fingerprint
}

function checkContent(content: Content): void {
  const given = Object(content) as Partial<Record<'json' | 'value' | 'bytes', unknown>>
  const forms = ('json' in given ? 1 : 0) + ('value' in given ? 1 : 0) + ('bytes' in given ? 1 : 0)
  const sound =
    forms === 1 &&
    (!('bytes' in given) || isBytes(given.bytes)) &&
    (!('json' in given) || typeof given.json === 'string' || isBytes(given.json))
  if (!sound) {
    throw new RepriseError(
      'ARGUMENT_INVALID',
      'Content is { json: text or bytes }, { value: anything JSON can express } or { bytes: Uint8Array }.',
    )
  }
}

function rawBytes(content: Content, limits: JsonLimits | undefined): string | Uint8Array {
  if ('bytes' in content) return content.bytes
  return 'json' in content ? content.json : canonicalJsonOf(content.value, limits)
}

/** Checks a rule and brings it into one order. Refuses with FINGERPRINT_FIELDS_INVALID. */
export function checkFieldRule({ only, omit }: FieldRule): FieldRule {
  if (only !== undefined && omit !== undefined) {
    throw new RepriseError('FINGERPRINT_FIELDS_INVALID', 'A rule either chooses fields or leaves some out, not both.')
  }
  if (only !== undefined) return { only: checkPointers(only) }
  if (omit !== undefined) return { omit: checkPointers(omit) }
  return {}
}

function printPointers(pointers: readonly string[]): string {
  return pointers.map(encodeURIComponent).join(',')
}

function parseFingerprint(stored: string): Recipe & { readonly hidden: boolean } {
  const shape = /^(?<algorithm>[a-z0-9-]+)(?:;(?<verb>only|omit)=(?<pointers>[^;:]+))?:(?<digest>[A-Za-z0-9_-]+)$/
  const groups = typeof stored === 'string' ? shape.exec(stored)?.groups : undefined
  const named = groups?.['algorithm']
  const algorithm = named?.replace(underPepper, 'sha256')
  const hidden = algorithm !== named
  if (groups?.['digest']?.length !== digestLength) {
    throw new RepriseError('FINGERPRINT_INVALID', 'The text is not a fingerprint.')
  }
  if (algorithm !== 'json1-sha256' && algorithm !== 'bytes-sha256') {
    throw new RepriseError(
      'FINGERPRINT_INVALID',
      'The fingerprint was made by an algorithm this version does not know.',
    )
  }
  const { verb, pointers } = groups
  if (verb === undefined || pointers === undefined) return { algorithm, rule: {}, hidden }
  try {
    if (algorithm === 'bytes-sha256') throw new RepriseError('FINGERPRINT_FIELDS_INVALID', 'Bytes have no fields.')
    return { algorithm, rule: checkFieldRule({ [verb]: pointers.split(',').map(decodeURIComponent) }), hidden }
  } catch (cause) {
    throw new RepriseError('FINGERPRINT_INVALID', 'The fingerprint names fields that cannot be read.', { cause })
  }
}
