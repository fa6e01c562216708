// Encodes deterministic strings with the reference and writes [{text, ids}].
// Usage: node make_cases.mjs TOKENIZER_JSON OUT_JSON

import { writeFileSync } from 'node:fs';
import tokenizers from '@anush008/tokenizers';
import { categories, strings } from './strings.mjs';

const [file, out] = process.argv.slice(2);
const reference = tokenizers.Tokenizer.fromFile(file);
const { added_tokens: added } = JSON.parse((await import('node:fs')).readFileSync(file, 'utf8'));

const texts = strings(await categories(), added.map((token) => token.content));
const cases = [];
for (const text of texts) {
  const encoding = await reference.encode(text, null, { addSpecialTokens: false });
  cases.push({ text, ids: encoding.getIds() });
}
writeFileSync(out, JSON.stringify(cases));
console.log(`${cases.length} strings, ${cases.reduce((sum, { ids }) => sum + ids.length, 0)} tokens by the reference`);
