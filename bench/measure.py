"""Times `stageload mesh` and reads the peaks from its traces; prints Markdown.

measure.py STAGELOAD PHOTOS WORK: the command, the folder of photos, a folder to write to.
Standard library only.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 5
MB = 1 << 20


def run(command: str, photo: Path, out: Path, flags: list[str]) -> dict:
    """One guarded run: seconds of the worker from its first stage on, and its summary."""
    argv = [command, "mesh", str(photo), "-o", str(out), "--wait-free", "0", *flags]
    env = {k: v for k, v in os.environ.items() if k != "STAGELOAD_EVENTS"}
    start = time.monotonic()
    subprocess.run(argv, check=True, capture_output=True, env=env)
    wall = time.monotonic() - start
    trace = out.with_suffix(".trace.jsonl")
    text = subprocess.run([command, "summary", "--json", trace], check=True, capture_output=True)
    summary = json.loads(text.stdout)
    summary = summary[0] if isinstance(summary, list) else summary
    first = next(
        r["t"] for r in map(json.loads, trace.read_text().splitlines())
        if r.get("type") == "event" and r["kind"] == "stage"
    )
    return {"wall": wall, "work": wall - first, "peak": summary["peak_footprint"], "summary": summary}


def median(runs: list[dict], key: str) -> float:
    return statistics.median(r[key] for r in runs)


def spread(runs: list[dict], key: str, unit: float = 1.0) -> str:
    values = [r[key] / unit for r in runs]
    digits = 0 if unit > 1 else 1
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def times(command: str, photos: Path, work: Path) -> None:
    print("## Time and memory\n")
    print(f"Seconds after the worker's start, median (least–most) of {RUNS}; peak footprint of the job.")
    print("Limits: 4 s at grid 512, 10 s and 1229 MB at 1024, on two quiet cores.\n")
    print("| photo | grid | seconds | with start | peak MB | of the limit |")
    print("|---|---|---|---|---|---|")
    for grid, limit in (("512", 4.0), ("1024", 10.0)):
        for name in ("flower.jpg", "coffee.png", "astronaut.png", "chelsea.png", "china.jpg"):
            flags = ["--grid", grid, "--device", "cpu"]
            out = work / "mesh.glb"
            run(command, photos / name, out, flags)
            runs = [run(command, photos / name, out, flags) for _ in range(RUNS)]
            print(
                f"| {name} | {grid} | {spread(runs, 'work')} | {spread(runs, 'wall')} |"
                f" {spread(runs, 'peak', MB)} | {median(runs, 'work') / limit:.2f} |"
            )


def staged_against_eager(command: str, photos: Path, work: Path) -> None:
    print("\n## Staged against eager loading\n")
    print("Same photo, seed and grid (512), in turns. The two files are compared byte for byte.\n")
    print("| pair | staged peak MB | eager peak MB | ratio | same bytes |")
    print("|---|---|---|---|---|")
    ratios = []
    for pair in range(RUNS):
        peaks, files = {}, {}
        for load in ("staged", "eager"):
            out = work / f"{load}.glb"
            flags = ["--grid", "512", "--device", "cpu", "--load", load]
            peaks[load] = run(command, photos / "flower.jpg", out, flags)["peak"]
            files[load] = out.read_bytes()
        ratios.append(peaks["staged"] / peaks["eager"])
        same = "yes" if files["staged"] == files["eager"] else "NO"
        print(
            f"| {pair + 1} | {peaks['staged'] / MB:.1f} | {peaks['eager'] / MB:.1f} |"
            f" {ratios[-1]:.3f} | {same} |"
        )
    print(f"\nMedian ratio {statistics.median(ratios):.3f}.")


def stages(command: str, photos: Path, work: Path) -> None:
    print("\n## One run, stage by stage\n")
    print("flower.jpg at grid 1024.\n")
    print("| stage | seconds | peak MB |")
    print("|---|---|---|")
    out = work / "mesh.glb"
    summary = run(command, photos / "flower.jpg", out, ["--grid", "1024", "--device", "cpu"])["summary"]
    for stage in summary["stages"]:
        peak = stage["peak_footprint"]
        print(f"| {stage['stage']} | {stage['seconds']:.2f} | {'–' if peak is None else f'{peak / MB:.0f}'} |")


def main() -> None:
    command, photos, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    times(command, photos, work)
    stages(command, photos, work)
    staged_against_eager(command, photos, work)


if __name__ == "__main__":
    main()
