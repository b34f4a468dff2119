import { expect, test } from 'vitest';
import { applied } from './scene.ts';
import { openSystem, type System, systemNamed } from './systems.ts';

// The loaders in `systems` simulate the admin systems in other tests: they refuse the same input as the real ones.

const serve = applied;

const changed = (system: System, from: string | RegExp, to: string) =>
  system.scripts().map((script) => ({ ...script, source: script.source?.replace(from, to) ?? '' }));

test('Basic Admin leaves out a plugin that returns four values, and never hears a name with a hyphen', async () => {
  const basicAdmin = systemNamed('Basic Admin Essentials');
  const four = `return function(data) return "promote", print, 0, ":" end`;
  const scripts = basicAdmin.scripts().map((script) => ({ ...script, source: four }));
  await using scene = await openSystem(basicAdmin, { serve, scripts });
  expect(await scene.type('Bob', ':promote ann', 5)).toBeUndefined();
  expect(await scene.type('Bob', ':set-rank ann', 5)).toBeUndefined();
});

test.each([
  ['another environment: no services in it', 'server.Settings.Prefix', 'game.Name'],
  ['the type of each field', 'Args = {', 'Dangerous = "yes", Args = {'],
  ['the levels that there are', '"Admins"', '"Kings"'],
  ['names that Adonis has', '"setgrouprank"', '"setrank"'],
])('Adonis: %s', async (_, from, to) => {
  const adonis = systemNamed('Adonis');
  const opened = openSystem(adonis, { serve, scripts: changed(adonis, from, to) });
  const output = await opened.then(({ game }) => game.output.join(), String);
  expect(output).toMatch(/index nil|not formatted correctly|was taken/);
});

test('Adonis passes over a module that is not named Server-', async () => {
  const adonis = systemNamed('Adonis');
  const scripts = adonis.scripts().map((script) => ({ ...script, path: [...script.path.slice(0, -1), 'Rankd'] }));
  await using scene = await openSystem(adonis, { serve, scripts });
  expect(scene.game.output).toEqual(['warn Unknown plugin type: Rankd']);
});

test('HD Admin runs a command for "Player" once for each, and not for who is not there', async () => {
  const hdAdmin = systemNamed('HD Admin');
  await using scene = await openSystem(hdAdmin, {
    serve,
    scripts: changed(hdAdmin, 'words = table.create(maxWords, "Word")', 'words = { "Player" }'),
  });
  expect(await scene.type('Bob', ';promote offline', 5)).toBeUndefined();
  await scene.type('Bob', ';promote %red', 5);
  expect(scene.game.output.length).toBe(3);
});

test('Cmdr takes no unknown key, and runs nothing without a hook', async () => {
  const cmdr = systemNamed('Cmdr');
  const unknown = changed(cmdr, 'Group = "Rankd"', 'Usage = ""');
  await expect(openSystem(cmdr, { serve, scripts: unknown })).rejects.toThrow(/Unknown key.*Usage/);
  await using scene = await openSystem(cmdr, { serve, given: { hasNoHook: true } });
  expect(await scene.type('Bob', 'promote Ann')).toContain('no BeforeRun hook');
  expect(scene.game.requests).toEqual([]);
});
