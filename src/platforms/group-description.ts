import * as z from 'zod';
import { isUserName } from '../core/user-ref.ts';

const id = z.int('must be a whole number from 1 to 2^53-1').min(1, 'must be 1 or more');
const name = z.string('must be text').min(1, 'must not be empty').max(100, 'must have at most 100 characters');
const rank = z.int('must be a rank from 0 to 255').min(0, 'must be 0 or more').max(255, 'must be 255 or less');

const role = z.strictObject(
  {
    id: id.min(256, 'must be above 255: smaller numbers mean ranks').optional(),
    name,
    rank,
    base: z.boolean('must be true or false').optional(),
  },
  'must be a role with a name and a rank, and optionally an id and base',
);

const member = z.strictObject(
  {
    id,
    name: z
      .string('must be text')
      .refine(isUserName, 'must be a user name: 3 to 20 letters, digits or underscores')
      .optional(),
    roles: z.array(z.int('must be a rank or a role id'), 'must be a list of ranks or role ids').default([]),
  },
  'must be a member with an id, and optionally roles and a name',
);

export const groupDescription = z.strictObject(
  {
    name,
    id,
    roles: z.array(role, 'must be a list of roles'),
    owner: id.optional(),
    acting_account: id,
    members: z.array(member, 'must be a list of members').default([]),
  },
  'must describe a group: name, id, roles, owner, acting_account, members',
);

/**
 * A group as a group file describes it. Members refer to roles by rank (up to 255) or id (above 255), and the file can
 * omit the roles that every group has.
 */
export type GroupDescription = z.output<typeof groupDescription>;
