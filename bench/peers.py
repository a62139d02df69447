"""Other guards on the same hog: earlyoom, and the seed's `stageload` 0.1.1 in Python.

Nothing is installed on the machine: earlyoom is taken out of Debian's package into the folder for
work, and runs in a process namespace of its own, where it sees the hog and nobody else. The seed
comes from PyPI into a scratch environment. What cannot be had is a row that says so.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from hogs import GB, LIMIT, MB, MOST, Bench, Log, growing

RUNS = 10
SEED = "0.1.1"
# All names but "hog", without look-ahead: earlyoom's patterns are POSIX's.
ALL_OTHERS = "^([^h].*|h|ho|h[^o].*|ho[^g].*|hog.+)$"
VICTIM = re.compile(r'(?:sending SIG\w+ to process|would kill|kill) \D*(\d+).*?"([^"]*)"')

# Its gauges are macOS's; these two are Linux's, for the same words.
SHIM = """
import sys
from stageload import cli, meter

def gauge(name):
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

meter.memorystatus_level = lambda: 100 * gauge("MemAvailable") // gauge("MemTotal")
meter.swap_used = lambda: gauge("SwapTotal") - gauge("SwapFree")
sys.exit(cli.main(sys.argv[1:]))
"""


# The namespace's first process, which no guard chooses: with it there are only the hog and the guard.
FIRST = """
import json, subprocess, sys, time
guard = subprocess.Popen(json.loads(sys.argv[1]))
time.sleep(1)  # it rehearses a kill at its start, which must be over
subprocess.run(json.loads(sys.argv[2]))
time.sleep(0.1)
guard.kill()
"""


class NotHere(Exception):
    """Why a peer cannot be measured on this machine."""


def meminfo(key: str) -> int:
    """Bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise NotHere(f"no {key} in /proc/meminfo")


def quietly(argv: list[str], why: str, **more) -> None:
    if shutil.which(argv[0]) is None or subprocess.run(argv, capture_output=True, timeout=300, **more).returncode:
        raise NotHere(why)


class Ours:
    name = "stageload, `--limit 1G`"
    asked = "footprint of the job over 1 GB"
    polls = "20 to 50 ms while memory moves"
    runs = RUNS

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def once(self) -> float:
        """The most that the hog held, over what it held when the line was crossed, in bytes."""
        guard = self.bench.guard(["--limit", "1G"], [self.bench.hog, *growing()])
        guard.communicate(timeout=90)
        return Log.read(self.bench.log).most() - LIMIT


class Earlyoom:
    name = "earlyoom"
    asked = "memory available less than at the start by 1 GB (`-M`, `-s 100`), SIGTERM"
    polls = "its own: 100 ms to 1 s by what is left above the line, at 6000 MB/s"
    runs = RUNS

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = shutil.which("earlyoom") or self.unpack()
        version = subprocess.run([self.path, "-v"], capture_output=True, text=True, timeout=10)
        self.name = (version.stdout + version.stderr).split("\n")[0].strip() or self.name
        self.alone = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        if os.geteuid() != 0:
            self.alone[1:1] = ["--user", "--map-root-user"]
        quietly([*self.alone, "true"], "not run: no process namespace for it here")
        self.rehearse()

    def unpack(self) -> str:
        folder = self.bench.work / "earlyoom"
        folder.mkdir(exist_ok=True)
        quietly(["apt-get", "download", "earlyoom"], "not installed, and not to be had by apt", cwd=folder)
        package = next(folder.glob("*.deb"))
        quietly(["dpkg-deb", "-x", str(package), str(folder)], "not installed: its package does not unpack")
        return str(folder / "usr/bin/earlyoom")

    def run(self, line: list[str], hog: list[str]) -> str:
        """What it said. With the namespace's first process everything in it ends."""
        own = [self.path, *line, "-r", "0", "--prefer", "^hog$", "--avoid", ALL_OTHERS]
        argv = [*self.alone, sys.executable, "-c", FIRST, json.dumps(own), json.dumps([self.bench.hog, *hog])]
        done = subprocess.run(argv, env=self.bench.env, capture_output=True, text=True, timeout=90)
        return done.stdout + done.stderr

    def rehearse(self) -> None:
        """A dry run, in which it must choose the hog each time."""
        self.bench.forget()
        said = self.run(["-m", "99", "-s", "100", "--dryrun"], ["--rate", "1G/s", "--to", "64M", "--hold", "2s"])
        chosen = {name for _, name in VICTIM.findall(said)}
        if chosen != {"hog"}:
            raise NotHere(f"not run: in a dry run it chose {', '.join(sorted(chosen)) or 'nobody'}")

    def once(self) -> float:
        kib = (meminfo("MemAvailable") - LIMIT) // 1024
        said = self.run(["-M", str(kib), "-s", "100"], growing())
        if not VICTIM.search(said):
            raise NotHere("it did not act before the hog had 2 GB")
        return Log.read(self.bench.log).most() - LIMIT


