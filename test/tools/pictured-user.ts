import { createRequire, syncBuiltinESMExports } from 'node:module';

/** Preloaded for pictures and recordings: sets the user name to ann and the host name to pc. */
const os = createRequire(import.meta.url)('node:os') as typeof import('node:os');
const user = os.userInfo();
os.userInfo = (() => ({ ...user, username: 'ann' })) as typeof os.userInfo;
os.hostname = () => 'pc';
syncBuiltinESMExports();
