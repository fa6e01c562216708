// Writes a tokenizer.json with the pattern of Qwen3.5 and with added tokens of every kind.
// Usage: node make_variant.mjs TOKENIZER_JSON OUT_JSON

import { readFileSync, writeFileSync } from 'node:fs';

const [file, out] = process.argv.slice(2);
const tokenizer = JSON.parse(readFileSync(file, 'utf8'));
tokenizer.pre_tokenizer.pretokenizers[0].pattern.Regex =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" +
  "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const plain = { special: false, single_word: false, lstrip: false, rstrip: false, normalized: false };
const extra = [
  { content: 'thing', single_word: true },
  { content: 'thi' },
  { content: '[left]', lstrip: true },
  { content: '[right]', rstrip: true },
  { content: '[both]', lstrip: true, rstrip: true },
  { content: '[both]x', lstrip: true, rstrip: true, single_word: true },
  { content: 'é', normalized: true },
  { content: '[norm e\u0301]', normalized: true, rstrip: true },
  { content: ' \n', normalized: false },
  { content: '世', normalized: true, single_word: true },
  { content: 'Ⓐ', single_word: true, normalized: true },
];
let id = Object.keys(tokenizer.model.vocab).length + tokenizer.added_tokens.length;
for (const token of extra) {
  const known = tokenizer.model.vocab[token.content];
  tokenizer.added_tokens.push({ ...plain, ...token, id: known ?? id++ });
}
writeFileSync(out, JSON.stringify(tokenizer));
