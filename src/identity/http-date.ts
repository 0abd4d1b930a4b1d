// HTTP dates (RFC 9110, 5.6.7): the three forms a recipient must accept, always in UTC, by arithmetic alone.

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const month = `(?<month>${months.join('|')})`
const time = '(?<hour>\\d\\d):(?<minute>\\d\\d):(?<second>\\d\\d)'
const shortDay = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const longDay = '(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)'

const imfFixdate = new RegExp(`^${shortDay}, (?<day>\\d\\d) ${month} (?<year>\\d{4}) ${time} GMT$`)
const rfc850 = new RegExp(`^${longDay}, (?<day>\\d\\d)-${month}-(?<shortYear>\\d\\d) ${time} GMT$`)
const asctime = new RegExp(`^${shortDay} ${month} (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})$`)

const dayMs = 86_400_000
const yearMs = 365.2425 * dayMs
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
  const groups = (imfFixdate.exec(text) ?? rfc850.exec(text) ?? asctime.exec(text))?.groups
  if (groups === undefined) return undefined
  const monthIndex = months.indexOf(groups['month'] ?? '')
  const day = Number(groups['day'])
  const clockMs = timeOfDayMs(Number(groups['hour']), Number(groups['minute']), Number(groups['second']))
  if (clockMs === undefined) return undefined
  const instant = (year: number): number | undefined => {
    if (day < 1 || day > daysInMonth(year, monthIndex)) return undefined
    return daysSince1970(year, monthIndex, day) * dayMs + clockMs
  }
  const { shortYear } = groups
  if (shortYear === undefined) return instant(Number(groups['year']))
  // The latest year with these digits that is not more than 50 years ahead (RFC 9110, 5.6.7).
  const century = Math.floor(1970 / 100 + nowMs / (100 * yearMs)) * 100
  const guesses = [century + 100, century, century - 100].map((start) => instant(start + Number(shortYear)))
  return guesses.find((atMs) => atMs !== undefined && atMs - nowMs <= 50 * yearMs)
}

// A leap second (60) is allowed by the grammar and read as the second after it.
function timeOfDayMs(hour: number, minute: number, second: number): number | undefined {
  if (hour > 23 || minute > 59 || second > 60) return undefined
  return ((hour * 60 + minute) * 60 + second) * 1_000
}

function isLeapYear(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
}

function daysInMonth(year: number, monthIndex: number): number {
  if (monthIndex === 1) return isLeapYear(year) ? 29 : 28
  return [3, 5, 8, 10].includes(monthIndex) ? 30 : 31
}

function daysSince1970(year: number, monthIndex: number, day: number): number {
  const yearsBefore = year - 1
  const leapDays = Math.floor(yearsBefore / 4) - Math.floor(yearsBefore / 100) + Math.floor(yearsBefore / 400)
  let days = yearsBefore * 365 + leapDays - 719_162
  for (let earlierMonth = 0; earlierMonth < monthIndex; earlierMonth++) days += daysInMonth(year, earlierMonth)
  return days + day - 1
}
