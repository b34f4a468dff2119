import type { Clock } from '../../ports/index.ts';
import { RateGate } from './rate-gate.ts';

/**
 * The operations rankd uses, with the calls per minute that the owner of a key has for each, over all keys (Open Cloud's
 * OpenAPI document, `x-roblox-rate-limits`). Introspection and the public role list have no documented limit.
 */
const operations = {
  group: { name: 'reading the group', limit: 150 },
  roles: { name: 'reading roles', limit: 300 },
  memberships: { name: 'reading members', limit: 300 },
  assign: { name: 'giving roles', limit: 300 },
  unassign: { name: 'taking roles', limit: 300 },
  introspect: { name: 'checking the key', limit: 60 },
  publicRoles: { name: 'reading the public role list', limit: 60 },
};

export type Operation = keyof typeof operations;

/** A gate for each operation: their budgets are separate. */
export function openGates(clock: Clock): Record<Operation, RateGate> {
  const gates = Object.entries(operations).map(
    ([name, options]) => [name, new RateGate({ ...options, clock })] as const,
  );
  return Object.fromEntries(gates) as Record<Operation, RateGate>;
}
