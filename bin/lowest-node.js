/**
 * The oldest Node.js that rankd runs on. A release writes it into `engines` in package.json. The repository has no `engines`, because
 * a clone brings its own Node.js and npm would warn for nothing.
 */
export const lowestNode = '22.14';
