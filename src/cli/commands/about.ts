import { version } from '../../base/version.ts';
import { command, oneOf } from '../command.ts';
import { type Shell, scripts } from '../completion/scripts.ts';
import { examplesOf } from '../output/help.ts';
import { manPage } from '../output/man-page.ts';

export const versionCommand = command({
  name: 'version',
  about: 'print the version of rankd and of Node.js',
  examples: ['rankd version', 'rankd version --json'],
  run: (cli) => {
    const node = cli.io.nodeVersion;
    cli.print({ version, node }, `rankd ${version} (Node.js ${node})`);
  },
});

export const manCommand = command({
  name: 'man',
  about: 'print the manual page',
  examples: [
    'rankd man',
    'rankd man | man -l -',
    'mkdir -p ~/.local/share/man/man1 && rankd man > ~/.local/share/man/man1/rankd.1',
  ],
  run: (cli) => {
    const page = manPage(cli.program, examplesOf);
    cli.printAsIs({ page }, page);
  },
});

export const openapiCommand = command({
  name: 'openapi',
  about: 'print the description of the HTTP API (OpenAPI 3.1), as the daemon serves it at /openapi.json',
  examples: ['rankd openapi > openapi.json'],
  run: async (cli) => {
    const [{ openApiDocument }, { routes }] = await Promise.all([
      import('../../http/openapi/document.ts'),
      import('../../http/routes/all.ts'),
    ]);
    cli.io.stdout(`${JSON.stringify(openApiDocument(routes), undefined, 2)}\n`);
  },
});

export const completionCommand = command({
  name: 'completion',
  about: 'print the script that lets a shell complete commands, keys and places',
  args: [oneOf('<shell>', 'the shell that will read it', Object.keys(scripts) as Shell[])],
  help: `
zsh reads the script only if ~/.zshrc has this line: fpath=(~/.zsh/completions $fpath); autoload -U compinit; compinit
PowerShell needs the folder of its profile: New-Item -ItemType Directory -Force (Split-Path $PROFILE)
On Windows, PowerShell must also be allowed to run its profile: Set-ExecutionPolicy -Scope CurrentUser RemoteSigned
`,
  examples: [
    'mkdir -p ~/.local/share/bash-completion/completions && rankd completion bash > ~/.local/share/bash-completion/completions/rankd',
    'mkdir -p ~/.zsh/completions && rankd completion zsh > ~/.zsh/completions/_rankd',
    'mkdir -p ~/.config/fish/completions && rankd completion fish > ~/.config/fish/completions/rankd.fish',
    'rankd completion powershell >> $PROFILE',
  ],
  run: (cli, shell) => cli.printAsIs({ shell, script: scripts[shell] }, scripts[shell]),
});
