import { describe, expect, it } from 'vitest'
import { type Chart, short, svgChart, ticks } from './svg-chart.js'

const chart: Chart = {
  title: 'A <title> & "more"',
  subtitles: ['one', 'two'],
  xTitle: 'seconds',
  xRange: [0, 10],
  shade: { from: 2, to: 4, name: 'trigger' },
  panels: [
    {
      title: 'per second',
      lines: [
        {
          name: 'a',
          color: 0,
          points: [
            [0, 0],
            [10, 100],
          ],
        },
        {
          name: 'b',
          color: 1,
          dashed: true,
          points: [
            [0, 50],
            [10, 50],
          ],
        },
      ],
    },
    {
      title: 'log',
      logarithmic: true,
      lines: [
        {
          name: 'c',
          color: 2,
          points: [
            [0, 1],
            [10, 100],
          ],
        },
      ],
    },
  ],
}

describe('svgChart', () => {
  const svg = svgChart(chart)

  it('puts values where they belong', () => {
    expect(svg).toContain('<path class="c0" d="M72 282L836 112"/>')
    expect(svg).toContain('<path class="c1 d" d="M72 197L836 197"/>')
    expect(svg).toContain('<path class="c2" d="M72 514L836 344"/>')
    expect(svg).toContain('<rect class="s" x="224.8" y="112" width="152.8" height="170"/>')
  })

  it('is well-formed, escapes text, and has a look for dark pages', () => {
    const open: string[] = []
    for (const [, close, name = '', self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
      if (close) expect(open.pop()).toBe(name)
      else if (!self) open.push(name)
    }
    expect(open).toEqual([])
    expect(svg).toContain('A &lt;title&gt; &amp; &quot;more&quot;')
    expect(svg).toContain('prefers-color-scheme:dark')
  })

  it('names each line once in its legend, and a lone line not at all', () => {
    expect(svg.match(/>a</g)).toHaveLength(1)
    expect(svg.match(/>trigger</g)).toHaveLength(1)
    expect(svg).not.toContain('>c<')
  })

  it('survives a chart in which nothing happens', () => {
    const still: Chart = {
      title: '',
      subtitles: [],
      xTitle: '',
      xRange: [5, 5],
      panels: [{ title: '', lines: [{ name: 'a', color: 0, points: [[5, 0]] }] }],
    }
    expect(svgChart(still)).not.toMatch(/NaN|Infinity/)
  })
})

describe('ticks', () => {
  it.each([
    [0, 150, 8, [0, 20, 40, 60, 80, 100, 120, 140]],
    [0, 1, 4, [0, 0.5, 1]],
    [0, 0.3, 4, [0, 0.1, 0.2, 0.3]],
    [10, 190, 8, [50, 100, 150]],
  ])('from %d to %d, about %d', (from, to, about, expected) => {
    expect(ticks(from, to, about)).toEqual(expected)
  })
})

describe('short', () => {
  it.each([
    [0, '0'],
    [0.05, '0.05'],
    [999, '999'],
    [4200, '4.2k'],
    [411_241, '411k'],
    [2_500_000, '2.5M'],
  ])('%d is %s', (value, expected) => {
    expect(short(value)).toBe(expected)
  })
})
