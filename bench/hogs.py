"""Hogs (`crates/stageload-cli/examples/hog.rs`): started under whatever shall stop them, and what
their log says afterwards. Standard library only; Linux.
"""

import os
import select
import struct
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

GB = 1 << 30
MB = 1 << 20
PACE = 1.7 * GB  # the seed's burst, per second
LIMIT = GB
MOST = 2 * GB
BLOCK = 64 << 10  # the hog's LOG_BLOCK
SLOW = 0.9  # a run in which the hog kept less of its pace does not count
# The system takes free memory back from a virtual machine; the first touch of it is slow.
WARM_UPS = 8


def growing(*flags: str) -> list[str]:
    """The flags of a hog at the seed's pace, up to the most that a bench may take."""
    to = [] if "--to" in flags else ["--to", "2G"]
    return ["--rate", f"{PACE / GB}G/s", *to, "--step", "2M", *flags]


@dataclass
class Log:
    """What the processes of one hog held, over time: (nanoseconds, bytes in all)."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def read(path: Path) -> "Log":
        raw = path.read_bytes()
        noted = []
        for start in range(0, len(raw), BLOCK):
            _, count = struct.unpack_from("QQ", raw, start)
            pairs = struct.iter_unpack("QQ", raw[start + 16 : start + 16 * (count + 1)])
            noted += [(t, start, held) for t, held in pairs]
        held_by: dict[int, int] = {}
        log, total = Log(), 0
        for t, process, held in sorted(noted):
            total += held - held_by.get(process, 0)
            held_by[process] = held
            log.steps.append((t, total))
        return log

    def most(self) -> int:
        return max((held for _, held in self.steps), default=0)

    def crossed(self, line: float) -> int | None:
        """When it first held more than `line`."""
        return next((t for t, held in self.steps if held > line), None)

    def pace(self, line: float) -> float:
        """Bytes per second up to `line`, from where it held a third of it: its shares are there at once."""
        upto = [step for step in self.steps if step[1] <= line]
        rising = [step for step in upto if step[1] >= line / 3]
        (t0, held0), (t1, held1) = rising[0], rising[-1]
        return (held1 - held0) / ((t1 - t0) / 1e9)


def pids(path: Path, count: int) -> list[int]:
    """The processes of a hog, once all of them have begun."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        raw = path.read_bytes() if path.exists() else b""
        found = [struct.unpack_from("Q", raw, i)[0] for i in range(0, len(raw), BLOCK)]
        if len(found) == count and all(found):
            return found
        time.sleep(0.002)
    raise RuntimeError(f"the hog has not begun: {path}")


def last_gone(processes: list[int]) -> int:
    """Waits for the last of them to end, its memory given back; the time in nanoseconds. 20 s at most."""
    handles = [os.pidfd_open(pid) for pid in processes]
    poll = select.poll()
    for handle in handles:
        poll.register(handle, select.POLLIN)
    ended = 0
    deadline = time.monotonic() + 20
    while handles and time.monotonic() < deadline:
        for handle, _ in poll.poll(1000):
            ended = time.monotonic_ns()
            poll.unregister(handle)
            handles.remove(handle)
            os.close(handle)
    if handles:
        raise RuntimeError("a hog outlived its guard")
    return ended


class Bench:
    """The commands that are measured, and a folder to write to."""

    def __init__(self, stageload: str, hog: str, work: Path) -> None:
        self.stageload, self.hog, self.work = stageload, hog, work
        # A log on a disk would wait for the disk.
        shm = Path("/dev/shm")
        self.log = (shm if shm.is_dir() else work) / f"stageload-hog-{os.getpid()}"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("STAGELOAD_")}
        self.env["HOG_LOG"] = str(self.log)
        self.repeated = 0

    def warm_up(self) -> None:
        """Hogs that nobody stops, until one keeps its pace."""
        for _ in range(WARM_UPS):
            self.forget()
            argv = [self.hog, *growing("--hold", "1ms")]
            subprocess.run(argv, env=self.env, check=True, timeout=90)
            if Log.read(self.log).pace(MOST) >= PACE * 0.97:
                return

    def forget(self) -> None:
        self.log.unlink(missing_ok=True)

    def guard(self, flags: list[str], job: list[str], **more) -> subprocess.Popen:
        """A guard that minds nothing but what the flags say."""
        quiet = ["--wait-free", "0", "--kill-free", "1", "--swap-budget", "64G"]
        argv = [self.stageload, "guard", *quiet, *flags, "--", *job]
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **more}
        return subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, text=True, **more)

    def in_pace(self, once):
        """What `once` returns, after a warm-up; again where the hog was too slow to count."""
        for _ in range(WARM_UPS):
            self.warm_up()
            self.forget()
            result = once()
            if Log.read(self.log).pace(LIMIT) >= PACE * SLOW:
                return result
            self.repeated += 1
        return result
