import { RankdError } from '../../base/errors.ts';
import { roleTitle } from '../describe.ts';
import { heldRoles } from '../role-scheme.ts';
import type { PolicyRule } from './rule.ts';
import { isNamed } from './touched-roles.ts';

export const protectedMembers: PolicyRule = {
  name: 'protected members',
  refusal({ policy, request, scheme, plan }) {
    const held = heldRoles(scheme.roles, { userId: request.rankeeId, roleIds: plan.goal.from });
    const role = held.find((candidate) => isNamed(candidate, policy.protectedRoles));
    const why = policy.protectedMembers.includes(request.rankeeId)
      ? 'is on policy.protected_members'
      : role && `holds ${roleTitle(role)}, one of policy.protected_roles`;
    if (why === undefined) return undefined;
    return new RankdError('member_protected', `Member ${request.rankeeId} ${why} and can't be ranked.`, {
      hint: 'change policy.protected_members or policy.protected_roles in rankd.yaml',
    });
  },
};
