import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { browser as wanted } from './which-browser.ts';

/** Replaces the flags that @sparticuz/chromium recommends, because those disable features under test. */
const flags = ['--no-sandbox', '--headless=shell'];

export interface OpenBrowser extends AsyncDisposable {
  browser: Browser;
}

/** Starts a real browser. The Chromium from npm is first unpacked; closing the browser removes the files. */
export async function openBrowser(): Promise<OpenBrowser> {
  const { chromium } = await import('playwright-core').catch(() => {
    throw new Error('The browser for the tests is not installed. Run: npm run browser');
  });
  const folder = mkdtempSync(join(tmpdir(), 'rankd-browser-'));
  try {
    const browser = await chromium.launch({ args: flags, ...(await programIn(folder)) });
    const close = async () => {
      await browser.close();
      rmSync(folder, { recursive: true, force: true });
    };
    return { browser, [Symbol.asyncDispose]: close };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function programIn(folder: string): Promise<{ executablePath: string; env?: Record<string, string> }> {
  if (typeof wanted === 'object') return { executablePath: wanted.path };
  const unpack = fileURLToPath(new URL('unpack.ts', import.meta.url));
  const ours = { ...(process.env as Record<string, string>), TMPDIR: folder };
  const { stdout } = await promisify(execFile)(process.execPath, [unpack], { env: ours });
  const fonts = join(folder, 'fonts.conf');
  writeFileSync(fonts, fontsIn(folder));
  return {
    executablePath: stdout,
    env: { ...ours, LD_LIBRARY_PATH: join(folder, 'al2023/lib'), FONTCONFIG_FILE: fonts },
  };
}

/** Prefers the fonts of the npm package, so that the text looks the same on all machines. */
function fontsIn(folder: string): string {
  const alias = (family: string) =>
    `<alias binding="strong"><family>${family}</family><prefer><family>Open Sans</family></prefer></alias>`;
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}/fonts</dir><dir>/usr/share/fonts</dir><cachedir>${folder}/font-cache</cachedir>
  ${['system-ui', 'sans-serif'].map(alias).join('')}
</fontconfig>
`;
}
