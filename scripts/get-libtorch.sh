#!/usr/bin/env bash
# get-libtorch.sh DEST: libtorch 2.13.0 (CPU on Linux, CPU and MPS on a Mac) unpacked into DEST.
#
# PyPI's torch wheels hold the very libraries and headers that torch-sys wants, for every platform
# we build on, so only python3 is needed and nothing is installed. The wheels are downloaded by pip
# against the checksums in libtorch-requirements.txt, unpacked beside DEST and renamed into place:
# DEST is there whole or not at all. A second run ends at once.
#
# TARGET=Linux-x86_64|Linux-aarch64|Darwin-arm64 fetches for another machine (cross links).
set -euo pipefail

version=2.13.0
die() { printf 'get-libtorch: %s\n' "$*" >&2; exit 1; }

[ $# -eq 1 ] || die 'usage: scripts/get-libtorch.sh DEST'
dest=${1%/}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
target=${TARGET:-$(uname -s)-$(uname -m)}

case $target in
  Linux-x86_64)  platforms=(manylinux_2_28_x86_64 manylinux_2_25_x86_64 manylinux2014_x86_64) so=so mb=540 ;;
  Linux-aarch64) platforms=(manylinux_2_28_aarch64 manylinux_2_25_aarch64 manylinux2014_aarch64) so=so mb=440 ;;
  Darwin-arm64)  platforms=(macosx_14_0_arm64) so=dylib mb=110 ;;
  Darwin-x86_64) die 'Intel Macs are not supported: PyTorch stopped building for them (and memory is not shared there)' ;;
  *) die "no libtorch $version for $target; known: Linux-x86_64, Linux-aarch64, Darwin-arm64" ;;
esac

[ "$(cat "$dest/build-version" 2>/dev/null)" = "$version" ] && [ -f "$dest/lib/libtorch_cpu.$so" ] && exit 0

# Never delete what is not ours: a hand-made LIBTORCH has no such mark.
mark=unpacked-by-get-libtorch
if [ -e "$dest" ] && [ ! -e "$dest/$mark" ] && [ -n "$(ls -A "$dest")" ]; then
  die "$dest is not libtorch $version for $target and was not made by this script. Move it away, or name another folder."
fi
if [ "$target" = Darwin-arm64 ] && [ "$(uname -s)" = Darwin ]; then
  macos=$(sw_vers -productVersion)
  [ "${macos%%.*}" -ge 14 ] || die "libtorch $version needs macOS 14 or newer; this is $macos"
fi
command -v python3 >/dev/null || die 'python3 is missing; run scripts/setup.sh'

mkdir -p "$(dirname "$dest")"
tmp=$(mktemp -d "$dest.new.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM HUP

python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo 'get-libtorch: python3 has no pip; making one in a temporary venv'
  python3 -m venv "$tmp/venv" >/dev/null 2>&1 ||
    die 'python3 has neither pip nor venv. On Debian: sudo apt-get install python3-pip'
  python=$tmp/venv/bin/python
fi

# Only this platform's section, so that no wheel can stand in for another.
sed -n "/^# $target\$/,/^\$/p" "$here/libtorch-requirements.txt" > "$tmp/requirements.txt"
platform_args=()
for p in "${platforms[@]}"; do platform_args+=(--platform "$p"); done
quiet=(); [ -t 1 ] || quiet=(-q)   # pip's progress bar is for terminals only

echo "get-libtorch: downloading libtorch $version for $target ($mb MB)"
# The Python version is fixed, so that the result does not depend on the caller's; pip's cache would
# hold the same half gigabyte twice. The ${a[@]+...} form is for macOS's bash 3.2.
PIP_REQUIRE_VIRTUALENV=0 "$python" -m pip download ${quiet[@]+"${quiet[@]}"} \
  --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
  --implementation cp --python-version 3.11 "${platform_args[@]}" \
  -d "$tmp/wheels" -r "$tmp/requirements.txt" ||
  die 'the download failed (see above); nothing was changed. Run it again.'

echo 'get-libtorch: unpacking'
# libtorch_cuda and libtorch_python are left out: the first wants eleven more CUDA libraries.
python3 - "$tmp/wheels" "$tmp/libtorch" "$target" <<'PY'
import os, pathlib, re, shutil, sys, zipfile

wheels, dest, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
WANTED = {
    "Linux-x86_64": "libtorch_cpu.so libc10.so libgomp.so.1 libcudart.so.13 libcupti.so.13",
    "Linux-aarch64": "libtorch_cpu.so libc10.so libgomp.so.1 libcudart.so.13 libcupti.so.13"
                     " libarm_compute.so libarm_compute_graph.so libnvpl_blas_core.so.0"
                     " libnvpl_blas_lp64_gomp.so.0 libnvpl_lapack_core.so.0"
                     " libnvpl_lapack_lp64_gomp.so.0",
    "Darwin-arm64": "libtorch.dylib libtorch_cpu.dylib libc10.dylib libomp.dylib",
}[target].split()
missing = set(WANTED)

def place(wheel, name):
    """Where a wheel's file goes, or None for most of them."""
    base = os.path.basename(name)
    if base in WANTED and "/lib/" in name:
        missing.discard(base)
        return dest / "lib" / base
    if name.startswith("torch/include/"):
        return dest / name[len("torch/"):]
    if re.fullmatch(r"[^/]+\.dist-info/(licenses/)?(LICENSE|NOTICE|License)(\.txt)?", name):
        return dest / "licenses" / (wheel.name.split("-")[0] + "-" + base)
    return None

for wheel in sorted(wheels.glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            out = None if name.endswith("/") else place(wheel, name)
            if out is None:
                continue
            if ".." in out.parts:
                sys.exit(f"get-libtorch: {wheel.name} holds an unsafe path: {name}")
            out.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(name) as source, open(out, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    wheel.unlink()  # at once: the disk holds one wheel less while the next is unpacked
if missing:
    sys.exit("get-libtorch: the wheels lack " + ", ".join(sorted(missing)))
PY

if [ "$so" = so ]; then
  # torch-sys asks for -ltorch and -lgomp. The wheel's own libtorch.so pulls in CUDA and would not
  # link without it; a linker script that names the CPU library alone does.
  echo 'INPUT(-ltorch_cpu)' > "$tmp/libtorch/lib/libtorch.so"
  ln -s libgomp.so.1 "$tmp/libtorch/lib/libgomp.so"
fi
echo "$version" > "$tmp/libtorch/build-version"   # torch-sys checks it
: > "$tmp/libtorch/$mark"

rm -rf "$dest"
mv "$tmp/libtorch" "$dest"
echo "get-libtorch: ready in $dest"
