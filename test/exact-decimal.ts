// Decimal values without a double in between: a model that shares no code with what it checks.

/** Digits times a power of ten, written so that equal values have equal texts. */
export function decimal(negative: boolean, digits: bigint, exponent: number): string {
  if (digits === 0n) return '0'
  let whole = digits
  let power = exponent
  while (whole % 10n === 0n) {
    whole /= 10n
    power += 1
  }
  return `${negative ? '-' : ''}${whole}*10^${power}`
}

/** The exact value of the text of a number, as `decimal` writes it. */
export function decimalOf(source: string): string {
  const groups = /^(?<sign>-?)(?<integer>\d+)(?:\.(?<fraction>\d+))?(?:[eE](?<exponent>[+-]?\d+))?$/.exec(
    source,
  )?.groups
  if (groups === undefined) throw new Error('the model cannot read a number')
  const fraction = groups['fraction'] ?? ''
  return decimal(
    groups['sign'] === '-',
    BigInt(`${groups['integer']}${fraction}`),
    Number(groups['exponent'] ?? 0) - fraction.length,
  )
}
