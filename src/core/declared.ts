import { RankdError } from '../base/errors.ts';

/** Throws `conflict` where the configuration declares it: what a file says is not changed behind its back. */
export function refuseDeclared(what: string, { declaredIn }: { declaredIn?: string }): void {
  if (declaredIn === undefined) return;
  throw new RankdError('conflict', `${what} is declared in ${declaredIn}; edit it there.`, {
    hint: 'edit the file, then run `rankd reload`; `rankd workspace suspend` stops every key at once',
  });
}
