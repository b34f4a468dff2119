import manifest from '../../package.json' with { type: 'json' };

/** rankd's version, from package.json. */
export const version: string = manifest.version;
