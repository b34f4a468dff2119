import { shorten } from '../base/text.ts';
import type { Role } from './model.ts';

/** How many bytes of UTF-8 a list may take in a message. */
const maxBytes = 900;

/** e.g. `1 (Member), 10 (Officer)`: each role with its rank, or with another number. */
export function listRoles(roles: Role[], numberOf = ({ rank }: Role) => rank): string {
  return listWithin(roles.map((role) => `${numberOf(role)} (${shorten(role.name, 32)})`));
}

/** As many items as there is room for, then how many were left out. */
function listWithin(items: string[]): string {
  let bytes = 0;
  const shown = items.filter((item) => {
    bytes += Buffer.byteLength(item) + 2;
    return bytes <= maxBytes;
  });
  const more = items.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
