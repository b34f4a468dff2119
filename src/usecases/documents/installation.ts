import { version } from '../../base/version.ts';
import type { Role } from '../../core/model.ts';
import type { ExaminedGroup } from '../group/examine-group.ts';
import { roleTitleDocument } from './group.ts';

export function versionDocument(node: string) {
  return { version, node };
}

/** The result of init. Paths are absolute. */
export interface Initialized {
  file: string;
  credentialFile: string;
  groupId: number;
  /** `undefined` if Roblox was not called. */
  examined: Pick<ExaminedGroup, 'group'> | undefined;
  /** `undefined` if there is none. */
  ladder: readonly Role[] | undefined;
  keyId: string | undefined;
  publicUrl: string | undefined;
  /** The name of the new webhook; null if there is none. */
  webhook: string | null;
  models: readonly string[];
}

export function initDocument(made: Initialized) {
  const { file, credentialFile, groupId, examined, ladder, keyId, publicUrl, webhook, models } = made;
  return {
    file,
    credentialFile,
    group: examined?.group ?? { id: groupId },
    ladder: ladder?.map(roleTitleDocument) ?? null,
    key: keyId ?? null,
    publicUrl: publicUrl ?? null,
    webhook,
    models,
  };
}

/** The file from which the system starts the daemon: `written` is false if it was already up to date. */
export function serviceDocument(unit: string, isWritten: boolean) {
  return { unit, written: isWritten };
}

export function removedServiceDocument(unit: string) {
  return { unit, removed: true };
}
