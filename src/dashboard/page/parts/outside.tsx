import { Component, type ComponentChildren } from 'preact';
import { refusal } from '../api.ts';
import { Brand } from './icon.tsx';
import { Notice, Problem, Shell } from './notice.tsx';

export function LogIn() {
  return (
    <main class="alone">
      <section class="sheet">
        <Brand />
        <h1>You are not logged in</h1>
        {refusal.value !== undefined && <Problem error={refusal.value} />}
        <p>On the machine where rankd is running, run this in a shell:</p>
        <p>
          <Shell line="rankd dashboard" />
        </p>
        <p class="soft">It prints a link to this page. The link works once, within five minutes.</p>
      </section>
    </main>
  );
}

/** Shows an error in place of a view that could not be rendered, so that the rest of the page still works. */
export class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  static override getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div role="alert">
        <Notice tone="bad">
          <p>This view could not be shown: {error.message}</p>
          <p class="small">
            Reload the page. If that does not help, report it with the name and version of your browser.
          </p>
        </Notice>
      </div>
    );
  }
}
