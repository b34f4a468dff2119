import manifest from '../../package.json' with { type: 'json' };

/** rankd's own version, as in package.json. */
export const version: string = manifest.version;
