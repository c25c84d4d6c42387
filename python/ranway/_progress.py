"""Progress of runs, and the bar that shows it."""

import sys
import time
from typing import NamedTuple


class Progress(NamedTuple):
    """The progress of a call of `run`."""

    share: float
    """The simulated share of the total time, 0 to 1."""
    runs_done: int
    """Number of runs that have finished."""
    runs: int
    """Total number of runs."""


class Bar:
    """A progress bar on standard error: one line that is overwritten."""

    WIDTH = 30

    def __init__(self, title: str) -> None:
        self.title = title[:30]
        self.start = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        full = round(progress.share * self.WIDTH)
        line = f"{self.title} [{'=' * full:{self.WIDTH}}] {progress.share:4.0%}"
        line += f"  {progress.runs_done} of {progress.runs} runs"
        if progress.share > 0:
            left = (time.monotonic() - self.start) * (1 / progress.share - 1)
            line += f"  {left // 60:.0f}:{left % 60:02.0f} to go"
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
