import { resolve } from 'node:path';
import { crypto } from '../base/node-modules.ts';
import { isOnThisMachine, isSocket, type ServerAddress } from '../base/server-address.ts';
import { readSecretText, systemdCredential } from './secret-file.ts';
import { readStoreUrl } from './store-url.ts';

/** The variable that holds the password of the store itself. */
export const passwordVariable = 'RANKD_STORE_PASSWORD';

/** What the settings of the section `store` say, as text. */
export interface StoreSettings {
  url?: string | undefined;
  password_file?: string | undefined;
  ca_file?: string | undefined;
  tls?: string | undefined;
}

export interface StoreSources {
  settings: StoreSettings;
  env: Record<string, string | undefined>;
  /** True if the URL stands in the file, which is no place for a password. */
  isUrlInFile: boolean;
  /** The folder that the relative path of a setting starts from. */
  folderOf(setting: keyof StoreSettings): string;
}

export interface StoreChoice {
  /** `undefined`: SQLite in the data directory. */
  server?: ServerAddress;
  problems: Array<{ setting: keyof StoreSettings; text: string }>;
  warnings: string[];
}

/** Where the store is, from the settings and the secrets beside them; or what is wrong with them. No value is ever repeated. */
export function chooseStore({ settings, env, isUrlInFile, folderOf }: StoreSources): StoreChoice {
  const { url, password_file: passwordFile, ca_file: caFile, tls } = settings;
  if (url === undefined) return { problems: [], warnings: [] };
  const problem = (setting: keyof StoreSettings, text: string) => ({ problems: [{ setting, text }], warnings: [] });
  const address = readStoreUrl(url);
  if ('flaw' in address) return problem('url', address.flaw);
  if (address.password !== undefined && isUrlInFile) {
    return problem(
      'url',
      `holds a password; a secret never goes here: name its file in store.password_file or set ${passwordVariable}`,
    );
  }
  const password = passwordOf(address.password, {
    passwordFile: passwordFile && resolve(folderOf('password_file'), passwordFile),
    env,
  });
  if ('problem' in password) return problem('password_file', password.problem);
  const authority: ReturnType<typeof readAuthority> =
    caFile === undefined ? {} : readAuthority(resolve(folderOf('ca_file'), caFile));
  if ('problem' in authority) return problem('ca_file', authority.problem);
  const { text } = password;
  const isLocal = isSocket(address.host);
  if (isLocal && tls === 'verify') return problem('tls', 'is verify, but a socket has no TLS; leave it out');
  const isTls =
    tls === undefined ? !isOnThisMachine(address.host) || (caFile !== undefined && !isLocal) : tls === 'verify';
  return {
    server: { ...address, password: text === undefined ? undefined : () => text, tls: isTls && authority },
    problems: [],
    warnings: password.warning === undefined ? [] : [password.warning],
  };
}

/** From the first of these that is given: the variable, the URL, the systemd credential `store_password`, the file. */
function passwordOf(
  inUrl: string | undefined,
  { passwordFile, env }: { passwordFile: string | undefined; env: Record<string, string | undefined> },
): { text?: string; warning?: string } | { problem: string } {
  const given = env[passwordVariable] || inUrl;
  if (given) return { text: given };
  const credential = systemdCredential(env, 'store_password');
  const path = credential ?? passwordFile;
  if (path === undefined) return {};
  const read = readSecretText(path, { isCredential: credential !== undefined });
  return 'text' in read && read.text === '' ? { problem: `${path} is empty; it has to hold the password` } : read;
}

function readAuthority(path: string): { ca?: string } | { problem: string } {
  const read = readSecretText(path, { isCredential: true }); // it is no secret: everybody may read it
  if ('problem' in read) return read;
  const { text: ca } = read;
  try {
    new (crypto().X509Certificate)(ca);
    return { ca };
  } catch {
    return { problem: `${path} holds no certificate (PEM)` };
  }
}
