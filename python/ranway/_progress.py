"""Progress of runs, and the bar that shows it."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        self.start: tuple[float, float] | None = None

    def __call__(self, progress: Progress) -> None:
        full = round(progress.share * self.WIDTH)
        line = f"{self.title} [{'=' * full:{self.WIDTH}}] {progress.share:4.0%}"
        line += f"  {progress.runs_done} of {progress.runs} runs"
        # What had finished before is no measure of the time that the rest takes.
        now = time.monotonic()
        start, share = self.start = self.start or (now, progress.share)
        if progress.share > share:
            left = (now - start) * (1 - progress.share) / (progress.share - share)
            line += f"  {left // 60:.0f}:{left % 60:02.0f} to go"
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def shown(
    progress: bool | Callable[[Progress], object] | None, title: str
) -> Iterator[Callable[[Progress], object] | None]:
    """Returns the function to call with the progress: the given one, a bar if `True` and on a terminal, or none."""
    bar = Bar(title) if progress is True and sys.stderr is not None and sys.stderr.isatty() else None
    try:
        yield progress if callable(progress) else bar
    finally:
        if bar is not None:
            bar.clear()


def unpacked(tell: Callable[[Progress], object] | None) -> Callable[[float, int, int], object] | None:
    """Returns what the simulator calls with the share, the finished runs and all runs."""
    return None if tell is None else lambda *how_far: tell(Progress(*how_far))