class Seed:
    asked = "less than {level} % of memory available on two looks (a whole percent, about 1 GB down)"
    runs = RUNS

    def __init__(self, bench: Bench, poll: str, runs: int) -> None:
        self.bench, self.poll, self.runs = bench, poll, runs
        self.name, self.polls = f"stageload {SEED} (Python), `--poll {poll}`", poll
        folder = bench.work / "seed"
        self.python = str(folder / "bin/python")
        if not Path(self.python).exists():
            quietly([sys.executable, "-m", "venv", str(folder)], "not installed: no venv here")
            install = [self.python, "-m", "pip", "install", "-q", "--no-deps", f"stageload=={SEED}"]
            quietly(install, "not installed: not to be had by pip")
        self.shim = bench.work / "seed.py"
        self.shim.write_text(SHIM)

    def once(self) -> float:
        total, available = meminfo("MemTotal"), meminfo("MemAvailable")
        level = round(100 * (available - LIMIT) / total)
        line = available - total * level / 100
        self.asked = Seed.asked.format(level=level)
        flags = ["--wait-free", "0", "--kill-free", str(level), "--swap-budget", "64G", "--poll", self.poll]
        argv = [self.python, str(self.shim), "guard", *flags, "--", self.bench.hog, *growing("--hold", "15s")]
        subprocess.run(argv, env=self.bench.env, capture_output=True, timeout=90)
        return Log.read(self.bench.log).most() - line


def ready(bench: Bench) -> list:
    """Those that can be measured; a row for each other."""
    found = [Ours(bench)]
    makers = {
        "earlyoom": lambda: Earlyoom(bench),
        "stageload 0.1.1 (Python)": lambda: Seed(bench, "50ms", RUNS),
        "stageload 0.1.1 (Python), `--poll 5s`": lambda: Seed(bench, "5s", 2),
    }
    for name, make in makers.items():
        try:
            found.append(make())
        except NotHere as why:
            print(f"| {name} | {why} | | | | | |", flush=True)
    return found


def figures(guard, over: list[float], ours: float) -> str:
    """A hog that reached its bound would have gone on: then the figures are the least it can be."""
    least = "at least " if max(over) >= MOST - 1.2 * GB else ""
    median = statistics.median(over)
    cells = [
        guard.name, guard.asked, guard.polls, str(len(over)),
        f"{least}{median / MB:.0f} ({min(over) / MB:.0f}–{max(over) / MB:.0f})", f"{least}{median / ours:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def compare(bench: Bench) -> None:
    print("\n## Peers on the same hog\n")
    print("The hog of one process, in turns. Overshoot: the most it held over what it held when the peer's line was")
    print("crossed. earlyoom guards a machine, so its line is in memory available; it ran in a process namespace with the")
    print("hog alone. The seed has no limit for a job; its line is the machine's level, and its gauges, which are macOS's,")
    print("were replaced by Linux's (`MemAvailable`, swap).\n")
    print("| guard | stops when | looks each | runs | overshoot MB, median (least–most) | ratio to ours |")
    print("|---|---|---|---|---|---|")
    guards = ready(bench)
    over: dict[str, list[float]] = {guard.name: [] for guard in guards}
    for turn in range(RUNS):
        for guard in guards:
            if turn < guard.runs:
                over[guard.name].append(bench.in_pace(guard.once))
    ours = statistics.median(over[guards[0].name])
    for guard in guards:
        print(figures(guard, over[guard.name], ours), flush=True)
