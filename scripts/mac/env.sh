# shellcheck shell=bash
# The environment of a build for Macs on a Debian machine. Source it, in a subshell, for it takes
# over PATH:   ( . scripts/mac/env.sh check && cargo check "${mac_flags[@]}" )
# check: no C is compiled.  link: C by zig, against a stub SDK. The two never share a target dir.
kit=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$kit/../.." && pwd)
export MAC_TARGET=aarch64-apple-darwin
if [ -z "${STAGELOAD_MAC_CACHE:-}" ]; then
  STAGELOAD_MAC_CACHE=${CARGO_TARGET_DIR:-$root/target}/mac
fi
mkdir -p "$STAGELOAD_MAC_CACHE"
STAGELOAD_MAC_CACHE=$(cd "$STAGELOAD_MAC_CACHE" && pwd)
export STAGELOAD_MAC_CACHE
export CARGO_TARGET_DIR=$STAGELOAD_MAC_CACHE/${1:-check}

# Debian's own Rust and nothing else: the std below is built by it and fits no other compiler.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$kit/bin
export CARGO=/usr/bin/cargo RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS RUSTC_WRAPPER RUSTUP_TOOLCHAIN
# Encoded with the unit separator, because the path may hold spaces.
export CARGO_ENCODED_RUSTFLAGS=$'--sysroot\x1f'$STAGELOAD_MAC_CACHE/sysroot
export CARGO_PROFILE_DEV_DEBUG=0
# Nothing is run, so nothing is optimised: a third of the time of the workspace's own profile, which
# optimises dependencies, proc macros with them. For the cargo command line; no variable can say it.
# shellcheck disable=SC2034  # read by those that source this
mac_flags=(--target "$MAC_TARGET" --workspace --config 'profile.dev.package."*".opt-level=0'
  --config profile.dev.package.stageload-mesh.opt-level=0)
# libtorch's own floor.
export MACOSX_DEPLOYMENT_TARGET=14.0

case ${1:-check} in
  check)
    export CC_aarch64_apple_darwin=$kit/stubcc CXX_aarch64_apple_darwin=$kit/stubcc
    export AR_aarch64_apple_darwin=$kit/stubar
    ;;
  link)
    export SDKROOT=$STAGELOAD_MAC_CACHE/sdk LIBTORCH=$STAGELOAD_MAC_CACHE/libtorch
    export ZIG_GLOBAL_CACHE_DIR=$STAGELOAD_MAC_CACHE/zig ZIG_LOCAL_CACHE_DIR=$STAGELOAD_MAC_CACHE/zig
    export CC_aarch64_apple_darwin=$kit/zcc CXX_aarch64_apple_darwin=$kit/zcxx
    export AR_aarch64_apple_darwin=$kit/zar
    export CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER=$kit/zcc
    ;;
  *) echo "env.sh: check or link, not $1" >&2; return 1 ;;
esac
