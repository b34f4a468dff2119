import { ledgerContract } from '../contracts/ledger-contract.ts';
import { MemoryLedger } from './memory-ledger.ts';

ledgerContract('MemoryLedger', async (clock) => {
  const ledger = new MemoryLedger(clock);
  return { ledger, other: ledger };
});
