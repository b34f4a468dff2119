import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import type { Bar } from '../documents.ts';
import { locale } from '../parts/time.tsx';

interface PlotProps {
  bars: Bar[];
  label: (at: string) => string;
  isHourly: boolean;
}

const heightPx = 260;
const canHover = matchMedia('(hover: hover)').matches;

/** Loads uPlot. First replaces the browser's language tag if it is invalid, because uPlot would throw. */
async function loadPlot(): Promise<typeof uPlot> {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, 'language', { value: locale, configurable: true });
  }
  return (await import('uplot')).default;
}

/** Draws the bars as a chart, which screen readers skip because the table below has the same data. */
export function Plot({ bars, label, isHourly }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const hovered = useSignal<number | undefined>(undefined);
  const failure = useSignal<Error | undefined>(undefined);
  if (failure.value !== undefined) throw failure.value; // the view's boundary shows it

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let isGone = false;
    const draw = async () => {
      const UPlot = await loadPlot();
      if (isGone) return;
      plot.current?.destroy();
      plot.current = new UPlot(
        optionsFor(UPlot, {
          element,
          bars,
          isHourly,
          hover: (index) => {
            hovered.value = index;
          },
        }),
        dataOf(bars),
        element,
      );
    };
    const tryDraw = () => draw().catch((error) => (failure.value = error));
    void tryDraw();
    const onSize = new ResizeObserver(([entry]) => {
      if (entry !== undefined) plot.current?.setSize({ width: entry.contentRect.width, height: heightPx });
    });
    onSize.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    const redraw = () => void tryDraw();
    scheme.addEventListener('change', redraw);
    return () => {
      isGone = true;
      onSize.disconnect();
      scheme.removeEventListener('change', redraw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [bars, isHourly]);

  const bar = bars[hovered.value ?? -1];
  return (
    <div class="chart" aria-hidden="true">
      <p class="small soft readout">
        {bar === undefined ? `${canHover ? 'Point at' : 'Tap'} a bar to read it.` : readout(bar, label)}
      </p>
      <div ref={place} class="plot" />
    </div>
  );
}

function readout(bar: Bar, label: (at: string) => string): string {
  const { promotions, demotions, refused, failed } = bar;
  if (promotions === null) return `${label(bar.from)}: not counted yet`;
  return `${label(bar.from)}: ${promotions} promoted, ${demotions} demoted, ${(refused ?? 0) + (failed ?? 0)} refused or failed`;
}

function dataOf(bars: Bar[]): uPlot.AlignedData {
  return [
    bars.map((_, index) => index),
    bars.map(({ promotions }) => promotions),
    bars.map(({ demotions }) => (demotions === null ? null : -demotions)),
    bars.map(({ refused, failed }) => (refused === null ? null : refused + (failed ?? 0))),
  ];
}

interface Drawing {
  element: HTMLElement;
  bars: Bar[];
  isHourly: boolean;
  hover: (index: number | undefined) => void;
}

function optionsFor(UPlot: typeof uPlot, { element, bars, isHourly, hover }: Drawing): uPlot.Options {
  const style = getComputedStyle(element);
  const font = `12px ${style.fontFamily}`;
  const tone = (name: string) => resolved(element, name);
  const grid = { stroke: tone('--line'), width: 1 };
  const axis = { stroke: tone('--ink-soft'), font, grid, ticks: { show: false } };
  const column = (fill: string, align: -1 | 1, share: number): uPlot.Series => ({
    fill,
    width: 0,
    points: { show: false },
    paths: UPlot.paths.bars?.({ align, size: [share, 30, 1], radius: 0.12 }) as uPlot.Series.PathBuilder,
  });
  const name = (index: number) => {
    const at = new Date(bars[index]?.from ?? 0);
    if (isHourly) return at.toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });
    return at.toLocaleDateString(locale, { day: 'numeric', month: 'short' });
  };
  return {
    width: element.clientWidth,
    height: heightPx,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { time: false, range: () => [-0.6, bars.length - 0.4] },
      y: { range: (_, min, max) => [Math.min(0, min) * 1.1, Math.max(1, max) * 1.1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 30,
        space: 64,
        incrs: [1, 2, 3, 4, 6, 12],
        values: (_, ticks) =>
          ticks.map((tick) => (Number.isInteger(tick) && bars[tick] !== undefined ? name(tick) : '')),
      },
      {
        ...axis,
        size: 44,
        values: (_, ticks) =>
          ticks.map((tick) => (Number.isInteger(tick) ? Math.abs(tick).toLocaleString(locale) : '')),
      },
    ],
    series: [
      {},
      column(tone('--bar-up'), -1, 0.5),
      column(tone('--bar-down'), -1, 0.5),
      column(tone('--bar-no'), 1, 0.28),
    ],
    hooks: { setCursor: [({ cursor }) => hover(cursor.idx ?? undefined)] },
  };
}

/** Resolves one of the style sheet's colors for the canvas, in the current color scheme. */
function resolved(element: HTMLElement, name: string): string {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
