import { readFileSync } from 'node:fs';

/** Loaded into a process before anything else: its wall clock is off by as many milliseconds as a file says, which a test writes. */
const file = process.env['TEST_CLOCK_OFFSET'] ?? '';
const rightNow = Date.now;
Date.now = () => rightNow() + Number(readFileSync(file, 'utf8'));
