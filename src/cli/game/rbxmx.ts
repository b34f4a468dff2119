import type { GameScript } from './game-scripts.ts';

/** A model in Roblox's XML format, which Studio takes by Insert from File. */
export function toModel(scripts: GameScript[]): string {
  let count = 0;
  const item = ({ name, class: kind, source, children }: GameScript, indent: string): string => {
    count += 1;
    const lines = [
      `<Item class="${kind}" referent="RBX${count}">`,
      '\t<Properties>',
      `\t\t<string name="Name">${escaped(name)}</string>`,
      ...(kind === 'Folder' ? [] : [`\t\t<ProtectedString name="Source">${sectioned(source)}</ProtectedString>`]),
      '\t</Properties>',
    ];
    const below = children.map((child) => item(child, `${indent}\t`));
    return [...lines.map((line) => indent + line), ...below, `${indent}</Item>`].join('\n');
  };
  return `<roblox version="4">\n${scripts.map((script) => item(script, '\t')).join('\n')}\n</roblox>\n`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The text as it is: what would end such a section is cut in two. */
function sectioned(text: string): string {
  return `<![CDATA[${text.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}
