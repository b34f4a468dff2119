import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  hashKey,
  keyMode,
  maskKey,
  mintKey,
  newChangeId,
  newId,
  withoutKeys,
  withoutSecrets,
} from '../../src/core/api-key.ts';
import type { KeyMode } from '../../src/core/model.ts';

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const modes: KeyMode[] = ['live', 'test'];

/**
 * The checksums of these keys, and the hash below, come from Python's zlib and hashlib. The CRC-32 of the last key is
 * small, so its checksum is padded.
 */
const known = {
  live: 'rk_live_0123456789ABCDEFGHIJabcdefghij1pm3jd',
  test: 'rk_test_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz2g09V3',
  padded: 'rk_live_lWgKGXQyAep2ci9fVWm7sHKJBqg2HB000KGT',
};

/** Generates keys like minted ones, but reproducibly. */
const arbitraryKey = fc
  .record({
    mode: fc.constantFrom(...modes),
    random: fc.string({ unit: fc.constantFrom(...base62), minLength: 30, maxLength: 30 }),
  })
  .map(({ mode, random }) => withChecksum(`rk_${mode}_${random}`));

describe('a new key', () => {
  test.each(modes)(
    'of mode %s consists of rk_, its mode, 30 random base62 characters and a 6-character checksum: 44 in all',
    (mode) => {
      for (let round = 0; round < 100; round++) {
        const { secret } = mintKey(mode);
        expect(secret).toMatch(new RegExp(`^rk_${mode}_[0-9A-Za-z]{30}[0-9A-Za-z]{6}$`));
        expect(secret).toHaveLength(44);
        expect(secret).toBe(withChecksum(secret.slice(0, 38)));
        expect(keyMode(secret)).toBe(mode);
      }
    },
  );

  test('stores only the SHA-256 and a mask of the secret', () => {
    const { secret, stored } = mintKey('live');
    expect(stored).toEqual({
      hash: createHash('sha256').update(secret, 'utf8').digest('hex'),
      masked: maskKey(secret),
    });
  });

  test('is unique, and all base62 characters are equally likely in it', () => {
    const keys = Array.from({ length: 2_000 }, () => mintKey('live').secret);
    expect(new Set(keys).size).toBe(keys.length);
    const counts = new Map<string, number>();
    for (const character of keys.flatMap((key) => [...key.slice(8, 38)])) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    expect([...counts.keys()].sort().join('')).toBe(base62);
    // 60,000 draws from 62 characters: 968 each, with a standard deviation of 31. Seven deviations are allowed.
    for (const count of counts.values()) expect(Math.abs(count - 60_000 / 62)).toBeLessThan(7 * 31);
  });
});

describe('in any text', () => {
  const secret = known.live;
  const forms = {
    'in plain form': `!rank ${secret} x`,
    'without its prefix': secret.slice(8),
    'cut short': secret.slice(0, 30),
    'inside a longer run of characters': `x${secret.slice(8)}y`,
    'with its prefix in capitals': secret.replace('rk_live_', 'RK_LIVE_'),
    'percent-encoded': secret.replaceAll('_', '%5F'),
    'entirely percent-encoded': [...secret].map((c) => `%${c.charCodeAt(0).toString(16)}`).join(''),
    'in base64': Buffer.from(secret).toString('base64'),
    'in base64 after a scheme': Buffer.from(`Bearer ${secret}`).toString('base64url'),
    'split by a space': `${secret.slice(0, 20)} ${secret.slice(20)}`,
    'split by a line break': `${secret.slice(0, 30)}\n${secret.slice(30)}`,
  };
  test.each(Object.entries(forms))('a key %s is masked', (_form, text) => {
    const left = withoutKeys(text);
    for (let from = 12; from + 6 <= secret.length; from += 1) expect(left).not.toContain(secret.slice(from, from + 6));
    for (const run of left.match(/[\w+/-]{30,}/g) ?? []) {
      expect(Buffer.from(run, 'base64').toString('latin1')).not.toContain(secret.slice(8));
    }
  });

  test('the secret part of a Discord webhook address is masked', () => {
    const address = `https://discord.com/api/webhooks/1487000000000000857/${'aB3_-'.repeat(13)}aB3`;
    for (const form of [address, `${address}?wait=true`, address.replace('/api/', '/api/v10/')]) {
      expect(withoutSecrets(`There is no webhook named ${form}.`)).not.toContain('aB3');
    }
  });

  test('everything that contains no key is left unchanged', () => {
    for (const text of [
      'passed the exam 100%',
      maskKey(secret),
      'a'.repeat(40),
      'https://x.example/%7Euser',
      '50 % of them',
    ]) {
      expect(withoutKeys(text)).toBe(text);
    }
  });
});

