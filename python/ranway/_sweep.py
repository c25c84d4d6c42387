"""Sweeps: all jobs of a scenario on all cores or on a cluster, resumable, with results in bounded memory."""

import functools
import itertools
import math
import os
import pickle
import queue
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from ranway import _jobs, _ranway
from ranway._errors import RanwayError
from ranway._jobs import Job
from ranway._progress import Progress, shown, unpacked
from ranway._scenario import Scenario

# The work of a chunk, in seconds.
_CHUNK_S = 30.0
# How often a chunk of jobs may be lost with its worker before the sweep fails.
_LOSSES = 10
# Chunks in flight for each thread of the cluster: one that runs, and one that waits.
_IN_FLIGHT = 2
# No chunk has more than this share of its thread's part of the jobs that are left, so that all threads end together.
_SHARE = 1 / 2
_MOST_JOBS = 10_000
# How long a cluster is without workers before the first warning, and how often it is looked at while no task finishes.
_NO_WORKERS_S = 60.0
_LOOK_S = 1.0


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    client: Any = None,
    runs: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    chunk_s: float = _CHUNK_S,
    progress: bool | Callable[[Progress], object] | None = True,
    keep: bool = False,
) -> Path:
    """Runs all jobs of a scenario, writes the results to the directory `out`, and returns its path, for `ranway.read`.

    The files are those of `Scenario.run`, byte for byte, except for the timing. Each job's results are written to the
    directory `OUT.sweep` when it finishes. After Ctrl-C, a crash or a full disk, the same call resumes and skips the
    finished jobs; those with a damaged file run again, with a `RuntimeWarning`. Memory does not grow with the number
    of jobs.

    - `client`: a `dask.distributed.Client`, to run the jobs on its cluster, on all threads of its workers, which
      must see `out` under the same path. Jobs of workers that die run again elsewhere. By default the jobs run in this
      process.
    - `runs`, `seed`: repetitions of each point and the seed of all randomness, if not those of the scenario.
    - `threads`: the number of threads of this process; by default one per core.
    - `chunk_s`: the work that a task of the cluster gets at a time, in seconds, if there is enough for all threads.
    - `progress`: a function that is called with the `Progress` from time to time; or True for a bar with an estimate on
      standard error if that is a terminal; or None for no output.
    - `keep`: keep `OUT.sweep` when the results are written.

    Without any worker, the sweep waits for new ones. After a minute, then two, four and so on, it warns with a
    `RuntimeWarning`, which `warnings.simplefilter("error", RuntimeWarning)` makes an error.

    Raises `ScenarioError`, `OSError` or `RanwayError`, the last one also if the cluster's scheduler is gone.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario(scenario)
    scenario = scenario._varied(runs, seed)
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: must be at least 1")
    if not chunk_s > 0:
        raise ValueError(f"chunk_s={chunk_s}: must be more than 0 s")
    place = run_jobs(scenario, Path(out), client, threads=threads, chunk_s=chunk_s, progress=progress)
    _ranway.sweep_merge([_in_progress(place)], place, keep)
    return place


def run_jobs(
    scenario: Scenario,
    out: Path,
    client: Any = None,
    *,
    threads: int | None = None,
    chunk_s: float = _CHUNK_S,
    progress: bool | Callable[[Progress], object] | None = True,
) -> Path:
    """Runs the jobs that are left of a sweep. Arguments are those of `sweep`. Returns the absolute path of `out`."""
    place = out.absolute()
    work = _in_progress(place)
    with shown(progress, scenario.title) as tell:
        every, left, repairs = _ranway.sweep_jobs(scenario._loaded, work, place)
        for line in repairs:
            warnings.warn(line, RuntimeWarning, stacklevel=3)
        if client is not None:
            _on_cluster(client, scenario, work, [Job(*job) for job in left], len(every), chunk_s, tell)
        elif left:
            _ranway.sweep_run(scenario._loaded, work, _jobs.texts(left), threads or 0, unpacked(tell))
    return place


def _in_progress(place: Path) -> Path:
    """Returns the directory of the sweep whose results go to `place`."""
    return place.with_name(place.name + ".sweep")


@functools.lru_cache(maxsize=2)
def _unpickled(scenario: bytes) -> Scenario:
    """Returns a scenario. A worker gets it with each of its tasks, and would read and check it each time."""
    return cast(Scenario, pickle.loads(scenario))


def _work(scenario: bytes, work: Path, jobs: list[Job]) -> tuple[int, float]:
    """Runs jobs in a worker, those that have not finished. Returns how many these were, and the seconds they took."""
    start = time.monotonic()
    count = _ranway.sweep_run(_unpickled(scenario)._loaded, work, _jobs.texts(jobs), 1)
    return count, time.monotonic() - start


class Costs:
    """What jobs take, in seconds, estimated from the chunks that have finished."""

    def __init__(self) -> None:
        self.jobs = 0
        self.seconds = 0.0
        self.by_point: dict[int, float] = {}

    def learn(self, chunk: Sequence[Job], count: int, seconds: float) -> None:
        """Notes that `count` jobs of the chunk took this long together; the others had finished before."""
        if count == 0:
            return
        self.jobs += count
        self.seconds += seconds
        for job in chunk:
            self.by_point[job.point] = seconds / count

    def of(self, job: Job) -> float:
        """Returns the mean of the last chunk with the job's point, else that of all jobs, else infinity."""
        return self.by_point.get(job.point, self.seconds / self.jobs if self.jobs else math.inf)


