import { Component, type ComponentChildren } from 'preact';
import { Notice } from './notice.tsx';

/** Shows the error if the view inside could not be rendered; the rest of the page stays. */
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
          <p>This view could not be drawn: {error.message}</p>
          <p class="small">
            Reload the page. If that does not help, report it with the name and version of your browser.
          </p>
        </Notice>
      </div>
    );
  }
}
