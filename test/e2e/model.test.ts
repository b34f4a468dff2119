import fc from 'fast-check';
import { test } from 'vitest';
import { heldIn, modelCommands, reconcile } from '../tools/model-commands.ts';
import { ModelWorld } from '../tools/model-world.ts';

test('responses, history and group agree after random actions of callers, operators and Roblox, and random restarts', async () => {
  const property = fc.asyncProperty(fc.boolean(), modelCommands, async (hasLadder, commands) => {
    await using world = await ModelWorld.open(hasLadder);
    const model = { held: heldIn(world), isPredictable: true, hasLadder, firstAnswers: new Map() };
    await fc.asyncModelRun(() => ({ model, real: world }), commands);
    await reconcile(model, world);
  });
  await fc.assert(property, { numRuns: 20, interruptAfterTimeLimit: 15_000, endOnFailure: true });
}, 60_000);
