#!/usr/bin/env bash
# check.sh [cargo arguments]: type-check and lint the whole workspace for Macs with Apple silicon,
# tests and benches included. What it proves: the macOS code compiles. Nothing is linked or run.
# LIBTORCH may be this machine's own: the build scripts only ask which version it is.
set -euo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$kit/setup.sh" check
# shellcheck source=scripts/mac/env.sh
. "$kit/env.sh" check
cd "$kit/../.."
# Clippy is the check with lints on top. By its own name, for `cargo clippy` would look in
# ~/.cargo/bin first and find rustup's, which belongs to another compiler.
exec cargo-clippy clippy "${mac_flags[@]}" --all-targets "$@" -- -D warnings
