/** SVG paths on a 24-by-24 grid, drawn in the color of the surrounding text. */
const outlines = {
  changes: 'M7 20V4M3 8l4-4 4 4M17 4v16M13 16l4 4 4-4',
  chart: 'M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6',
  rank: 'M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4.5 20a7.5 7.5 0 0 1 15 0',
  pace: 'M5 18a8 8 0 1 1 14 0M12 14l4-5',
  keys: 'M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M10.9 10.9L20 20M16 16l2.5-2.5',
  suspensions: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M9.5 9v6M14.5 9v6',
  webhooks: 'M6 16v-5a6 6 0 1 1 12 0v5l1.5 2h-15zM10.5 21h3',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12M12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5',
  setup: 'M4 6.5h9M17 6.5h3M15 4v5M4 17.5h3M11 17.5h9M9 15v5M4 12h6M14 12h6M12 9.5v5',
  circle: 'M12 5a7 7 0 1 0 0 14 7 7 0 0 0 0-14',
  opener: 'M9 5l7 7-7 7',
  up: 'M12 19V5M6 11l6-6 6 6',
  down: 'M12 5v14M6 13l6 6 6-6',
  level: 'M5 12h14M13 6l6 6-6 6',
  yes: 'M5 12.5l4.5 4.5L19 7.5',
  no: 'M6 6l12 12M18 6L6 18',
  barred: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M6.5 6.5l11 11',
  asked: 'M8.5 8.5a3.5 3.5 0 1 1 5 3.2c-1 .6-1.5 1.2-1.5 2.3M12 18v.3',
  waiting: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4.5l3 1.5',
  paused: 'M9 6v12M15 6v12',
  warning: 'M12 4l9 16H3zM12 10v4M12 17v.2',
  back: 'M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
} as const;

export type IconName = keyof typeof outlines;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={outlines[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path d="M2 16h5.5v6H2zM9.25 9.5h5.5V22h-5.5zM16.5 2H22v20h-5.5z" />
      </svg>
      rankd
    </span>
  );
}
