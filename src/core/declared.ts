import { RankdError } from '../base/errors.ts';

/** `conflict` if the configuration declares it: what a file says is not changed behind its back. */
export function refusalOfDeclared(what: string, { declaredIn }: { declaredIn?: string }): RankdError | undefined {
  if (declaredIn === undefined) return undefined;
  return new RankdError('conflict', `${what} is declared in ${declaredIn}; edit it there.`, {
    hint: 'edit the file, then run `rankd reload`; `rankd workspace suspend` stops every key at once',
  });
}
