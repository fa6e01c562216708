#!/usr/bin/env bash
# demo.sh JOBS: builds the program, answers examples/ticket.json, runs the gate at both precisions, makes a sound.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
assay=build/release/cli/assay
model=models/assay-mini-decide/run
fixture=tests/data/assay-mini-decide.fixture.json

scripts/configure.sh release
cmake --build --preset release --target assay -j "$jobs"

cat << 'END'

An example ticket, answered by the small model that comes with the program. It was trained on generated sentences
alone; models/assay-mini-decide/README.md says what it is worth.

END
"$assay" decide --request examples/ticket.json --table
for precision in fp32 bf16; do
  echo
  echo "The gate: 48 recorded requests against the author's fp32 implementation, here in $precision."
  "$assay" gate decision --model "$model" --fixture "$fixture" --precision "$precision"
done

cat << 'END'

Eight seconds of music, at 120 beats a minute in C major, by the small ACE-Step model that comes with the program. It was trained
on synthetic tunes; models/assay-mini-compose/README.md says what it is worth.

END
mkdir -p build/demo
"$assay" compose --prompt "cheerful music with piano, bass and drums" --bpm 120 --key "C major" --duration 8 --seed 7 \
  -o build/demo/song.flac
echo
echo "demo: done. The program is $assay; try: $assay decide --help"
