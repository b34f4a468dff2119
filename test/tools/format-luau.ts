import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Config, formatCode, LuaVersion, OutputVerification } from '@johnnymorganz/stylua';

/**
 * Part of `npm run lint` and `npm run format`: checks that every Luau file is formatted as StyLua would format it. With
 * --write, formats the files.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));

/** The paths of all Luau files, relative to the repository's root. */
export const luauFiles: readonly string[] = ['src/game', 'test/game'].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.luau'))
    .map((file) => `${folder}/${file}`)
    .sort(),
);

/** Returns the file's text before and after formatting. Throws if it is not valid Luau. */
export function formatted(file: string): { now: string; wanted: string } {
  const now = readFileSync(root + file, 'utf8');
  const config = Config.new(); // new for each call, because `formatCode` consumes it
  config.syntax = LuaVersion.Luau;
  return { now, wanted: formatCode(now, config, undefined, OutputVerification.None) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const file of luauFiles) {
    const { now, wanted } = formatted(file);
    if (now === wanted) continue;
    if (process.argv.includes('--write')) writeFileSync(root + file, wanted);
    else {
      process.stderr.write(`${file} is not formatted by StyLua: npm run format\n`);
      process.exitCode = 1;
    }
  }
}
