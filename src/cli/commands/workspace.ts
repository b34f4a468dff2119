import { Argument, type Command } from 'commander';
import type { Plan, Workspace } from '../../core/model.ts';
import { changeWorkspace, showWorkspace, workspaceDocument } from '../../usecases/workspace/workspace.ts';
import type { Cli } from '../cli.ts';
import { confirm } from '../input/confirm.ts';
import { examples } from '../output/help.ts';
import { facts } from '../output/table.ts';

export function workspaceCommands(program: Command, cli: Cli): void {
  const workspace = program
    .command('workspace')
    .description('the workspace that all keys belong to')
    .addHelpText('after', examples('rankd workspace show', 'rankd workspace suspend'));
  workspace
    .command('show')
    .description('its id, plan and whether it is active')
    .addHelpText('after', examples('rankd workspace show', 'rankd workspace show --json'))
    .action(() => show(cli));
  workspace
    .command('suspend')
    .description('refuse every key from the next request on, until it is resumed')
    .addHelpText('after', examples('rankd workspace suspend', 'rankd workspace suspend -y'))
    .action(() => suspend(cli));
  workspace
    .command('resume')
    .description('accept keys again')
    .addHelpText('after', examples('rankd workspace resume'))
    .action(() => change(cli, { active: true }));
  workspace
    .command('plan')
    .description(
      'let all keys be accepted (top) or none (free), as plans of hosted services do; rankd itself costs nothing',
    )
    .addArgument(new Argument('<plan>', 'the plan').choices(['top', 'free'] satisfies Plan[]))
    .addHelpText('after', examples('rankd workspace plan top', 'rankd workspace plan free -y'))
    .action((plan: Plan) => setPlan(cli, plan));
}

async function show(cli: Cli): Promise<void> {
  print(cli, await cli.withStore(showWorkspace));
}

async function suspend(cli: Cli): Promise<void> {
  await confirm(cli, 'Suspend the workspace, so that every key is refused?');
  await change(cli, { active: false });
}

async function setPlan(cli: Cli, plan: Plan): Promise<void> {
  if (plan === 'free') await confirm(cli, 'Leave the top plan, so that every key is refused?');
  await change(cli, { plan });
}

async function change(cli: Cli, wanted: { active?: boolean; plan?: Plan }): Promise<void> {
  print(cli, await cli.withStore((ports) => changeWorkspace(ports, { ...wanted, by: cli.by }), { isWriting: true }));
}

function print(cli: Cli, workspace: Workspace): void {
  const document = workspaceDocument(workspace);
  cli.print({ workspace: document }, facts(document));
  if (!workspace.active) cli.say('Every key is refused: the workspace is suspended.\ntry: rankd workspace resume');
  if (workspace.plan !== 'top')
    cli.say('Every key is refused: the workspace is not on the top plan.\ntry: rankd workspace plan top');
}
