import { useSignal } from '@preact/signals';
import type { Bar } from '../documents.ts';
import { chart } from '../live.ts';
import { Empty, Table } from '../parts/table.tsx';
import { locale } from '../parts/time.tsx';
import { Plot } from './plot.tsx';
import { LiveView } from './view.tsx';

const spans = {
  hours: { name: '24 hours', unit: { hour: '2-digit', minute: '2-digit' } },
  days: { name: '30 days', unit: { weekday: 'short', day: 'numeric', month: 'short' } },
} as const;

type Span = keyof typeof spans;

/**
 * Shows the number of changes per hour or day: promotions above the axis, demotions below it, and refused and failed
 * changes next to them.
 */
export function ChartView() {
  const span = useSignal<Span>('hours');
  return (
    <LiveView
      title="Chart"
      live={chart}
      lead={(data) => (data.isComplete ? '' : 'older changes are still being counted')}
    >
      {(data) => {
        const bars = data[span.value];
        const { name, unit } = spans[span.value];
        const label = (at: string) => new Date(at).toLocaleString(locale, unit);
        return (
          <>
            <fieldset class="choice">
              <legend class="unseen">Time span</legend>
              {(Object.keys(spans) as Span[]).map((choice) => (
                <label key={choice}>
                  <input
                    type="radio"
                    name="span"
                    checked={span.value === choice}
                    onChange={() => {
                      span.value = choice;
                    }}
                  />
                  <span>{spans[choice].name}</span>
                </label>
              ))}
            </fieldset>
            <Totals bars={bars} />
            <section class="sheet" aria-label={`Changes in the last ${name}`}>
              {bars.every((bar) => total(bar) === 0) ? (
                <Empty icon="chart" title={`No changes in the last ${name}`}>
                  <p>The number of changes per {span.value === 'hours' ? 'hour' : 'day'} appears here.</p>
                </Empty>
              ) : (
                <Plot bars={bars} label={label} isHourly={span.value === 'hours'} />
              )}
            </section>
            <details class="sheet fold">
              <summary>Show as a table</summary>
              <BarsTable bars={bars} label={label} name={name} />
            </details>
          </>
        );
      }}
    </LiveView>
  );
}

function total({ promotions, demotions, refused, failed }: Bar): number {
  return (promotions ?? 0) + (demotions ?? 0) + (refused ?? 0) + (failed ?? 0);
}

function Totals({ bars }: { bars: Bar[] }) {
  const sum = (of: (bar: Bar) => number | null) => bars.reduce((all, bar) => all + (of(bar) ?? 0), 0);
  return (
    <dl class="facts figures">
      {(
        [
          ['Promotions', sum(({ promotions }) => promotions), 'up'],
          ['Demotions', sum(({ demotions }) => demotions), 'down'],
          ['Refused or failed', sum(({ refused, failed }) => (refused ?? 0) + (failed ?? 0)), 'no'],
        ] as const
      ).map(([name, value, tone]) => (
        <div key={name} class={`legend ${tone}`}>
          <dt>{name}</dt>
          <dd class="figure">{value.toLocaleString(locale)}</dd>
        </div>
      ))}
    </dl>
  );
}

const columns = [
  'From',
  ...['Promotions', 'Demotions', 'Refused', 'Failed'].map((title) => ({ title, class: 'number' })),
];

function BarsTable({ bars, label, name }: { bars: Bar[]; label: (at: string) => string; name: string }) {
  return (
    <Table caption={`Changes in the last ${name}, newest first`} columns={columns}>
      {[...bars].reverse().map((bar) => (
        <tr key={bar.from}>
          <th scope="row">
            <time dateTime={bar.from}>{label(bar.from)}</time>
          </th>
          <td class="number">{bar.promotions ?? '…'}</td>
          <td class="number">{bar.demotions ?? '…'}</td>
          <td class="number">{bar.refused ?? '…'}</td>
          <td class="number">{bar.failed ?? '…'}</td>
        </tr>
      ))}
    </Table>
  );
}
