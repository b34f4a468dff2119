/**
 * The oldest Node.js version that rankd supports. A release writes it into `engines` in package.json. The repository
 * itself has no `engines`, because a clone installs its own Node.js, so npm's warning would be wrong.
 */
export const lowestNode = '22.14';
