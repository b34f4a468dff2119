import { version } from './base/version.ts';

/** Runs this process's command line. Handles `--version` without loading the CLI, because scripts call it often. */
export async function main(): Promise<void> {
  const line = process.argv.slice(2);
  if (line.length === 1 && ['-V', '--version'].includes(`${line[0]}`)) {
    process.stdout.on('error', outputFailed).write(`${version}\n`);
    return;
  }
  const { run } = await import('./cli/process-io.ts');
  await run(line, outputFailed);
}

function outputFailed({ code, message }: NodeJS.ErrnoException): never {
  if (code === 'EPIPE') process.exit(0); // `rankd … | head` closes the pipe early, which is not an error
  process.stderr.write(
    `error: The result could not be written: ${message}.\ntry: check where the output goes; its disk may be full\n`,
  );
  process.exit(1);
}
