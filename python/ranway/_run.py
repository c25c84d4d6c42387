"""Running scenarios by name."""

import os
from collections.abc import Callable, Iterable

from ranway._jobs import Job
from ranway._progress import Progress
from ranway._results import Results
from ranway._scenario import Scenario


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    runs: int | None = None,
    seed: int | None = None,
    jobs: Iterable[Job | tuple[int, int]] | None = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], object] | None = True,
    out: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs all jobs of a scenario, or those of a list, and returns when they have finished.

    `scenario` is a `Scenario`, a scenario file, or the name of a built-in scenario. The other arguments are
    those of `Scenario.run`.

    Raises `ScenarioError`, `OSError` or `RanwayError`; `ValueError` for jobs that the scenario does not have.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario(scenario)
    return scenario.run(runs=runs, seed=seed, jobs=jobs, threads=threads, progress=progress, out=out)
