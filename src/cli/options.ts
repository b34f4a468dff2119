/** The options that every command takes, anywhere on the line. */
export interface GlobalOptions {
  config?: string;
  dataDir?: string;
  json?: boolean;
  quiet?: boolean;
  verbose?: boolean;
  yes?: boolean;
}
