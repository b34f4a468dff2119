import { openStore } from '../../../src/stores/open-store.ts';
import { storeContract } from '../../contracts/store-contract.ts';

storeContract('SqliteStore', (options) => openStore({ engine: 'sqlite', ...options }));
storeContract('SqliteStore of a daemon', (options) => openStore({ engine: 'sqlite', ...options, isServed: true }));
