import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { homeFolder } from '../../src/config/locate.ts';

test('the folder of a user is what HOME says, else that of the account, else the root', () => {
  const nobody = () => {
    throw new Error('uv_os_get_passwd returned ENOENT'); // as Node does for a user id without an account
  };
  expect(homeFolder({ HOME: '/home/ann' }, { account: nobody })).toBe('/home/ann');
  expect(homeFolder({ HOME: '' })).toBe(userInfo().homedir);
  expect(homeFolder({}, { account: nobody })).toBe('/');
});
