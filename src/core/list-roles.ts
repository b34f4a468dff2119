import { shorten } from '../base/text.ts';
import type { Role } from './model.ts';

/** The maximum size of a list in a message, in bytes of UTF-8. */
const maxBytes = 900;

/** e.g. `1 (Member), 10 (Officer)`: each role with its rank, or with another number. */
export function listRoles(roles: Role[], numberOf = ({ rank }: Role) => rank): string {
  return listWithin(roles.map((role) => `${numberOf(role)} (${shorten(role.name, 32)})`));
}

/** As many items as fit, then the number of omitted ones. */
function listWithin(items: string[]): string {
  let bytes = 0;
  const shown = items.filter((item) => {
    bytes += Buffer.byteLength(item) + 2;
    return bytes <= maxBytes;
  });
  const more = items.length - shown.length;
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '');
}
