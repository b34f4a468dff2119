import { expect, test } from 'vitest';
import { applied } from './scene.ts';
import { openSystem, type System, systemNamed } from './systems.ts';

// The loaders in `systems` simulate the admin systems in other tests; only cmdr.luau loads the real Cmdr. These tests
// check that each loader is as strict as the real system.

const serve = applied;

const changed = (system: System, from: string | RegExp, to: string) =>
  system.scripts().map((script) => ({ ...script, source: script.source?.replace(from, to) ?? '' }));

test('Basic Admin skips a plugin that returns four values, and never finds a command whose name has a hyphen', async () => {
  const basicAdmin = systemNamed('Basic Admin Essentials');
  const four = `return function(data) return "promote", print, 0, ":" end`;
  const scripts = basicAdmin.scripts().map((script) => ({ ...script, source: four }));
  await using scene = await openSystem(basicAdmin, { serve, scripts });
  expect(await scene.type('Bob', ':promote ann', 5)).toBeUndefined();
  expect(await scene.type('Bob', ':set-rank ann', 5)).toBeUndefined();
});

test.each([
  ['a plugin that uses a service', 'server.Settings.Prefix', 'game.Name'],
  ['a command with an unknown field', 'Args = {', 'Dangerous = "yes", Args = {'],
  ['an unknown admin level', '"Admins"', '"Kings"'],
  ['a command name that Adonis already has', '"setgrouprank"', '"setrank"'],
])('Adonis rejects %s', async (_, from, to) => {
  const adonis = systemNamed('Adonis');
  const opened = openSystem(adonis, { serve, scripts: changed(adonis, from, to) });
  const output = await opened.then(({ game }) => game.output.join(), String);
  expect(output).toMatch(/index nil|not formatted correctly|was taken/);
});

test('Adonis skips a module whose name does not begin with Server-', async () => {
  const adonis = systemNamed('Adonis');
  const scripts = adonis.scripts().map((script) => ({ ...script, path: [...script.path.slice(0, -1), 'Rankd'] }));
  await using scene = await openSystem(adonis, { serve, scripts });
  expect(scene.game.output).toEqual(['warn Unknown plugin type: Rankd']);
});

test('HD Admin runs a command with a "Player" argument once for each player, and not for absent ones', async () => {
  const hdAdmin = systemNamed('HD Admin');
  await using scene = await openSystem(hdAdmin, {
    serve,
    scripts: changed(hdAdmin, 'words = table.create(maxWords, "Word")', 'words = { "Player" }'),
  });
  expect(await scene.type('Bob', ';promote offline', 5)).toBeUndefined();
  await scene.type('Bob', ';promote %red', 5);
  expect(scene.game.output.length).toBe(3);
});

test('Cmdr rejects unknown keys, and runs nothing without a hook', async () => {
  const cmdr = systemNamed('Cmdr');
  const unknown = changed(cmdr, 'Group = "Rankd"', 'Usage = ""');
  await expect(openSystem(cmdr, { serve, scripts: unknown })).rejects.toThrow(/Unknown key.*Usage/);
  await using scene = await openSystem(cmdr, { serve, given: { hasNoHook: true } });
  expect(await scene.type('Bob', 'promote Ann')).toContain('no BeforeRun hook');
  expect(scene.game.requests).toEqual([]);
});
