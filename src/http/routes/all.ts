import { nobloxServerRoutes } from '../compat/noblox-server.ts';
import { rankgunRoutes } from '../compat/rankgun.ts';
import type { Route } from '../route.ts';
import { changeRoutes } from './changes.ts';
import { discordRoutes } from './discord.ts';
import { readRoutes } from './reads.ts';
import { serviceRoutes } from './service.ts';
import { v1Routes } from './v1.ts';

/** Every route of the API, in the order of its descriptions. */
export const routes: readonly Route[] = [
  ...v1Routes,
  ...changeRoutes,
  ...readRoutes,
  ...serviceRoutes,
  ...rankgunRoutes,
  ...nobloxServerRoutes,
  ...discordRoutes,
];
