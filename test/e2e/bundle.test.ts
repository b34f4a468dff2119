import { expect, test } from 'vitest';
import installed from '../../node_modules/better-sqlite3/package.json' with { type: 'json' };
import manifest from '../../package.json' with { type: 'json' };

test('the addon that is installed is of the very version whose JavaScript is in the bundle', () => {
  expect(manifest.dependencies['better-sqlite3']).toBe(installed.version);
});
