import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { defineConfig } from 'tsup';

/** What package.json lists under `dependencies` is loaded from node_modules; all else is bundled. What is imported later is a file of its own. */
export default defineConfig({
  entry: ['src/main.ts'],
  format: 'esm',
  target: 'node22',
  clean: true,
  minifyWhitespace: true,
  metafile: true,
  // Packages in CommonJS ask for Node's modules by `require`, which an ES module does not have.
  banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
  onSuccess: async () => {
    writeLicenses('dist/metafile-esm.json');
    writeFileSync('dist/rankd.1', execFileSync(process.execPath, ['bin/rankd.js', 'man']));
  },
});

/** The licenses of the packages that went into the bundle, as they ask for. */
function writeLicenses(metafile: string): void {
  const { inputs } = JSON.parse(readFileSync(metafile, 'utf8')) as { inputs: Record<string, unknown> };
  const folders = Object.keys(inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}`;
  });
  writeFileSync('dist/third-party-licenses.txt', `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
  rmSync(metafile);
}
