#!/usr/bin/env bash
# without_aslr.sh COMMAND...: runs a command without address randomisation where that is allowed.
# GCC 12's ThreadSanitizer stops with "unexpected memory mapping" under the wide randomisation of kernels
# from 6.6 on (vm.mmap_rnd_bits = 32). Containers may forbid the switch; there the command runs as it is.
set -euo pipefail
if setarch "$(uname -m)" -R true 2> /dev/null; then exec setarch "$(uname -m)" -R "$@"; fi
exec "$@"
