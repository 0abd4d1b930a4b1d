// Line charts as SVG text: panels under one another that share the x axis. Readable on a light and on a dark page.

interface ChartLine {
  /** The name in the legend. */
  readonly name: string
  /** An index into the colours below, 0 to 5. */
  readonly color: number
  /** Default false. */
  readonly dashed?: boolean
  /** From left to right. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

/** A panel: lines with a y axis of their own. */
interface ChartPanel {
  /** What the y axis counts. */
  readonly title: string
  /** Whether the y axis is logarithmic; all values must be above 0 then. Default false. */
  readonly logarithmic?: boolean
  readonly lines: readonly ChartLine[]
}

/** What a chart shows: its titles, its axes and its panels of lines. */
export interface Chart {
  readonly title: string
  /** Lines under the heading, at most two. */
  readonly subtitles: readonly string[]
  /** What the x axis counts. */
  readonly xTitle: string
  /** The first and the last x. */
  readonly xRange: readonly [number, number]
  /** A range of x to shade, and its name in the legend. Default: none. */
  readonly shade?: { readonly from: number; readonly to: number; readonly name: string }
  /** From top to bottom. */
  readonly panels: readonly ChartPanel[]
}

const width = 860
const left = 72
const right = 24
const top = 112
const panelHeight = 170
const panelGap = 62
const bottom = 52

// Blue, orange, green, purple, red, grey: told apart by most colour-blind readers too (after Okabe and Ito).
const light = ['#0072b2', '#d55e00', '#00795c', '#a14d83', '#8a6d00', '#6b7280']
const dark = ['#56b4e9', '#f59e4c', '#2fc79a', '#e29cc8', '#e0c341', '#9ca3af']

function styles(): string {
  const colors = (list: readonly string[]): string =>
    list.map((color, index) => `.c${index}{stroke:${color}}.f${index}{fill:${color}}`).join('')
  return [
    'text{font:12px system-ui,sans-serif;fill:#374151}.h{font-size:17px;font-weight:600;fill:#111827}',
    '.p{font-weight:600}.bg{fill:#ffffff}.g{stroke:#e5e7eb}.a{stroke:#9ca3af}.s{fill:#f59e0b;opacity:.16}',
    `path{fill:none;stroke-width:1.8;stroke-linejoin:round}.d{stroke-dasharray:5 4}${colors(light)}`,
    '@media(prefers-color-scheme:dark){text{fill:#d1d5db}.h{fill:#f9fafb}.bg{fill:#111827}.g{stroke:#2b3546}',
    `.a{stroke:#6b7280}.s{opacity:.22}${colors(dark)}}`,
  ].join('')
}

/** The chart as the text of an SVG file. */
export function svgChart(chart: Chart): string {
  const { panels, title, subtitles, xTitle } = chart
  const height = top + panels.length * panelHeight + (panels.length - 1) * panelGap + bottom
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><desc>${escaped(subtitles.join('; '))}</desc><style>${styles()}</style>`,
    `<rect class="bg" width="${width}" height="${height}"/>`,
    `<text class="h" x="${left}" y="28">${escaped(title)}</text>`,
    ...subtitles.map((line, index) => `<text x="${left}" y="${48 + 17 * index}">${escaped(line)}</text>`),
    ...panels.map((panel, index) => drawPanel(chart, panel, top + index * (panelHeight + panelGap), index === 0)),
    `<text x="${(left + width - right) / 2}" y="${height - 12}" text-anchor="middle">${escaped(xTitle)}</text>`,
    '</svg>',
  ]
  return `${parts.join('\n')}\n`
}

function drawPanel({ xRange, shade }: Chart, panel: ChartPanel, y: number, named: boolean): string {
  const [from, to] = xRange
  const xOf = (x: number): number => left + ((x - from) / (to - from || 1)) * (width - left - right)
  const scale = yScale(panel)
  const yOf = (value: number): number => y + panelHeight - scale.share(value) * panelHeight
  const base = y + panelHeight
  const grid = scale.ticks.map(
    (tick) =>
      `<line class="g" x1="${left}" x2="${width - right}" y1="${at(yOf(tick))}" y2="${at(yOf(tick))}"/>` +
      `<text x="${left - 8}" y="${at(yOf(tick) + 4)}" text-anchor="end">${short(tick)}</text>`,
  )
  const marks = ticks(from, to, 8).map(
    (tick) =>
      `<line class="a" x1="${at(xOf(tick))}" x2="${at(xOf(tick))}" y1="${base}" y2="${base + 4}"/>` +
      `<text x="${at(xOf(tick))}" y="${base + 17}" text-anchor="middle">${short(tick)}</text>`,
  )
  return [
    shade === undefined ? '' : shaded(xOf(shade.from), xOf(shade.to), y),
    ...grid,
    ...marks,
    `<line class="a" x1="${left}" x2="${width - right}" y1="${base}" y2="${base}"/>`,
    legend(panel, y - 10, named ? shade?.name : undefined),
    ...panel.lines.map(
      ({ color, dashed, points }) =>
        `<path class="c${color}${dashed ? ' d' : ''}" d="${points.map(([px, py], index) => `${index === 0 ? 'M' : 'L'}${at(xOf(px))} ${at(yOf(py))}`).join('')}"/>`,
    ),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function shaded(from: number, to: number, y: number): string {
  return `<rect class="s" x="${at(from)}" y="${y}" width="${at(Math.max(1, to - from))}" height="${panelHeight}"/>`
}

function legend({ title, lines }: ChartPanel, y: number, shadeName: string | undefined): string {
  // The widths of letters are unknown here; seven units a letter are enough.
  let x = left + title.length * 7 + 24
  const entry = (sign: string, name: string): string => {
    const text = `${sign}<text x="${x + 28}" y="${y}">${escaped(name)}</text>`
    x += 28 + name.length * 7 + 16
    return text
  }
  const sign = ({ color, dashed }: ChartLine): string =>
    `<path class="c${color}${dashed ? ' d' : ''}" d="M${x} ${y - 4}h22"/>`
  const entries = lines.length > 1 ? lines.map((line) => entry(sign(line), line.name)) : []
  const shade =
    shadeName === undefined ? '' : entry(`<rect class="s" x="${x}" y="${y - 10}" width="22" height="11"/>`, shadeName)
  return `<text class="p" x="${left}" y="${y}">${escaped(title)}</text>${entries.join('')}${shade}`
}

interface Scale {
  readonly ticks: readonly number[]
  share(value: number): number
}

function yScale({ logarithmic, lines }: ChartPanel): Scale {
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value))
  const highest = values.reduce((a, b) => Math.max(a, b), 0)
  if (!logarithmic) {
    const marks = ticks(0, highest || 1, 4)
    const step = (marks[1] ?? 1) - (marks[0] ?? 0)
    const end = Math.ceil((highest || 1) / step) * step
    return { ticks: ticks(0, end, 4), share: (value) => value / end }
  }
  const lowest = values.reduce((a, b) => Math.min(a, b), highest)
  const first = Math.floor(Math.log10(lowest))
  const last = Math.max(first + 1, Math.ceil(Math.log10(highest)))
  const powers = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index))
  return { ticks: powers, share: (value) => (Math.log10(value) - first) / (last - first) }
}

/** Round numbers between two values, about as many as asked for: multiples of 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, about: number): number[] {
  const rough = (to - from || 1) / about
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10)
  const first = Math.ceil(from / step - 1e-9)
  const last = Math.floor(to / step + 1e-9)
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  )
}

/** A number for people: 4200 is 4.2k. */
export function short(value: number): string {
  const size = Math.abs(value)
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (size >= 1000) return `${Number((value / 1000).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}

const at = (value: number): string => String(Math.round(value * 10) / 10)

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escaped(text: string): string {
  // Control characters are not allowed in XML.
  return text.replace(/[&<>"]/g, (mark) => entities[mark] as string).replace(/\p{Cc}/gu, ' ')
}
