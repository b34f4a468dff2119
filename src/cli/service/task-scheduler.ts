import { win32 } from 'node:path';
import type { Cli } from '../cli.ts';
import { systemFolder } from '../windows-access.ts';
import { missingConfigNote, type ServiceManager, serveLine, xmlText } from './service-manager.ts';

const task = 'rankd';

/**
 * A Windows task that starts rankd when its user logs on, in a window that shows the log. Elements:
 * https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema
 */
export const taskScheduler: ServiceManager = {
  kind: 'task',
  fileName: 'rankd-task.xml',
  folder: (cli) => cli.dataDir,
  isOwnFolder: true,
  encoding: 'utf16le', // the only encoding that schtasks reads and that represents every path
  text: (cli) => {
    const [node = '', ...args] = serveLine(cli);
    const user = xmlText(userOf(cli));
    return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>rankd, the rank service of a Roblox group</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <UserId>${user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>100</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>${xmlText(node)}</Command>
      <Arguments>${xmlText(args.map(argument).join(' '))}</Arguments>
      <WorkingDirectory>${xmlText(cli.dataDir)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`.replaceAll('\n', '\r\n');
  },
  register: (cli, file) => [
    {
      program: schtasks(cli),
      args: ['/Create', '/TN', task, '/XML', file, '/F'],
      done: `done: created the task ${task}`,
      onFailure: (command) =>
        `Windows could not create the task; run \`${command}\` yourself, in PowerShell as administrator`,
    },
  ],
  unregister: (cli) => [
    {
      program: schtasks(cli),
      args: ['/End', '/TN', task],
      done: 'done: the daemon is stopped',
      onFailure: () => 'Windows could not stop the daemon; if its window is still open, close it',
    },
    {
      program: schtasks(cli),
      args: ['/Delete', '/TN', task, '/F'],
      done: `done: removed the task ${task}`,
      onFailure: (command) =>
        `Windows could not remove the task; run \`${command}\` yourself, in PowerShell as administrator`,
    },
  ],
  next: async (cli) => `next:
  schtasks /Run /TN ${task}
This starts it now; otherwise it starts when you log on.
It runs in a window that shows its log. Closing the window stops it.${missingConfigNote(cli)}`,
};

function schtasks({ io }: Cli): string {
  return win32.join(systemFolder(io.env), 'schtasks.exe');
}

function userOf({ io: { env } }: Cli): string {
  return [env['USERDOMAIN'], env['USERNAME']].filter((part) => part).join('\\');
}

/** Quotes one word of a Windows command line. Windows paths can't contain quotes, so there are none to escape. */
function argument(word: string): string {
  return /[\s&]/.test(word) ? `"${word.replace(/\\+$/, '$&$&')}"` : word;
}
