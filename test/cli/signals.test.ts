import { EventEmitter } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { type System, systems } from '../../src/base/system.ts';
import { Signals } from '../../src/cli/signals.ts';

const { windows, linux, macos } = systems;

/** Creates a fake process on the given system, and the handler of its signals. */
function processOn(system: System, { isTerminalGone = false } = {}) {
  const exit = vi.fn<(code: number) => void>();
  const process = Object.assign(new EventEmitter(), { exit });
  return { process, exit, signals: new Signals(process, system, () => isTerminalGone) };
}

describe.each(['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP'])(
  'on Windows, %s (Ctrl-C, Ctrl-Break or a closed console)',
  (signal) => {
    test('stops a running daemon, without a reload', async () => {
      const { process, exit, signals } = processOn(windows);
      const reload = vi.fn();
      signals.onReload(reload);
      const stopped = signals.stop;
      expect(process.emit(signal)).toBe(true); // without a listener, Windows ends the process
      expect(await stopped).toBe(signal);
      expect([signals.isStopping, reload.mock.calls, exit.mock.calls]).toEqual([true, [], []]);
    });

    test('ends a command that does not wait for it', () => {
      const { process, exit } = processOn(windows);
      process.emit(signal);
      expect(exit.mock.calls).toEqual([[signal === 'SIGHUP' ? 129 : 130]]);
    });
  },
);

test('on Windows, a second Ctrl-C ends a daemon at once', () => {
  const { process, exit, signals } = processOn(windows);
  void signals.stop;
  process.emit('SIGINT');
  expect(exit).not.toHaveBeenCalled();
  process.emit('SIGINT');
  expect(exit.mock.calls).toEqual([[130]]);
});

test.each([linux, macos])(
  'on $name, SIGHUP reloads a daemon, and stops one whose terminal was closed',
  async (system) => {
    const reload = vi.fn();
    const attached = processOn(system);
    attached.signals.onReload(reload);
    void attached.signals.stop;
    attached.process.emit('SIGHUP');
    expect([reload.mock.calls.length, attached.signals.isStopping]).toEqual([1, false]);

    const detached = processOn(system, { isTerminalGone: true });
    detached.signals.onReload(reload);
    const stopped = detached.signals.stop;
    detached.process.emit('SIGHUP');
    expect(await stopped).toBe('SIGHUP');
    expect(reload).toHaveBeenCalledTimes(1);
  },
);
