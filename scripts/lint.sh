#!/usr/bin/env bash
# lint.sh JOBS: clang-tidy (.clang-tidy) on every source of the configured asan build. Any finding fails.
set -euo pipefail
cd "$(dirname "$0")/.."
run-clang-tidy-14 -quiet -j "${1:-$(nproc)}" -p build/asan "^$PWD/(base|device|formats|text|ops|backbone|decision|lab|cli)/" \
  2> /dev/null | grep -v '^clang-tidy-14 \|^$' || status=("${PIPESTATUS[@]}")
exit "${status[0]:-0}"
