/**
 * The oldest Node.js version that rankd supports. The release workflow writes it into `engines` in package.json. The
 * repository itself has no `engines`: a clone runs rankd on its own Node.js, so npm's warning would be wrong.
 */
export const lowestNode = '22.14';
