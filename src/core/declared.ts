import { RankdError } from '../base/errors.ts';

/** The refusal to change a declared record: otherwise, the file would no longer match the store. */
export function refusalOfDeclared(
  what: string,
  { declaredIn }: { declaredIn?: string },
  hint = 'edit the file, then run `rankd reload`; `rankd workspace suspend` stops every key at once',
): RankdError | undefined {
  if (declaredIn === undefined) return undefined;
  return new RankdError('conflict', `${what} is declared in ${declaredIn}; edit it there.`, { hint });
}
