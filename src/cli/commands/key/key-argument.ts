/** The argument that names one key. */
export const keyArgument = ['<key>', 'id or name of the key'] as const;
