import type { YAMLError } from 'yaml';

/** A flaw of the document in our own words. The parser's words can quote the text beside it, which may be a secret. */
export function describeFlaw({ code }: YAMLError): string {
  return flaws[code] ?? `no valid YAML (${code.toLowerCase().replaceAll('_', ' ')})`;
}

const flaws: Partial<Record<YAMLError['code'], string>> = {
  BAD_INDENT: 'no valid YAML: indented unlike the lines around it, or a bracket before is still open',
  BLOCK_AS_IMPLICIT_KEY:
    'no valid YAML: after this value, a line below is indented too far, or a second name: stands on the same line',
  MISSING_CHAR: 'no valid YAML: a character is missing here, such as a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'no valid YAML: a colon is missing here, or a line below is indented too far',
  MULTIPLE_DOCS: 'a second document (---) starts here; only one is allowed',
  TAB_AS_INDENT: 'no valid YAML: indented with a tab; use spaces',
  TAG_RESOLVE_FAILED: 'has a tag (!name); tags mean nothing here',
  UNEXPECTED_TOKEN: 'no valid YAML: this cannot stand here',
};
