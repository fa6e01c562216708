#!/usr/bin/env bash
# bench.sh JOBS ARGS...: the benchmarks under bench/, then `assay bench decision ARGS`.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$1
shift
scripts/configure.sh bench
cmake --build --preset bench -j "$jobs"
for program in build/bench/bench/*_bench; do
  if [[ -x $program ]]; then "$program"; fi
done
build/bench/cli/assay bench decision "$@"
