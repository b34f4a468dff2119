import { refusal } from '../api.ts';
import { Brand } from './icon.tsx';
import { Problem, Shell } from './notice.tsx';

/** Explains how to log in. */
export function LogIn() {
  return (
    <main class="alone">
      <section class="sheet">
        <Brand />
        <h1>You are not logged in</h1>
        {refusal.value !== undefined && <Problem error={refusal.value} />}
        <p>In a shell on the machine that rankd runs on, run</p>
        <p>
          <Shell line="rankd dashboard" />
        </p>
        <p class="soft">It prints a link that leads here. The link works once, for five minutes.</p>
      </section>
    </main>
  );
}