describe('the checksum', () => {
  test('equals the one that other tools compute', () => {
    expect(keyMode(known.live)).toBe('live');
    expect(keyMode(known.test)).toBe('test');
    expect(keyMode(known.padded)).toBe('live');
  });

  test('detects any single changed character', () => {
    const replacement = fc.oneof(fc.constantFrom(...base62), fc.string({ unit: 'binary', minLength: 0, maxLength: 1 }));
    fc.assert(
      fc.property(arbitraryKey, fc.nat(43), replacement, (key, at, character) => {
        fc.pre(key[at] !== character);
        expect(keyMode(key)).toBeDefined();
        expect(keyMode(key.slice(0, at) + character + key.slice(at + 1))).toBeUndefined();
      }),
      { numRuns: 500 },
    );
  });

  test('detects two swapped adjacent characters, and one extra character', () => {
    fc.assert(
      fc.property(arbitraryKey, fc.nat(42), fc.constantFrom(...base62, '\n', ' '), (key, at, more) => {
        const swapped =
          key.slice(0, at) +
          key
            .slice(at, at + 2)
            .split('')
            .reverse()
            .join('') +
          key.slice(at + 2);
        if (swapped !== key) expect(keyMode(swapped)).toBeUndefined();
        expect(keyMode(key.slice(0, at) + more + key.slice(at))).toBeUndefined();
        expect(keyMode(key + more)).toBeUndefined();
      }),
    );
  });

  test('detects a test key disguised as a live one', () => {
    expect(keyMode(known.test.replace('test', 'live'))).toBeUndefined();
    expect(keyMode(known.live.replace('live', 'test'))).toBeUndefined();
  });

  test('rejects every text that is not a key', () => {
    expect(keyMode(withChecksum(`rk_prod_${'0'.repeat(30)}`))).toBeUndefined();
    expect(keyMode(withChecksum(`rk_live_${'0'.repeat(29)}`))).toBeUndefined();
    expect(keyMode(withChecksum(`rk_live_${'0'.repeat(31)}`))).toBeUndefined();
    expect(keyMode(withChecksum(`xrk_live_${'0'.repeat(30)}`))).toBeUndefined();
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(keyMode(text)).toBeUndefined();
        expect(keyMode(withChecksum(text))).toBeUndefined();
      }),
    );
  });
});

describe('a key', () => {
  test('is stored as its SHA-256', () => {
    expect(hashKey(known.live)).toBe('450615b967582657b27674be117f34de3a888b42e09fd46a7bbce9ecad421d39');
  });

  test('is shown as a mask of 14 of its 44 characters, of which 3 are random', () => {
    expect(maskKey(known.live)).toBe('rk_live_012…3jd');
    fc.assert(
      fc.property(arbitraryKey, (key) => {
        const [head = '', tail = '', ...more] = maskKey(key).split('…');
        expect(more).toEqual([]);
        expect(key.startsWith(head) && key.endsWith(tail)).toBe(true);
        expect(head.length + tail.length).toBeLessThanOrEqual(14);
        expect(head.length).toBeLessThanOrEqual('rk_live_'.length + 3);
        expect(tail.length).toBeLessThanOrEqual(6); // within the checksum
      }),
    );
  });
});

test('a public id consists of its prefix and 12 base62 characters, and is unique', () => {
  for (const prefix of ['key', 'undo', 'req'] as const) {
    expect(newId(prefix)).toMatch(new RegExp(`^${prefix}_[0-9A-Za-z]{12}$`));
  }
  expect(new Set(Array.from({ length: 1_000 }, () => newId('key'))).size).toBe(1_000);
});

test('change ids sort by the time of the request and are unique', () => {
  const ids = [0, 1, Date.UTC(2026, 0), Date.UTC(2026, 0) + 1, Date.UTC(2080, 0)].map(newChangeId);
  expect(ids).toEqual(ids.toSorted());
  for (const id of ids) expect(id).toMatch(/^chg_[0-9A-Za-z]{16}$/);
  expect(new Set(Array.from({ length: 1_000 }, () => newChangeId(0))).size).toBe(1_000);
});

function withChecksum(body: string): string {
  const digits = Array.from({ length: 6 }, (_, power) => base62[Math.floor(crc32(body) / 62 ** power) % 62]);
  return body + digits.reverse().join('');
}

/** Computes the CRC-32 of ISO 3309 bit by bit. */
function crc32(text: string): number {
  let register = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    register ^= byte;
    for (let bit = 0; bit < 8; bit++) register = (register >>> 1) ^ (register & 1 ? 0xedb88320 : 0);
  }
  return ~register >>> 0;
}
