import * as z from 'zod';
import { eventGroups, flawOfEvents } from '../core/webhooks/event-types.ts';
import { isWebhookName } from '../core/webhooks/webhook.ts';
import { filePath, oneOf } from './values.ts';

const nameError = '1 to 40 of the characters a-z, 0-9 and -';
const eventError = `${eventGroups.join(', ')}, or the name of a single event (docs/webhooks.md)`;
const mentionError = 'the id of a Discord role, in quotes, such as "1482005551234567890"';

/** One entry of `webhooks.targets`. */
export const declaredWebhook = z.strictObject(
  {
    name: z.string({ error: nameError }).refine(isWebhookName, { error: nameError }).describe('What commands call it.'),
    url_file: filePath().describe('File with the address, which is as good as a password.'),
    secret_file: filePath()
      .optional()
      .describe('File with the secret that signs what a program is sent: whsec_ and base64. Discord needs none.'),
    kind: oneOf(['discord', 'standard'])
      .optional()
      .describe('What the target takes; without it, as the address tells.'),
    events: z
      .array(
        z.string({ error: eventError }).refine((name) => flawOfEvents(name) === undefined, { error: eventError }),
        {
          error: `a list of ${eventError}`,
        },
      )
      .optional()
      .describe('What it is told; without it, changes and alarms in Discord, and all for a program.'),
    mention: z
      .string({ error: mentionError })
      .regex(/^\d{5,25}$/, { error: mentionError })
      .optional()
      .describe('Id of the Discord role that alarms mention, in quotes.'),
    for_games: z
      .boolean({ error: 'true or false' })
      .default(false)
      .describe('Whether a game may choose it by its address; without events, it gets no others then.'),
  },
  { error: 'a mapping with name and url_file' },
);

export type DeclaredWebhookSettings = z.output<typeof declaredWebhook>;
