"""Measures the guard on hogs of its own; prints Markdown.

guard.py STAGELOAD HOG WORK: the command, the hog (`cargo build --example hog`), a folder to write to.
Standard library only; Linux, with 3 GB to spare. It takes about a quarter of an hour.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import peers
from hogs import GB, LIMIT, MB, PACE, Bench, Log, growing, last_gone, pids

RUNS = 20
DEAF_RUNS = 10
SPREAD = ["--children", "20", "--growing", "5", "--to", "1800M"]
# Twenty processes that do nothing.
CROWD = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do sleep 300 & done; wait"]


def mark(is_met: bool) -> str:
    return "yes" if is_met else "**NO**"


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells: str) -> None:
    row(*cells)
    print("|" + "---|" * len(cells))


def p99(values: list[float]) -> float:
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)]


def stopped(bench: Bench, flags: list[str], count: int) -> tuple[Log, int]:
    """One hog against a limit of 1 GB: its log, and when its last process was gone."""
    guard = bench.guard(["--json", "--limit", "1G"], [bench.hog, *growing(*flags)])
    gone = last_gone(pids(bench.log, count))
    outcome = json.loads(guard.communicate(timeout=60)[0])
    rule = outcome.get("stop", {}).get("rule")
    if outcome["exit"] != 3 or rule != "limit":
        raise RuntimeError(f"not stopped by its limit: {outcome}")
    return Log.read(bench.log), gone


def overshoot(bench: Bench) -> None:
    print("## Overshoot\n")
    print(f"A hog grows by {PACE / GB} GB/s, by the clock, towards 2 GB; `stageload guard --limit 1G` stops it, with")
    print("no other rule in the way. Overshoot: the most it held, by its own account, less 1 GB. Reaction: from 1 GB")
    print("held to the last growth. It does not ignore SIGTERM.\n")
    head("job", "runs", "pace GB/s", "reaction ms", "overshoot MB, median (least–most)", "target", "met")
    crowd = f"20 children, 5 of which grow by {PACE / GB / 5:.2f} GB/s each and 15 hold 16 MB"
    for name, flags, count in (("one process", [], 1), (crowd, SPREAD, 21)):
        logs = [bench.in_pace(lambda: stopped(bench, flags, count))[0] for _ in range(RUNS)]
        over = [(log.most() - LIMIT) / MB for log in logs]
        reaction = [(log.steps[-1][0] - log.crossed(LIMIT)) / 1e6 for log in logs]
        pace = statistics.median(log.pace(LIMIT) for log in logs) / GB
        median, most = statistics.median(over), max(over)
        row(
            name, str(RUNS), f"{pace:.2f}", f"{statistics.median(reaction):.0f}, at most {max(reaction):.0f}",
            f"{median:.0f} ({min(over):.0f}–{most:.0f})", "median 150, most 400",
            mark(median <= 150 and most <= 400),
        )


def deaf(bench: Bench) -> None:
    print("\n## From the breach to the end of a job that ignores SIGTERM\n")
    print("The same hogs, deaf to SIGTERM and growing on. From 1 GB held to the end of the last process, its memory")
    print("given back (by pidfd).\n")
    head("job", "runs", "seconds, median (least–most)", "overshoot MB, median (most)", "target s", "met")
    for name, flags, count in (("one process", [], 1), ("20 children, 5 grow", SPREAD, 21)):
        ends, over = [], []
        for _ in range(DEAF_RUNS):
            log, gone = bench.in_pace(lambda: stopped(bench, ["--ignore-term", *flags], count))
            ends.append((gone - log.crossed(LIMIT)) / 1e9)
            over.append((log.most() - LIMIT) / MB)
        row(
            name, str(DEAF_RUNS), f"{statistics.median(ends):.2f} ({min(ends):.2f}–{max(ends):.2f})",
            f"{statistics.median(over):.0f} ({max(over):.0f})", "1", mark(max(ends) <= 1),
        )


def sample_gaps(bench: Bench, before: list[str]) -> list[float]:
    """Milliseconds between the looks in a trace, while memory moves and every core is busy twice over."""
    trace = bench.work / "gaps.jsonl"
    trace.unlink(missing_ok=True)
    busy = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    loops = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * os.cpu_count())]
    hog = ["--rate", "400M/s", "--to", "800M", "--step", "2M", "--again", "--hold", "20s"]
    argv = [*before, bench.stageload, "guard", "--wait-free", "0", "--trace", str(trace), "--", bench.hog, *hog]
    env = {k: v for k, v in bench.env.items() if k != "HOG_LOG"}
    try:
        subprocess.run(argv, env=env, check=True, capture_output=True, timeout=90)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    records = map(json.loads, trace.read_text().splitlines())
    times = [record["t"] for record in records if record["type"] == "sample"]
    # Its start and its end are not what is asked.
    times = [t for t in times if 1 <= t <= 20]
    return [(b - a) * 1000 for a, b in zip(times, times[1:])]


def gaps(bench: Bench) -> None:
    print("\n## Time between two looks on a busy machine\n")
    print("Two busy loops for each core, nice 0, while a job grows by 400 MB/s to 800 MB and gives it back, again and")
    print("again, for 20 s. From the times in the trace, which leaves out looks that saw nothing new.\n")
    head("guard", "looks", "gap ms, median", "p99", "most", "target p99", "met")
    cases = [("as this user" + (" (root: it may put itself first)" if os.geteuid() == 0 else ""), [])]
    if os.geteuid() == 0:
        cases.append(("as a user without rights", ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]))
    for name, before in cases:
        found = sample_gaps(bench, before)
        row(
            name, str(len(found) + 1), f"{statistics.median(found):.0f}", f"{p99(found):.0f}", f"{max(found):.0f}",
            "200 ms", mark(p99(found) <= 200),
        )


def cpu_seconds(pid: int) -> tuple[float, float]:
    """Of all its threads: by the scheduler's own account, and utime + stime of `stat` (in ticks of 10 ms)."""
    exact = sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return exact / 1e9, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def status(pid: int, key: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{key}:"))


def wakes(pid: int) -> int:
    """How often the main thread slept: once a look, or each 100 ms to ask for events. With looks that come
    more often than that, as at `--poll 20ms`, each is a look."""
    return status(pid, "voluntary_ctxt_switches")


def children(pid: int) -> dict[int, str]:
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_text().replace("\0", " ").strip()
        except (OSError, IndexError):
            continue  # it has just ended
    return found


def end(guard: subprocess.Popen) -> None:
    guard.send_signal(signal.SIGTERM)
    guard.communicate(timeout=30)


def processor(bench: Bench) -> None:
    print("\n## What a guard costs\n")
    print("Processor time of the guard's threads over 60 s, by the scheduler's account, with a trace; in brackets by the")
    print("10-ms ticks of `stat`. A guard wakes for each look, and each 100 ms to ask for events.\n")
    head("job", "wakes", "ms a wake", "% of a core", "target", "met")
    cases = (
        ("`sleep`, default pace", [], ["sleep", "300"], 0.5),
        ("20 processes, `--poll 100ms`", ["--poll", "100ms"], CROWD, 2.0),
    )
    for name, flags, job, target in cases:
        guard = bench.guard([*flags, "--trace", str(bench.work / "calm.jsonl")], job)
        time.sleep(2)
        before, woke, began = cpu_seconds(guard.pid), wakes(guard.pid), time.monotonic()
        time.sleep(60)
        after, woke, took = cpu_seconds(guard.pid), wakes(guard.pid) - woke, time.monotonic() - began
        end(guard)
        exact, ticks = (100 * (b - a) / took for a, b in zip(before, after))
        each = 1000 * (after[0] - before[0]) / woke
        row(name, str(woke), f"{each:.2f}", f"{exact:.2f} ({ticks:.2f})", f"{target}", mark(exact <= target))


def at_look(guard: int, warden: int, count: int) -> list[tuple[int, int]]:
    """kB of anonymous and of all resident memory, of the guard and its warden, after so many looks."""
    deadline = time.monotonic() + 150
    while wakes(guard) < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {wakes(guard)} looks")
        time.sleep(0.05)
    return [(status(pid, "RssAnon"), status(pid, "VmRSS")) for pid in (guard, warden)]


def memory(bench: Bench) -> None:
    guard = bench.guard(["--poll", "20ms", "--trace", str(bench.work / "long.jsonl")], CROWD)
    time.sleep(1)
    family = children(guard.pid)
    warden = next(pid for pid, line in family.items() if "stand-by" in line)
    early, late = at_look(guard.pid, warden, 1000), at_look(guard.pid, warden, 4000)
    family = children(guard.pid)
    fields = Path(f"/proc/{guard.pid}/stat").read_text().rsplit(")", 1)[1].split()
    # What children that are over have left behind in the account of who reaped them.
    of_reaped = sum(int(fields[i]) for i in (8, 10, 13, 14))
    end(guard)
    print("\nA job of 20 processes, a look each 20 ms. Resident memory in kB, anonymous / all.\n")
    head("process", "after 1000 looks", "after 4000 looks", "growth kB", "target", "met")
    for name, (anon0, all0), (anon1, all1) in zip(("guard", "warden"), early, late):
        is_met = all1 <= 8 * 1024 and anon1 <= anon0 and all1 <= all0
        row(name, f"{anon0} / {all0}", f"{anon1} / {all1}", f"{anon1 - anon0} / {all1 - all0}", "8192, no growth", mark(is_met))
    kinds = sorted("warden" if pid == warden else "job" for pid in family)
    print(f"\nProcesses that the guard has started in that time: {' and '.join(kinds)}; reaped so far: ", end="")
    print("none" if of_reaped == 0 else "some", end=" (no fault and no tick of a child that is over in its `stat`). ")
    print(f"Target: these two and no other. Met: {mark(kinds == ['job', 'warden'] and of_reaped == 0)}.")


def main() -> None:
    stageload, hog, work = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    work.chmod(0o777)  # one guard runs as another user
    bench = Bench(stageload, hog, work)
    load = os.getloadavg()[0]
    try:
        overshoot(bench)
        deaf(bench)
        peers.compare(bench)
        gaps(bench)
        processor(bench)
        memory(bench)
    finally:
        bench.forget()
    print(f"\nLoad average before all that: {load:.2f}. Runs repeated because the hog itself had kept less than 90 %")
    print(f"of its pace up to 1 GB: {bench.repeated}.")


if __name__ == "__main__":
    main()
