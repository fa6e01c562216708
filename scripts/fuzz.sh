#!/usr/bin/env bash
# fuzz.sh MINUTES: runs every fuzz target for an equal share of MINUTES of wall time, as many at once as
# there are cores, from the inputs in fuzz/corpus/NAME and fuzz/learned.tar.xz. What they learn goes to
# build/fuzz-corpus/NAME; crashes, hangs and memory hogs go to build/fuzz-artifacts, and any of them fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?usage: fuzz.sh MINUTES}
jobs=$(nproc)

cmake --build --preset asan -j "$jobs" --target fuzz_targets
names=()
for source in fuzz/*_fuzz.cpp; do names+=("$(basename "$source" _fuzz.cpp)"); done
rounds=$(((${#names[@]} + jobs - 1) / jobs))
seconds=$((minutes * 60 / rounds))
artifacts=build/fuzz-artifacts
mkdir -p "$artifacts"
echo "fuzz: ${#names[@]} targets (${names[*]}), $seconds s each, $jobs at once"

fuzz_one() {
  local name=$1 seconds=$2 artifacts=$3
  local learned=build/fuzz-corpus/$name log=build/fuzz-corpus/$name.log
  local options=(-max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1
    -artifact_prefix="$artifacts/$name-")
  if [[ -f fuzz/$name.dict ]]; then options+=(-dict="fuzz/$name.dict"); fi
  mkdir -p "$learned"
  if build/asan/fuzz/"$name"_fuzz "${options[@]}" "$learned" fuzz/corpus/"$name" build/asan/fuzz/learned/"$name" > "$log" 2>&1; then
    echo "fuzz: $name: nothing found, $(awk '/number_of_executed_units/ {print $2}' "$log") runs"
  else
    echo "fuzz: $name FAILED, see $log:"
    tail -n 40 "$log"
    return 1
  fi
}
export -f fuzz_one
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz_one "$@"' fuzz {} "$seconds" "$artifacts"
echo "fuzz: nothing found in $minutes minutes"
