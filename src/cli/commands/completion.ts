import { Argument, type Command } from 'commander';
import type { Cli } from '../cli.ts';
import { type Shell, scripts } from '../completion/scripts.ts';
import { examples } from '../output/help.ts';

export function completionCommand(program: Command, cli: Cli): void {
  program
    .command('completion')
    .description('print the script that lets a shell complete commands, keys and places')
    .addArgument(new Argument('<shell>', 'the shell that will read it').choices(Object.keys(scripts)))
    .addHelpText(
      'after',
      examples(
        'mkdir -p ~/.local/share/bash-completion/completions && rankd completion bash > ~/.local/share/bash-completion/completions/rankd',
        'mkdir -p ~/.zsh/completions && rankd completion zsh > ~/.zsh/completions/_rankd',
        'mkdir -p ~/.config/fish/completions && rankd completion fish > ~/.config/fish/completions/rankd.fish',
        'rankd completion powershell >> $PROFILE',
      ),
    )
    .action((shell: Shell) => cli.printAsIs({ shell, script: scripts[shell] }, scripts[shell]));
}
