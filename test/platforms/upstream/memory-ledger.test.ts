import { MemoryLedger } from '../../../src/platforms/upstream/memory-ledger.ts';
import { ledgerContract } from '../../contracts/ledger-contract.ts';

ledgerContract('MemoryLedger', async (clock) => {
  const ledger = new MemoryLedger(clock);
  return { ledger, other: ledger };
});
