import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatted, luauFiles } from '../tools/format-luau.ts';

const shipped = luauFiles.filter((file) => file.startsWith('src/'));

describe('the Luau sources', () => {
  test.each(luauFiles)('%s is valid Luau in StyLua’s format', (file) => {
    const { now, wanted } = formatted(file);
    expect(now).toBe(wanted);
  });

  test.each(shipped)('%s is strict and calls nothing that Roblox has deprecated', (file) => {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    expect(text.startsWith('--!strict\n')).toBe(true);
    expect(text).not.toMatch(
      /(?<![\w.:])(wait|spawn|delay)\(|:(GetRankInGroup|GetRoleInGroup|IsInGroup|FindPlayer)\w*\(/,
    );
  });
});
