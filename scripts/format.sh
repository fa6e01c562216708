#!/usr/bin/env bash
# format.sh ARGS...: clang-format with these arguments on every C++ source of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
find base device formats text audio ops backbone music decision lab cli include tests bench fuzz \
  \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' \) -print0 | sort -z | xargs -0 -r clang-format-14 "$@"
