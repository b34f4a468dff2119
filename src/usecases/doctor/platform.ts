import { useProxy } from '../../base/connection-cause.ts';
import { isRankdError } from '../../base/errors.ts';
import { proxyFor, unusedProxyFor } from '../../base/outbound-proxy.ts';
import { counted } from '../../base/text.ts';
import type { Config, OpenCloudConfig } from '../../config/config.ts';
import { isOutsider, ownerRisk, reaches, standingWords } from '../../core/acting-account.ts';
import { refusalOfCredential } from '../../core/credential.ts';
import { listRoles, sharedRankOne, userTitle } from '../../core/describe.ts';
import type { ActingAccount, Role } from '../../core/model.ts';
import { policyFor } from '../../core/policy-names.ts';
import { givableRoles, isUnclear, type RoleScheme } from '../../core/role-scheme.ts';
import { privilegesAmong } from '../../core/rules/ranks.ts';
import type { Policy } from '../../core/rules/rule.ts';
import type { CallContext, Reachability } from '../../ports/index.ts';
import { baseRoleOmitted } from '../../ports/platform.ts';
import type { Ranking } from '../change/ranking.ts';
import { hintOf } from '../error-document.ts';
import { credentialWarnings, strayPolicy } from '../group/check-group.ts';
import { userNameIfKnown } from '../people/users.ts';
import type { DaemonStatus } from '../upkeep/status-document.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Reports unexpected behavior of Roblox that the running daemon has detected. */
export function trustFindings(daemon: DaemonStatus | undefined): Finding[] {
  const { stop, believesAnswers } = daemon?.platformTrust ?? { stop: null, believesAnswers: true };
  if (stop !== null)
    return [fail('behavior', stop, 'check the log, give members back the roles that they lost, then: rankd reload')];
  const text =
    'a later read contradicted a response from Roblox; rankd does not trust its responses to writes until a read agrees';
  return believesAnswers ? [] : [warn('behavior', text, 'see the outcome with `rankd history list`')];
}

export async function credentialFindings({ platform, clock }: Ranking, call: CallContext): Promise<Finding[]> {
  const credential = await platform.checkCredential(call);
  const refusal = refusalOfCredential(credential);
  if (refusal !== undefined) return [fail('credential', refusal.message, refusal.hint ?? '')];
  const warnings = await credentialWarnings({ platform, clock }, call);
  if (credential.state === 'unreported') {
    const fix = 'check on the Creator Dashboard that the key is active and allows this address';
    return warnings.map((text) => warn('credential', text, fix));
  }
  const fix =
    credential.canWrite === false
      ? 'check the scopes and the expiry of the key on the Creator Dashboard'
      : 'renew the key on the Creator Dashboard, put it into its file, then: rankd reload';
  const scope = credential.canWrite
    ? ', and may change roles in this group'
    : '; Roblox does not report whether it may change roles in this group: check that it has group:write under API Keys on the Creator Dashboard';
  return warnings.length === 0
    ? [ok('credential', `valid${scope}`)]
    : warnings.map((text) => warn('credential', text, fix));
}

export async function groupFindings(app: Ranking, call: CallContext): Promise<Finding[]> {
  const { name, id, memberCount, isLocked } = await app.platform.group(call);
  const about = [ok('group', `${name} (${id}), ${counted(memberCount, 'member')}`), ...(isLocked ? [locked] : [])];
  // The roles of a locked group may be unreadable, but the lock is already reported.
  const scheme = await app.group.scheme(call).catch((error) => {
    if (isLocked) return undefined;
    throw error;
  });
  if (scheme === undefined) return about;
  const acting = await app.group.acting(call);
  const isInReach = (role: Role) => reaches(acting, role);
  const custom = scheme.roles.filter(({ kind }) => kind === 'custom');
  return [
    ...about,
    account(acting, acting && (await userNameIfKnown(app, acting.userId, call))),
    ...permission(acting),
    ...(acting === undefined || isOutsider(acting) || acting.mayChangeRanks === false
      ? []
      : reach(
          givableRoles(scheme).filter(isInReach),
          custom.filter((role) => !isInReach(role)),
        )),
    ...omittedBase(app, scheme),
    ...rankOne(scheme),
    ...sharedRanks(scheme.ladder ?? custom),
    ...privileges(givableRoles(scheme).filter(isInReach), policyFor(scheme, app.policy)),
    ...scheme.misfits.map(({ message, fix }) => fail('roles', message, fix)),
    ...(await strayPolicy(app, call)).map((text) =>
      warn('policy', text, 'correct the setting; rankd group roles lists the roles'),
    ),
  ];
}

/**
 * Checks whether user names can still be looked up without a login. Roblox has announced that it will end such calls.
 */
export async function namesFindings(app: Ranking, call: CallContext): Promise<Finding[]> {
  const acting = await app.group.acting(call).catch(() => undefined);
  const name = acting && (await userNameIfKnown(app, acting.userId, call));
  if (name === undefined) return [];
  try {
    await app.platform.findUser(name, call);
    const text =
      'Roblox looks up user names without a login; if that ends, rankd needs the ids of users whom the history does not name';
    return [ok('names', text)];
  } catch (error) {
    if (!isRankdError(error, 'platform_rejected')) return []; // another check reports an unreachable host
    const text = `${error.message} Until name lookups work again, rankd finds by name only users in its history`;
    const fix =
      'give user ids in commands, on the page and on Discord; games that use the Rankd module send ids anyway';
    return [warn('names', text, fix)];
  }
}

