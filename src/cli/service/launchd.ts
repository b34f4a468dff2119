import { missingConfigNote, type ServiceManager, serveLine, xmlText } from './service-manager.ts';

const label = 'rankd';

/** A macOS agent, which runs while its user is logged in. Keys: launchd.plist(5). */
export const launchd: ServiceManager = {
  kind: 'agent',
  fileName: `${label}.plist`,
  folder: ({ io }) => io.system.path.join(io.home, 'Library', 'LaunchAgents'),
  isOwnFolder: true,
  encoding: 'utf8',
  text: (cli) => {
    const strings = (words: string[]) => words.map((word) => `    <string>${xmlText(word)}</string>`).join('\n');
    const log = xmlText(logOf(cli));
    return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${strings(serveLine(cli))}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ThrottleInterval</key>
  <integer>30</integer>
  <key>Umask</key>
  <integer>63</integer>
  <key>StandardOutPath</key>
  <string>${log}</string>
  <key>StandardErrorPath</key>
  <string>${log}</string>
</dict>
</plist>
`;
  },
  register: () => [],
  unregister: (cli) => [
    {
      program: 'launchctl',
      args: ['bootout', `${domainOf(cli)}/${label}`],
      done: 'done: the agent is stopped',
      onFailure: (command) => `launchd could not stop the daemon; if it is still running, run \`${command}\` yourself`,
    },
  ],
  next: async (cli, file) => {
    const start = ['launchctl', 'bootstrap', domainOf(cli), file].map(cli.io.system.quote).join(' ');
    return `next:
  ${start}
This starts it now; otherwise it starts when you log in.
Its log is ${logOf(cli)}.${missingConfigNote(cli)}`;
  },
};

function logOf({ io }: { io: { home: string; system: { path: { join(...parts: string[]): string } } } }): string {
  return io.system.path.join(io.home, 'Library', 'Logs', 'rankd.log');
}

function domainOf({ io }: { io: { user: { uid: number } | undefined } }): string {
  return `gui/${io.user?.uid ?? 501}`;
}
