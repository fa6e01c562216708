#!/usr/bin/env bash
# configure.sh PRESET [-DNAME=VALUE ...]: configures a preset, with ccache where there is one.
# A build folder already configured is left alone unless options are given.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
options=("$@")
if [[ -f build/$preset/build.ninja && ${#options[@]} -eq 0 ]]; then exit 0; fi
# What make builds is built whole, mostly once.
options+=(-DASSAY_UNITY=ON)
if command -v ccache > /dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
# Someone who only wants the program need not have GoogleTest.
if [[ $preset == release && ! -f build/release/build.ninja && $# -eq 0 ]]; then
  options+=(-DASSAY_BUILD_TESTS=OFF)
fi
cmake --preset "$preset" "${options[@]}"
