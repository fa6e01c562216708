// Hugging Face's tokenizers (Rust) as a peer of bench/tokenizer_bench.cpp, which starts it: reads documents
// parted by NUL, then on each line of input encodes them all once on one core and writes "SECONDS CPU TOKENS".
// Usage: node tokenizer_peer.mjs NODE_MODULES_PARENT TOKENIZER_JSON DOCUMENTS

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

// Before the library starts its threads: one core, as ours.
process.env.TOKENIZERS_PARALLELISM = 'false';
process.env.RAYON_NUM_THREADS = '1';

const [folder, file, documentsFile] = process.argv.slice(2);
const { Tokenizer } = createRequire(join(folder, 'package.json'))('@anush008/tokenizers');
const tokenizer = Tokenizer.fromFile(file);
const documents = readFileSync(documentsFile, 'utf8').split('\0');

console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  if (line !== 'run') break;
  const cpu = process.cpuUsage();
  const start = process.hrtime.bigint();
  const encodings = await tokenizer.encodeBatch(documents, { addSpecialTokens: false });
  const seconds = Number(process.hrtime.bigint() - start) * 1e-9;
  const { user, system } = process.cpuUsage(cpu);
  const tokens = encodings.reduce((sum, encoding) => sum + encoding.getLength(), 0);
  console.log(`${seconds} ${(user + system) * 1e-6} ${tokens}`);
}
