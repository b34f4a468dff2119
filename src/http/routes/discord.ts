import { type Route, route } from '../route.ts';

/** Discord posts each slash command here. */
export const discordRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/discord/interactions',
    isServed: ({ discord }) => discord !== undefined,
    handler: (exchange) => exchange.api.answerDiscord(exchange),
  }),
];
