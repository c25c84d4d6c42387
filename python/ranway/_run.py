"""Running scenarios."""

import os
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from ranway import _ranway
from ranway._results import Results
from ranway._scenario import Scenario


class Progress(NamedTuple):
    """The progress of a batch of runs."""

    share: float
    """The completed share of all simulated time (0 to 1)."""
    runs_done: int
    """Runs that have finished."""
    runs: int
    """Total number of runs."""


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    runs: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    progress: bool | Callable[[Progress], object] | None = True,
    out: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs every repetition of every point of `scenario`, and returns when all have finished.

    - `runs`, `seed`: repetitions of each point and the seed of all randomness, if not those of the scenario.
    - `jobs`: threads; all cores if it is not given. It changes the speed and nothing else.
    - `progress`: a function that is called now and then, in this thread; or True for a bar with an estimate on standard
      error where that is a terminal; or None for silence.
    - `out`: a directory to write the results to, as `Results.write` does, and with them the packet captures that the
      scenario asks for (`record.pcap`), which are written nowhere else.

    Other Python threads continue in the meantime. Ctrl-C stops the run, which then writes nothing to `out`.

    Raises `ScenarioError`, `OSError` or `RanwayError`.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario(scenario)
    changes = {key: value for key, value in (("runs", runs), ("seed", seed)) if value is not None}
    if changes:
        scenario = scenario.set(changes)
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs={jobs}: must be at least 1")
    bar = _Bar(scenario.title) if progress is True and sys.stderr is not None and sys.stderr.isatty() else None
    tell = progress if callable(progress) else bar
    callback = None if tell is None else lambda *how_far: tell(Progress(*how_far))
    try:
        return Results(_ranway.run(scenario._loaded, jobs or 0, callback, out))
    finally:
        if bar is not None:
            bar.clear()


class _Bar:
    """A progress line on standard error, updated in place."""

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
