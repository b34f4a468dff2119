import { createRequire, syncBuiltinESMExports } from 'node:module';

/** Preloaded for pictures: the process's user is ann, and its machine is called pc. */
const os = createRequire(import.meta.url)('node:os') as typeof import('node:os');
const user = os.userInfo();
os.userInfo = (() => ({ ...user, username: 'ann' })) as typeof os.userInfo;
os.hostname = () => 'pc';
syncBuiltinESMExports();