function omittedBase({ platform }: Ranking, { roles }: RoleScheme): Finding[] {
  if (!platform.surprises().some(({ what }) => what === baseRoleOmitted)) return [];
  const base = roles.find(({ kind }) => kind === 'base');
  const text = `Roblox's list omits the role that every member holds (id ${base?.id}); rankd takes it from the public list of roles`;
  return [warn('roles', text, 'nothing to do, unless changes to members without another role are refused')];
}

const locked = fail(
  'group',
  'Roblox has locked the group: nothing in it can be changed',
  "ask the group's owner to contact Roblox support",
);

function account(acting: ActingAccount | undefined, name: string | undefined): Finding {
  const what = 'acting account';
  if (acting === undefined)
    return warn(
      what,
      'Roblox does not report the acting account or the ranks that it can give',
      'once Roblox reports them, `rankd group show` lists both',
    );
  const found = `${userTitle(acting.userId, name)}, ${standingWords(acting)}`;
  if (isOutsider(acting)) return fail(what, found, 'add that account to the group, and give it a role there');
  const risk = ownerRisk(acting);
  return risk === undefined ? ok(what, found) : warn(what, `${found}: ${risk.text}`, risk.fix);
}

function permission(acting: ActingAccount | undefined): Finding[] {
  if (acting?.mayChangeRanks === undefined) return []; // Roblox does not report it for every key
  if (acting.mayChangeRanks) return [ok('permission', 'the acting account may manage the ranks of members below it')];
  const fix = `give the role of user ${acting.userId} the permission "Manage lower-ranked member ranks" in the group's settings`;
  return [fail('permission', 'no role of the acting account lets it change ranks', fix)];
}

/**
 * Reports which keys are allowed to give roles with power over the group, and for which roles Roblox reports no
 * permissions.
 */
function privileges(reached: Role[], { privilegedRoles }: Policy): Finding[] {
  const check = 'privileged';
  const { privileged, unreported } = privilegesAmong(reached, privilegedRoles);
  const isOpen = privilegedRoles === 'allow';
  const found =
    privileged.length === 0
      ? []
      : isOpen
        ? [
            warn(
              check,
              `every key may give and take ${listRoles(privileged)}`,
              'set policy.privileged_roles to operator',
            ),
          ]
        : [ok(check, `only the operator, and keys made with --privileged, may give and take ${listRoles(privileged)}`)];
  if (unreported.length === 0 || isOpen || Array.isArray(privilegedRoles)) return found;
  const text = `Roblox does not report the permissions of these roles: ${listRoles(unreported)}`;
  const fix =
    'in rankd.yaml, list those that may rank, remove or accept members: policy.privileged_roles: [RANK, ...]; if none may, set an empty list';
  return [...found, warn(check, text, fix)];
}

function reach(within: Role[], beyond: Role[]): Finding[] {
  const fix = "give the acting account a role above the ranks that rankd should change, in the group's settings";
  if (within.every(({ kind }) => kind === 'base')) return [fail('reach', 'the acting account can give no rank', fix)];
  const most = ok('reach', `the acting account can give ${listRoles(within)}`);
  if (beyond.length === 0) return [most];
  return [most, ok('reach', `the acting account can't change members who hold ${listRoles(beyond)}`)];
}

/** Reports the meaning of rank 1, which the base role of an old group shares with a custom role. */
function rankOne(scheme: RoleScheme): Finding[] {
  const unclear = scheme.roles.filter(isUnclear);
  if (unclear.length > 0) {
    const text = `Roblox does not report which of these roles every member holds: ${listRoles(unclear)}; rankd refuses changes that depend on it`;
    return [warn('ranks', text, 'check that platform.legacy_base_url can be reached from this machine')];
  }
  const text = sharedRankOne(scheme);
  return text === undefined ? [] : [ok('ranks', text)];
}

/**
 * Warns about ranks that several roles share. rankd refuses them as ambiguous, so games must send the role id instead.
 */
function sharedRanks(roles: Role[]): Finding[] {
  const shared = roles.filter(({ id, rank }) => roles.some((other) => other.id !== id && other.rank === rank));
  if (shared.length === 0) return [];
  const named = shared.map(({ rank, id, name }) => `${rank} ${name} (role id ${id})`).join(', ');
  return [warn('ranks', `these roles share a rank number: ${named}`, 'send the role id, or give them different ranks')];
}

/**
 * Warns about unreachable Roblox hosts other than Open Cloud's. Without those hosts, ranks can still be changed by user
 * id.
 */
export function reachFindings(unreached: Reachability['unreached'], baseUrl: string): Finding[] {
  return unreached
    .filter(({ host }) => host !== new URL(baseUrl).host)
    .map(({ host, error }) => warn('platform', `${host}: ${error.message}`, hintOf(error)));
}

/**
 * Reports the proxy that rankd uses. Warns if rankd ignores a proxy in the environment, because many networks allow
 * calls to Roblox only through their proxy.
 */
export function proxyFindings({
  proxy,
  baseUrl,
  legacyBaseUrl,
  usersBaseUrl,
  developBaseUrl,
}: OpenCloudConfig): Finding[] {
  const hosts = [baseUrl, legacyBaseUrl, usersBaseUrl, developBaseUrl];
  const [unused] = hosts.flatMap((url) => unusedProxyFor(url, proxy) ?? []);
  if (unused !== undefined)
    return [warn('proxy', `${unused.variable} is set, but rankd connects to Roblox without it`, useProxy(unused))];
  const [used] = hosts.flatMap((url) => proxyFor(url, proxy) ?? []);
  return used === undefined
    ? []
    : [ok('proxy', `rankd reaches Roblox through the proxy in ${used}; webhooks do not use it`)];
}

export function platformFindings(platform: Config['platform']): Finding[] {
  if (platform.kind === 'open-cloud') return [];
  return [warn('platform', 'the group is simulated: nothing touches Roblox', 'rankd init')];
}
