#!/usr/bin/env bash
# fuzz.sh [SECONDS]: feed the readers of traces and of /proc for so long each (default 60). A stable
# compiler will do: the coverage that libFuzzer needs is a pass of LLVM's own.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${1:-60}
build=${BUILD:-../target}/fuzz

passes='-sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters
  -sanitizer-coverage-pc-table -sanitizer-coverage-trace-compares'
flags='--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1'
for pass in $passes; do flags+=" -Cllvm-args=$pass"; done
RUSTFLAGS=$flags CARGO_TARGET_DIR=$build cargo build -q --release \
  --target "$(rustc -vV | sed -n 's/^host: //p')"
bin=$(echo "$build"/*/release)

for target in trace proc; do
  corpus=$build/corpus/$target
  mkdir -p "$corpus"
  case $target in
    # The first kilobytes of real traces: whole ones are too long to change well.
    trace) for file in ../tests/fixtures/traces/*.jsonl; do head -n 12 "$file" >"$corpus/$(basename "$file")"; done ;;
    proc) for file in stat status smaps_rollup cgroup; do cat "/proc/self/$file" >"$corpus/$file" || true; done
      cat /proc/meminfo >"$corpus/meminfo" || true ;;
  esac
  "$bin/$target" "$corpus" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=1024 \
    -artifact_prefix="$build/$target-" -print_final_stats=1
done
