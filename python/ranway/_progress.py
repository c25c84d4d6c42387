"""How far runs are, and the bar that shows it."""

import sys
import time
from typing import NamedTuple


class Progress(NamedTuple):
    """How far it is."""

    share: float
    """The share of all simulated time that is behind (0 to 1)."""
    runs_done: int
    """Runs that have finished."""
    runs: int
    """Runs in all."""


class Bar:
    """A line on standard error that is written over."""

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
