#!/usr/bin/env bash
# link.sh [cargo arguments]: link the whole workspace, its tests included, for Macs with Apple
# silicon, with no symbol left undefined: libSystem's names are Apple's own list (it comes with zig),
# libtorch is the one Macs get, frameworks are the stubs of stubs.txt. Nothing is run.
set -euo pipefail

kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$kit/setup.sh" link
# shellcheck source=scripts/mac/env.sh
. "$kit/env.sh" link
cd "$kit/../.."
cargo build "${mac_flags[@]}" "$@"
cargo test --no-run "${mac_flags[@]}" "$@"
echo "mac: linked; see $CARGO_TARGET_DIR/$MAC_TARGET"
