// Canonical JSON: one text for everything that means the same, and never one text for two things that differ.
//
// The text of a document is the one of RFC 8785: no white space, members in the order of their names' UTF-16
// code units, strings with the fewest escapes, numbers laid out as ECMAScript does. Where RFC 8785 would go
// through a double and lose digits, the digits stay: a number's text denotes exactly the decimal value of its source.
// Duplicate members stay too, in source order, because a receiver may read either of them.
//
// Beside it, the interface of schemas by which such values are checked.

export { canonicalJson, type JsonLimits } from './canonical.js'
export * from './standard-schema.js'
export { canonicalJsonOf, readableJsonOf } from './value.js'
