// HTTP dates (RFC 9110, 5.6.7): the three forms a recipient must accept, always in UTC.

import { dayStartMs } from '../kernel/index.js'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const time = '(?<time>\\d\\d:\\d\\d:\\d\\d)'
const month = `(?<month>${months.join('|')})`
const shortDay = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const longDay = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'

const forms = [
  `${shortDay}, (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} GMT`,
  `${longDay}, (?<day>\\d\\d)-${month}-(?<shortYear>\\d\\d) ${time} GMT`,
  `${shortDay} ${month} (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`))

const yearMs = 365.2425 * 86_400_000
const longestDateLength = 40

/**
 * The instant that an HTTP date names, in ms since 1970, or undefined when the text is none of the three forms
 * (ISO 8601 is not one of them). The day of the week is not compared with the date.
 *
 * @param nowMs Wall time in ms, which decides the century of the two-digit year in the RFC 850 form:
 *   a date more than 50 years ahead is read as the past.
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  if (text.length > longestDateLength) return undefined
  const parts = forms.map((form) => form.exec(text)).find((match) => match !== null)?.groups
  if (parts === undefined) return undefined
  const day = Number(parts['day'])
  const monthIndex = months.indexOf(parts['month'] ?? '')
  const [hour = 0, minute = 0, second = 0] = (parts['time'] ?? '').split(':').map(Number)
  const instant = (year: number): number | undefined => {
    const startMs = dayStartMs(year, monthIndex, day)
    // A leap second (60) is allowed by the grammar and read as the second after it.
    if (startMs === undefined || hour > 23 || minute > 59 || second > 60) return undefined
    return startMs + ((hour * 60 + minute) * 60 + second) * 1_000
  }
  const { year: fullYear, shortYear } = parts
  if (shortYear === undefined) return instant(Number(fullYear))
  // The latest year with these digits that is not more than 50 years ahead (RFC 9110, 5.6.7).
  const century = Math.floor(1970 / 100 + nowMs / (100 * yearMs)) * 100
  const guesses = [century + 100, century, century - 100].map((start) => instant(start + Number(shortYear)))
  return guesses.find((atMs) => atMs !== undefined && atMs - nowMs <= 50 * yearMs)
}
