#!/usr/bin/env bash
# Measures what the README promises and writes bench/RESULTS.md. `make bench` builds and calls it; with
# PART=guard or PART=mesh only that part is measured anew.
# Whole processes, a warm-up first, medians of five; ratios come from pairs run in turns.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BUILD:?run it by \`make bench\`}"

work=$(mktemp -d)
trap '[ $? = 0 ] || cat "$work/log" >&2; rm -rf "$work"' EXIT
touch "$work/log"
say() { printf '\033[1m==>\033[0m %s\n' "$1" >&2; }

machine() {
  uname -sm
  if [ -r /proc/cpuinfo ]; then
    sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1
    awk '/^MemTotal/ { printf "%.0f GB memory\n", $2 / 1048576 }' /proc/meminfo
  else
    sysctl -n machdep.cpu.brand_string
  fi
  echo "$(getconf _NPROCESSORS_ONLN) cores"
  rustc --version
}

# What was measured, where and when, under its title.
titled() {
  printf '# %s\n\nMachine: %s. Date: %s. Command: `make bench PART=%s`.\n\n' \
    "$1" "$(machine | paste -sd, - | sed 's/,/, /g')" "$(date -u +%Y-%m-%d)" "$2"
}

guard() {
  say 'building the guard and its hogs'
  cargo build --release -q -p stageload-cli --bin stageload --example hog
  say 'measuring the guard (a quarter of an hour)'
  python3 bench/guard.py "$BUILD/release/stageload" "$BUILD/release/examples/hog" "$work" >"$work/guard.md"
  { titled 'The guard' guard; cat "$work/guard.md"; } >bench/results/guard.md
}

mesh() {
  say 'building the mesh pipeline'
  cargo build --release -q -p stageload-cli -p stageload-mesh
  python3 scripts/sample-photos.py "$STAGELOAD_PHOTOS" >/dev/null
  say 'measuring'
  python3 bench/measure.py "$BUILD/release/stageload" "$STAGELOAD_PHOTOS" "$work" >"$work/runs.md"
  say 'comparing with shapes of known depth'
  cargo test --release -q -p stageload-mesh --lib held_out -- --nocapture 2>&1 | tee "$work/log" |
    sed -n 's/^[.]*|/|/p' >"$work/held_out.md"
  say 'holding meshes to their photos'
  cargo test --release -q -p stageload-mesh --test photos -- --nocapture --test-threads 1 2>&1 | tee "$work/log" |
    sed -n 's/^[.]*|/|/p' >"$work/photos.md"
  {
    titled 'The mesh' mesh
    cat "$work/runs.md"
    printf '\n## Meshes against their photos\n\n'
    printf 'Front view drawn from the GLB. IoU: silhouette against the matte (limit 0.985); PSNR: in '
    printf 'the subject'"'"'s core (limit 30 dB).\nThey say that the mesh is sound and that its front '
    printf 'is the picture, nothing about its depth.\n\n'
    printf '| photo | grid | triangles | watertight | non-manifold edges | pieces | genus | IoU | PSNR dB | GLB MB |\n'
    printf '|---|---|---|---|---|---|---|---|---|---|\n'
    cat "$work/photos.md"
    printf '\n## Depth against known shapes\n\n'
    cat bench/depth.md
    echo
    cat "$work/held_out.md"
  } >bench/results/mesh.md
}

case ${PART:-all} in
  guard) guard ;;
  mesh) mesh ;;
  all) guard; mesh ;;
  *) echo "bench: no such part: $PART (guard or mesh)" >&2; exit 2 ;;
esac
cat bench/head.md bench/results/*.md >bench/RESULTS.md
say 'wrote bench/RESULTS.md'
