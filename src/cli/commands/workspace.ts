import type { Plan, Workspace } from '../../core/model.ts';
import { changeWorkspace, showWorkspace, workspaceDocument } from '../../usecases/workspace/workspace.ts';
import type { Cli } from '../cli.ts';
import { command, commandGroup, oneOf } from '../command.ts';
import { confirm } from '../input/confirm.ts';
import { facts } from '../output/table.ts';

export const workspaceCommands = commandGroup({
  name: 'workspace',
  about: 'the workspace that all keys belong to',
  examples: ['rankd workspace show', 'rankd workspace suspend'],
  commands: [
    command({
      name: 'show',
      about: 'its id, plan and whether it is active',
      examples: ['rankd workspace show', 'rankd workspace show --json'],
      run: async (cli) => print(cli, await cli.withStore(showWorkspace)),
    }),
    command({
      name: 'suspend',
      about: 'refuse every key from the next request on, until it is resumed',
      examples: ['rankd workspace suspend', 'rankd workspace suspend -y'],
      run: async (cli) => {
        await confirm(cli, 'Suspend the workspace and refuse every key?');
        await change(cli, { active: false });
      },
    }),
    command({
      name: 'resume',
      about: 'accept keys again',
      examples: ['rankd workspace resume'],
      run: (cli) => change(cli, { active: true }),
    }),
    command({
      name: 'plan',
      about: 'accept all keys (top) or none (free), like the plans of hosted services; rankd itself is free',
      args: [oneOf('<plan>', 'the plan', ['top', 'free'])],
      examples: ['rankd workspace plan top', 'rankd workspace plan free -y'],
      run: async (cli, plan) => {
        if (plan === 'free') await confirm(cli, 'Leave the top plan and refuse every key?');
        await change(cli, { plan });
      },
    }),
  ],
});

async function change(cli: Cli, wanted: { active?: boolean; plan?: Plan }): Promise<void> {
  print(cli, await cli.withWrites((ports) => changeWorkspace(ports, { ...wanted, by: cli.by })));
}

function print(cli: Cli, workspace: Workspace): void {
  const document = workspaceDocument(workspace);
  cli.print({ workspace: document }, facts(document));
  if (!workspace.active) cli.say('Every key is refused: the workspace is suspended.\ntry: rankd workspace resume');
  if (workspace.plan !== 'top')
    cli.say('Every key is refused: the workspace is not on the top plan.\ntry: rankd workspace plan top');
}
