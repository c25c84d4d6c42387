"""The unit of work: one run of one point."""

import operator
from collections.abc import Iterable
from typing import NamedTuple


class Job(NamedTuple):
    """One run of one point of a scenario: the smallest unit of work.

    Jobs depend on nothing but the scenario, so they can run in any order, in any process, on any machine. `str` gives
    `point/run`, as in `3/0`.
    """

    point: int
    """Point of the sweep, from 0: its values are `scenario.points[point]`."""
    run: int
    """Repetition of the point, from 0."""

    def __str__(self) -> str:
        return f"{self.point}/{self.run}"


def texts(jobs: Iterable[Job | tuple[int, int]]) -> list[str]:
    """Returns the jobs as texts. Raises `TypeError` for anything that is not a job."""
    if isinstance(jobs, int):
        raise TypeError(f"jobs={jobs}: should be a list of jobs; threads={jobs} sets the number of threads")
    return [str(_job(job)) for job in jobs]


def _job(job: Job | tuple[int, int]) -> Job:
    try:
        point, run = job
        return Job(operator.index(point), operator.index(run))
    except (TypeError, ValueError):
        raise TypeError(f"jobs: {job!r} should be a Job or a pair (point, run)") from None
