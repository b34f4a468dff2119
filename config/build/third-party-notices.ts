import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

/** The licenses of packages that do not include a license file. */
const missingLicenses: Record<string, string> = {
  'abstract-logging': mit('James Sumners <james.sumners@gmail.com>'),
  'pg-types': mit('2014 Brian M. Carlson'),
  pgpass: mit('2013-2016 Hannes Hörl'),
};

/**
 * Writes the licenses of all packages that the builds have bundled, as the licenses require. Does nothing until the
 * last of the builds has finished. Throws if a package has no license text.
 */
export function writeNotices(builds: string[]): void {
  const metafiles = builds.map((build) => `${build}/metafile-esm.json`);
  if (!metafiles.every((file) => existsSync(file))) return;
  const inputs = metafiles.flatMap((file) => Object.keys(JSON.parse(readFileSync(file, 'utf8')).inputs as object));
  const folders = inputs.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? missingLicenses[name] : readFileSync(`${folder}/${file}`, 'utf8').trim();
    if (!text)
      throw new Error(
        `${folder} has no license text; add it to missingLicenses in config/build/third-party-notices.ts.`,
      );
    return `${name} ${version} (${license})\n\n${text}`;
  });
  writeFileSync('dist/THIRD-PARTY-NOTICES', `${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`);
  for (const file of metafiles) rmSync(file);
}

function mit(holder: string): string {
  return `The MIT License (MIT)

Copyright (c) ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
}