def chunk_size(jobs: Sequence[Job], left: int, threads: int, chunk_s: float, costs: Costs) -> int:
    """Returns how many of the first jobs make the next chunk, at least one.

    They take about `chunk_s` seconds, but are never more than half of a thread's part of the `left` jobs that no chunk
    has yet: estimates may be wrong, and the last chunks have to be small for all threads to end together.
    """
    most = min(len(jobs), _MOST_JOBS, int(left / threads * _SHARE))
    seconds = 0.0
    for size in range(most):
        seconds += costs.of(jobs[size])
        if seconds > chunk_s:
            return max(size, 1)
    return max(most, 1)


def _on_cluster(
    client: Any,
    scenario: Scenario,
    work: Path,
    left: list[Job],
    every: int,
    chunk_s: float,
    tell: Callable[[Progress], object] | None,
) -> None:
    """Runs jobs on a cluster, in chunks of a size that follows from how long earlier ones took."""
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    pickled = pickle.dumps(scenario)
    waiting = [left]
    losses, checked = 0, False
    costs = Costs()
    done = every - len(left)
    chunks: dict[Any, list[Job]] = {}
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    seen, patience_s = time.monotonic(), _NO_WORKERS_S
    gone = f"the cluster's scheduler is gone or has cancelled jobs; finished ones are in {work}; the same call resumes"

    def count_threads() -> int:
        """Returns the threads of all workers. Warns if there has been none for some time."""
        nonlocal seen, patience_s
        try:
            threads: int = sum(client.nthreads().values())
        except OSError as error:
            raise RanwayError(gone) from error
        now = time.monotonic()
        if threads:
            seen, patience_s = now, _NO_WORKERS_S
        elif now - seen >= patience_s:
            patience_s *= 2
            without = f"the cluster has had no workers for {now - seen:.0f} s"
            warnings.warn(f"{without}; {every - done} of {every} jobs are left", RuntimeWarning, stacklevel=5)
        return threads

    def submit() -> None:
        threads = max(count_threads(), 1)
        while waiting and len(chunks) < _IN_FLIGHT * threads:
            unsent = sum(map(len, waiting))
            jobs = waiting.pop()
            size = chunk_size(jobs, unsent, threads, chunk_s, costs)
            chunk, rest = jobs[:size], jobs[size:]
            if rest:
                waiting.append(rest)
            future = client.submit(_work, pickled, work, chunk, pure=False)
            chunks[future] = chunk
            future.add_done_callback(finished.put)

    def show() -> None:
        if tell is not None:
            tell(Progress(done / every, done, every))

    show()
    try:
        if left:
            submit()
        while chunks:
            try:
                future = finished.get(timeout=_LOOK_S)
            except queue.Empty:
                count_threads()
                continue
            chunk = chunks.pop(future)
            try:
                count, seconds = future.result()
            except CancelledError as error:
                raise RanwayError(gone) from error
            except KilledWorker:
                # Its worker died, and so did those that tried after it. Some jobs may have finished.
                losses += 1
                if losses > _LOSSES:
                    raise RanwayError(f"workers died {losses} times while they ran jobs {_named(chunk)}") from None
                waiting.append(chunk)
            else:
                costs.learn(chunk, count, seconds)
                done += len(chunk)
                if not checked:
                    _check_shared(work, chunk)
                    checked = True
            show()
            submit()
    finally:
        client.cancel(list(chunks))


def _check_shared(work: Path, chunk: list[Job]) -> None:
    """Raises an error unless what workers write is seen here."""
    if not all((work / f"{job.point}-{job.run}.tar").exists() for job in chunk):
        raise RanwayError(f"{work}: workers write it elsewhere: choose `out` on a file system that they share")


def _named(jobs: list[Job]) -> str:
    first = ", ".join(map(str, itertools.islice(jobs, 3)))
    return first if len(jobs) <= 3 else f"{first} and {len(jobs) - 3} more"
