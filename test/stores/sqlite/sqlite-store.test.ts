import { openStore } from '../../../src/stores/open-store.ts';
import { storeContract } from '../../contracts/store-contract.ts';

storeContract('SqliteStore', ({ dataDir, clock }) => openStore({ engine: 'sqlite', dataDir, clock }));
