import type { ComponentChildren } from 'preact';
import type { Setup as SetupFacts } from '../documents.ts';
import { setup } from '../live.ts';
import { Chip } from '../parts/chip.tsx';
import { Icon } from '../parts/icon.tsx';
import { Hint, Shell } from '../parts/notice.tsx';
import { addressOf } from '../route.ts';
import { LiveView } from './view.tsx';

/** Shows the steps for setting up the real group, and any problems that rankd found. */
export function Setup() {
  return (
    <LiveView
      title="Set-up"
      live={setup}
      lead={({ isReal }) => (isReal ? '' : 'This group is simulated: try everything, nothing touches Roblox.')}
    >
      {(facts) => (
        <>
          <Problems findings={facts.findings} />
          <Steps facts={facts} />
        </>
      )}
    </LiveView>
  );
}

function Problems({ findings }: Pick<SetupFacts, 'findings'>) {
  const found = findings.filter(({ grade }) => grade !== 'ok');
  return (
    <section class="sheet" aria-label="Problems">
      {found.length === 0 ? (
        <p class="unlimited soft">
          <Icon name="yes" /> No problems were found. <Shell line="rankd doctor" /> also checks the machine.
        </p>
      ) : (
        <ul class="findings">
          {found.map(({ check, grade, text, fix }) => (
            <li key={check + text}>
              <Chip tone={grade === 'FAIL' ? 'bad' : 'warn'} icon="warning">
                {check}
              </Chip>
              <div>
                <p class="name">{text}</p>
                {fix !== null && (
                  <p class="small soft">
                    To fix it: <Hint text={fix} />
                  </p>
                )}
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** A part of a step. `isDone` is null if rankd can't detect whether it is done. */
type Part = [isDone: boolean | null, words: ComponentChildren];

function Steps({ facts }: { facts: SetupFacts }) {
  const { isReal, isCredentialAccepted, hasAddress } = facts;
  // a simulated key and its requests do not count as progress in setting up the real group
  const hasKey = isReal && facts.hasKey;
  const hasPlace = isReal && facts.hasPlace;
  const isUsed = isReal && facts.isUsed;
  const steps: Array<{ title: string; parts: Part[] }> = [
    {
      title: 'An account and a key on Roblox',
      parts: [
        [isReal || null, 'Make an account for rankd alone, and join the group with it.'],
        [
          isReal || null,
          'Give it a role with the permission Manage lower-ranked member ranks, just above the ranks to change.',
        ],
        [isCredentialAccepted || (isReal ? false : null), 'Make an Open Cloud API key with the scope group:write.'],
      ],
    },
    {
      title: 'An address for your games',
      parts: [
        [
          hasAddress,
          <>
            Give rankd a public address with TLS, and set it as <code>server.public_url</code>.
          </>,
        ],
      ],
    },
    {
      title: 'rankd on the real group',
      parts: [
        [
          isReal,
          <>
            Run <Shell line="rankd init" />, which asks for the group and the key and checks both.
          </>,
        ],
        [
          isReal,
          <>
            Restart rankd, or run <Shell line="rankd reload" />.
          </>,
        ],
      ],
    },
    {
      title: 'Your game',
      parts: [
        [
          hasKey,
          <>
            <a href={addressOf('keys')}>Create a key</a> for the game, and store it under Secrets on the Creator
            Dashboard.
          </>,
        ],
        [hasPlace, 'Add the place of the game to the key.'],
        [
          isUsed || null,
          <>
            Allow HTTP requests in Studio, insert the model that <Shell line="rankd game write" /> writes, and publish.
          </>,
        ],
        [isUsed, 'Join the game, so that it sends rankd a request.'],
      ],
    },
  ];
  return (
    <ol class="setup">
      {steps.map(({ title, parts }, index) => (
        <li key={title} class="sheet">
          <h2>
            {index + 1}. {title}
          </h2>
          <ul>
            {parts.map(([isDone, words], part) => (
              <li key={`${part}`} class={isDone === true ? 'soft' : ''}>
                <span class={isDone === true ? 'done' : 'open'}>
                  <Icon name={isDone === true ? 'yes' : 'circle'} />
                  <span class="unseen">
                    {isDone === true ? 'done:' : isDone === null ? 'to do or unknown:' : 'to do:'}
                  </span>
                </span>
                <span>{words}</span>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ol>
  );
}
