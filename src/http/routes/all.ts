import { nobloxServerRoutes } from '../compat/noblox-server.ts';
import { rankgunRoutes } from '../compat/rankgun.ts';
import { type Route, route } from '../route.ts';
import { changeRoutes } from './changes.ts';
import { robloxWebhook } from './erasure.ts';
import { readRoutes } from './reads.ts';
import { serviceRoutes } from './service.ts';
import { v1Routes } from './v1.ts';

/** Discord posts every interaction here, such as a slash command. */
const interactions = route({
  method: 'POST',
  path: '/discord/interactions',
  isServed: ({ discord }) => discord !== undefined,
  handler: (exchange) => exchange.api.answerDiscord(exchange),
});

/** Every API route, in the order in which the documentation lists them. */
export const routes: readonly Route[] = [
  ...v1Routes,
  ...changeRoutes,
  ...readRoutes,
  ...serviceRoutes,
  ...rankgunRoutes,
  ...nobloxServerRoutes,
  interactions,
  robloxWebhook,
];
