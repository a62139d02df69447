#!/usr/bin/env bash
# setup.sh check|link: what a Debian machine needs to type-check Stageload for Macs with Apple
# silicon, and for `link` also to link it. See check.sh and link.sh. Cached; a second run is quick.
set -euo pipefail

mode=${1:-check}
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/mac/env.sh
. "$kit/env.sh" "$mode"
cache=$STAGELOAD_MAC_CACHE
say() { printf 'mac: %s\n' "$*"; }
die() { printf 'mac: %s\n' "$*" >&2; exit 1; }

# 1. A Rust whose standard library comes with its source.
packages=(rustc-web cargo-web rust-web-src rust-web-clippy)
if ! dpkg -s "${packages[@]}" >/dev/null 2>&1; then
  command -v apt-get >/dev/null || die "needs Debian's packages ${packages[*]}; there is no apt here"
  root=(); [ "$(id -u)" = 0 ] || root=(sudo)
  say "installing by apt: ${packages[*]}"
  "${root[@]}" apt-get update -q
  # They cannot stand beside Debian's older cargo and rustc. Only a CI machine gives those up unasked.
  keep=(--no-remove); [ -z "${CI:-}" ] || keep=()
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "${keep[@]}" "${packages[@]}" ||
    die "apt could not install ${packages[*]}"
fi

# 2. std for the Mac, built once with that Rust and laid out as a sysroot beside the host's own.
version=$(/usr/bin/rustc -V)
if [ "$(cat "$cache/sysroot/made-by" 2>/dev/null)" != "$version" ]; then
  say "building Rust's std for $MAC_TARGET (about a minute)"
  work=$cache/std
  rm -rf "$cache/sysroot" "$work"
  mkdir -p "$work/src"
  : > "$work/src/lib.rs"
  printf '[package]\nname = "std-for-mac"\nedition = "2021"\n[profile.dev]\ndebug = 0\n[workspace]\n' > "$work/Cargo.toml"
  # build-std is a nightly option; RUSTC_BOOTSTRAP lets the stable compiler take it. `test` is what
  # --all-targets needs.
  ( cd "$work" && env -u CARGO_ENCODED_RUSTFLAGS RUSTC_BOOTSTRAP=1 cargo build -q --target "$MAC_TARGET" \
      --target-dir built -Z build-std=std,panic_unwind,panic_abort,proc_macro,test )
  lib=$cache/sysroot/lib/rustlib/$MAC_TARGET/lib
  mkdir -p "$lib"
  host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
  ln -s "/usr/lib/rustlib/$host" "$cache/sysroot/lib/rustlib/"
  cp "$work/built/$MAC_TARGET"/debug/deps/*.rlib "$work/built/$MAC_TARGET"/debug/deps/*.rmeta "$lib/"
  rm -rf "$lib"/libstd_for_mac-* "$work"
  echo "$version" > "$cache/sysroot/made-by"
fi
[ "$mode" = link ] || exit 0

# 3. For linking: zig, a stub SDK, and libtorch as Macs get it.
if ! cmp -s "$kit/requirements.txt" "$cache/zig-venv/made-from"; then
  say 'fetching zig (100 MB)'
  rm -rf "$cache/zig-venv"
  python3 -m venv "$cache/zig-venv"
  "$cache/zig-venv/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir \
    --require-hashes -r "$kit/requirements.txt"
  cp "$kit/requirements.txt" "$cache/zig-venv/made-from"
fi
rm -rf "$SDKROOT"
python3 "$kit/mkstub.py" "$SDKROOT" < "$kit/stubs.txt"
TARGET=Darwin-arm64 "$kit/../get-libtorch.sh" "$LIBTORCH"
