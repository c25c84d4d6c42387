"""What a sweep costs on a Dask cluster beside its simulations: scheduling for each task, merging for each job's file.

Needs the Python package with `dask`, optimised (`maturin develop --release --manifest-path python/Cargo.toml`).

- `small tasks`: 10,000 jobs of some milliseconds on a LocalCluster of two processes, one job a task. The processor time
  of this process, in which client and scheduler run, is what a task costs before and after its jobs; it comes one task
  after the other, however many processors the cluster has. The merge follows.
- `large tasks`: the same jobs, many a task. What workers take longer with small tasks is what a task costs them; the
  workers of a cluster share it. It grows with the points of the scenario (`--points`).
- `many threads`: jobs that sleep for 30 s, on a cluster of 1,000 threads, three for each thread, to compare what is
  predicted for so many processors with what the scheduler does.

The model, for N jobs of T seconds in n tasks on P processors, with these costs for each task: s seconds in client and
scheduler, w in a worker; and m for the merge of each job:

    max((N T + n w) / P + P s, n s + T) + N m

P s is when the last processor has got its first task; n s + T holds where the scheduler is the limit.
`target/bench/sweep-tasks.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster
from sweep import CLUSTER, CLUSTER_JOB_S, CLUSTER_JOBS, ROOT, SHORT_JOBS, scenario

import ranway
from ranway import _sweep

# One job a task; and as many as a second takes.
SMALL_S, LARGE_S = 1e-9, 1.0
WORKERS = 2
# Jobs that sleep, for each thread.
ROUNDS = 3


def counted(client: Any) -> list[int]:
    """Makes the client count the tasks that it submits. Returns a list with their number."""
    submit, count = client.submit, [0]

    def one_more(*arguments: Any, **options: Any) -> Any:
        count[0] += 1
        return submit(*arguments, **options)

    client.submit = one_more
    return count


def workers_cpu_s() -> float:
    """Processor seconds of the processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def on_cluster(threads: int, run: Callable[[Any, Callable[[ranway.Progress], None]], object]) -> dict[str, float]:
    """Runs a sweep on a LocalCluster. `run` gets the client, and a function that takes the progress."""
    workers_before = workers_cpu_s()
    ended, cpu_s = 0.0, 0.0

    def note(progress: ranway.Progress) -> None:
        nonlocal ended, cpu_s
        if progress.runs_done == progress.runs:
            ended, cpu_s = time.monotonic(), time.process_time()

    options = {"n_workers": WORKERS, "threads_per_worker": threads // WORKERS, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.wait_for_workers(WORKERS)
        tasks = counted(client)
        start, cpu_start = time.monotonic(), time.process_time()
        run(client, note)
        merge_s = time.monotonic() - ended
    return {
        "tasks": tasks[0],
        "s": ended - start,
        "client_cpu_s": cpu_s - cpu_start,
        "workers_cpu_s": workers_cpu_s() - workers_before,
        "merge_s": merge_s,
    }


def swept(path: Path, out: Path, chunk_s: float) -> dict[str, float]:
    """Runs a scenario on a LocalCluster, in tasks of so many seconds."""

    def run(client: Any, note: Callable[[ranway.Progress], None]) -> None:
        ranway.sweep(path, out=out, client=client, chunk_s=chunk_s, progress=note)

    return on_cluster(WORKERS, run)


def slept(path: Path, work: Path, threads: int, job_s: float) -> dict[str, float]:
    """Runs jobs that sleep, one a task, on a cluster of so many threads. Nothing is merged."""
    work.mkdir()
    jobs = [ranway.Job(0, run) for run in range(ROUNDS * threads)]

    def sleep(_: bytes, work: Path, jobs: list[ranway.Job]) -> tuple[int, float]:
        start = time.monotonic()
        for job in jobs:
            time.sleep(job_s)
            (work / f"{job.point}-{job.run}.tar").touch()
        return len(jobs), time.monotonic() - start

    def run(client: Any, note: Callable[[ranway.Progress], None]) -> None:
        _sweep._on_cluster(client, ranway.Scenario(path), work, jobs, len(jobs), SMALL_S, note)

    simulate, _sweep._work = _sweep._work, sleep
    try:
        return on_cluster(threads, run)
    finally:
        _sweep._work = simulate


def predicted_s(jobs: int, job_s: float, tasks: int, processors: int, costs: dict[str, float]) -> float:
    """Returns the seconds that the model in this file's head gives."""
    work_s = (jobs * job_s + tasks * costs["worker_s"]) / processors + processors * costs["client_s"]
    return max(work_s, tasks * costs["client_s"] + job_s) + jobs * costs["merge_s"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=SHORT_JOBS, help="short jobs [default: %(default)s]")
    parser.add_argument("--points", type=int, default=100, help="points that these share [default: %(default)s]")
    parser.add_argument("--threads", type=int, default=CLUSTER, help="threads that sleep [default: %(default)s]")
    parser.add_argument("--job-s", type=float, default=CLUSTER_JOB_S, help="for so long each [default: %(default)s]")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "sweep-tasks.json")
    arguments = parser.parse_args()
    jobs, threads, job_s = arguments.jobs, arguments.threads, arguments.job_s
    (ROOT / "target").mkdir(exist_ok=True)
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as directory:
        place = Path(directory)
        path = place / "short.toml"
        path.write_text(scenario(arguments.points, 10).replace("runs = 1", f"runs = {jobs // arguments.points}"))
        small = found["small tasks"] = swept(path, place / "small", SMALL_S)
        large = found["large tasks"] = swept(path, place / "large", LARGE_S)
        many = found["many threads"] = slept(path, place / "slept", threads, job_s)
    more_cpu_s, more_tasks = small["workers_cpu_s"] - large["workers_cpu_s"], small["tasks"] - large["tasks"]
    costs = {
        "client_s": small["client_cpu_s"] / small["tasks"],
        "worker_s": max(more_cpu_s / max(more_tasks, 1), 0.0),
        "merge_s": small["merge_s"] / jobs,
    }
    found["costs"] = costs
    for what, of in found.items():
        print(f"{what:14}" + "".join(f"{value:12.5g} {unit}" for unit, value in of.items()))
    print(
        f"each task: {costs['client_s'] * 1e3:.2f} ms in client and scheduler, {costs['worker_s'] * 1e3:.2f} ms in a"
        f" worker; each job: {costs['merge_s'] * 1e3:.2f} ms for the merge"
    )
    tasks = ROUNDS * threads
    expected_s = predicted_s(tasks, job_s, tasks, threads, {**costs, "worker_s": 0.0, "merge_s": 0.0})
    print(
        f"{tasks:,} jobs that sleep for {job_s:g} s on {threads:,} threads: {many['s']:.1f} s, predicted"
        f" {expected_s:.1f} s, {tasks * job_s / threads:.1f} s without any cost"
    )
    for processors in (WORKERS, CLUSTER):
        ideal_s = CLUSTER_JOBS * CLUSTER_JOB_S / processors
        total_s = predicted_s(CLUSTER_JOBS, CLUSTER_JOB_S, CLUSTER_JOBS, processors, costs)
        print(
            f"{CLUSTER_JOBS:,} jobs of {CLUSTER_JOB_S:.0f} s, one a task, on {processors:,} processors:"
            f" {total_s:,.0f} s, {total_s / ideal_s - 1:.1%} more than without any cost"
        )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
