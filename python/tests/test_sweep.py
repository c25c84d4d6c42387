"""Sweeps: the same bytes as one run, whatever happens to the processes on the way."""

import heapq
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranway
from conftest import ROOT, TOML, files
from ranway import _ranway, _sweep

distributed = pytest.importorskip("distributed")

# Dask warns of what its own parts do.
PAGE = (ROOT / "docs/src/sweeps.md").read_text()
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def lossy(scenario: ranway.Scenario) -> ranway.Scenario:
    """Twelve jobs of some tens of milliseconds."""
    return scenario.set({"duration": "60 s"}, runs=6).sweep(loss=[1e-4, 1e-2])


@pytest.fixture(scope="module")
def whole(lossy: ranway.Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole") / "results"
    lossy.run(progress=None, out=place)
    return place


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


def test_a_sweep_here_writes_what_a_run_writes(lossy: ranway.Scenario, whole: Path, tmp_path: Path) -> None:
    told: list[ranway.Progress] = []
    place = ranway.sweep(lossy, out=tmp_path / "sweep", progress=told.append)
    assert place == tmp_path / "sweep"
    assert files(place) == files(whole)
    assert told[-1] == (1.0, 12, 12)
    assert [entry.name for entry in tmp_path.iterdir()] == ["sweep"]


def test_an_exception_from_progress_stops_it_and_the_same_call_resumes(
    lossy: ranway.Scenario, whole: Path, tmp_path: Path
) -> None:
    def stop(progress: ranway.Progress) -> None:
        if progress.runs_done >= 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        ranway.sweep(lossy.set({"duration": "600 s"}), out=tmp_path / "sweep", threads=1, progress=stop)
    finished = sorted((tmp_path / "sweep.sweep").glob("*.tar"))
    assert 2 <= len(finished) < 12
    with pytest.raises(ranway.RanwayError, match="another sweep"):
        ranway.sweep(lossy, out=tmp_path / "sweep", progress=None)
    before = [file.stat().st_mtime_ns for file in finished]
    ranway.sweep(lossy.set({"duration": "600 s"}), out=tmp_path / "sweep", progress=None, keep=True)
    assert [file.stat().st_mtime_ns for file in finished] == before


def test_a_cluster_writes_what_a_run_writes(cluster: Any, lossy: ranway.Scenario, whole: Path, tmp_path: Path) -> None:
    with distributed.Client(cluster) as client:
        told: list[ranway.Progress] = []
        place = ranway.sweep(lossy, out=tmp_path / "sweep", client=client, progress=told.append)
    assert files(place) == files(whole)
    assert told[-1] == (1.0, 12, 12)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_damaged_jobs_run_again_with_a_warning(
    cluster: Any, lossy: ranway.Scenario, whole: Path, tmp_path: Path, on_cluster: bool
) -> None:
    work = tmp_path / "sweep.sweep"
    place = ranway.sweep(lossy, out=tmp_path / "sweep", progress=None, keep=True)
    kept = {file: file.stat().st_mtime_ns for file in work.glob("*.tar")}
    damaged = [work / "0-1.tar", work / "1-0.tar"]
    os.truncate(damaged[0], damaged[0].stat().st_size // 2)
    damaged[1].write_bytes(bytes(10_000))
    (work / "sweep.json").unlink()
    with distributed.Client(cluster) as client, pytest.warns(RuntimeWarning) as warned:
        ranway.sweep(lossy, out=place, client=client if on_cluster else None, progress=None, keep=True)
    said = [str(warning.message) for warning in warned if warning.filename == __file__]
    assert said[0].endswith("sweep.json: it was lost or damaged, and has been made anew")
    assert said[1].endswith("files are damaged, and these jobs run again: 0/1, 1/0") and len(said) == 2
    again = {file for file, before in kept.items() if file.stat().st_mtime_ns != before}
    assert again == set(damaged)
    assert files(place) == files(whole)


def test_a_worker_reads_the_scenario_once(lossy: ranway.Scenario) -> None:
    pickled = pickle.dumps(lossy)
    assert _sweep._unpickled(pickled) is _sweep._unpickled(pickle.dumps(lossy))
    assert _sweep._unpickled(pickled).jobs() == lossy.jobs()


def test_workers_that_are_killed_lose_no_finished_job(lossy: ranway.Scenario, tmp_path: Path) -> None:
    long = lossy.set({"duration": "300 s"}, runs=20)
    long.run(progress=None, out=tmp_path / "whole")
    choice = random.Random(1)
    over = threading.Event()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        killed = 0

        def kill() -> None:
            nonlocal killed
            while not over.wait(0.4):
                workers = [nanny.pid for nanny in cluster.workers.values() if nanny.pid is not None]
                if workers and killed < 6:
                    os.kill(choice.choice(workers), signal.SIGKILL)
                    killed += 1

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            start = time.monotonic()
            place = ranway.sweep(long, out=tmp_path / "sweep", client=client, chunk_s=1.0, progress=None)
        finally:
            over.set()
            killer.join()
    assert killed >= 2, f"it took {time.monotonic() - start:.1f} s, too short to kill any worker"
    assert files(place) == files(tmp_path / "whole")


def dask(what: str, *options: str | Path) -> subprocess.Popen[bytes]:
    """Starts a scheduler or a worker of Dask as a process."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--no-dashboard", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_half_of_the_workers_are_lost_for_good(scenario: ranway.Scenario, tmp_path: Path) -> None:
    many = scenario.set({"duration": "4 s"}, runs=100).sweep(loss=[1e-4, 1e-3, 1e-2, 2e-2])
    workers: list[subprocess.Popen[bytes]] = []
    killed_at: list[int] = []

    def kill(progress: ranway.Progress) -> None:
        if len(killed_at) < 2 and progress.runs_done >= (40, 120)[len(killed_at)]:
            workers[len(killed_at)].kill()
            killed_at.append(progress.runs_done)

    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        try:
            for _ in range(4):
                workers.append(dask("worker", cluster.scheduler_address, "--nthreads", "1", "--no-nanny"))
            client.wait_for_workers(4, timeout=30)
            place = ranway.sweep(many, out=tmp_path / "sweep", client=client, chunk_s=0.5, progress=kill)
            assert len(client.nthreads()) == 2
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    assert len(killed_at) == 2 and killed_at[-1] < 360, f"killed after {killed_at} of 400 jobs"
    many.run(progress=None, out=tmp_path / "whole")
    assert files(place) == files(tmp_path / "whole")


def chunks_of(jobs: list[ranway.Job], seconds: dict[int, float], threads: int) -> tuple[list[int], float]:
    """The sizes of all chunks, and how much longer the threads take than if they shared the work equally.

    `seconds` is what a job of each point takes.
    """
    costs, sizes, left = _sweep.Costs(), [], jobs
    free_at = [(0.0, thread, 0.0, list[ranway.Job]()) for thread in range(threads)]
    while left:
        now, thread, took, chunk = heapq.heappop(free_at)
        costs.learn(chunk, len(chunk), took)
        size = _sweep.chunk_size(left, len(left), threads, 30.0, costs)
        sizes.append(size)
        chunk, left = left[:size], left[size:]
        took = sum(seconds[job.point] for job in chunk)
        heapq.heappush(free_at, (now + took, thread, took, chunk))
    return sizes, max(now for now, *_ in free_at) / (sum(seconds[job.point] for job in jobs) / threads)


def test_points_of_different_cost_are_shared_by_all_workers() -> None:
    jobs = [ranway.Job(point, run) for point in range(4) for run in range(10)]
    sizes, longer = chunks_of(jobs, {0: 0.001, 1: 1.0, 2: 1.0, 3: 1.0}, threads=2)
    assert max(sizes) <= 10 and longer < 1.1, f"{sizes}: {longer}"
    sizes, longer = chunks_of(jobs, {0: 1.0, 1: 1.0, 2: 1.0, 3: 0.001}, threads=2)
    assert max(sizes) <= 10 and longer < 1.1, f"{sizes}: {longer}"
    sizes, longer = chunks_of(jobs, {0: 0.001, 1: 40.0, 2: 40.0, 3: 40.0}, threads=4)
    assert longer < 1.4, f"{sizes}: {longer}"


def test_equal_jobs_are_shared_by_all_workers() -> None:
    sizes, longer = chunks_of([ranway.Job(0, run) for run in range(150)], {0: 0.2}, threads=2)
    assert sizes[:3] == [1, 1, 37] and sizes[-1] == 1 and longer < 1.1, f"{sizes}: {longer}"


def test_chunks_take_as_long_as_they_should_while_there_is_work() -> None:
    jobs = [ranway.Job(0, run) for run in range(10_000)] + [ranway.Job(1, run) for run in range(10_000)]
    costs = _sweep.Costs()
    assert _sweep.chunk_size(jobs, 20_000, 8, 30.0, costs) == 1, "nothing is known"
    costs.learn(jobs[:1], 1, 0.5)
    assert _sweep.chunk_size(jobs, 20_000, 8, 30.0, costs) == 60
    assert _sweep.chunk_size(jobs[10_000:], 10_000, 8, 30.0, costs) == 60, "the mean of all"
    costs.learn(jobs[10_000:10_001], 1, 40.0)
    assert _sweep.chunk_size(jobs[10_000:], 10_000, 8, 30.0, costs) == 1
    assert _sweep.chunk_size(jobs[9_990:], 10_010, 8, 30.0, costs) == 10, "10 cheap ones, before the dear ones"
    assert _sweep.chunk_size(jobs[:40], 20_000, 8, 30.0, costs) == 40, "those of a chunk that was lost"


def test_jobs_that_had_finished_before_teach_nothing(lossy: ranway.Scenario, tmp_path: Path) -> None:
    work = tmp_path / "sweep.sweep"
    every, *_ = _ranway.sweep_jobs(lossy._loaded, work, tmp_path / "sweep")
    jobs = [ranway.Job(*job) for job in every]
    pickled = pickle.dumps(lossy)
    assert _sweep._work(pickled, work, jobs[:3])[0] == 3
    again = _sweep._work(pickled, work, jobs[:3])
    assert again[0] == 0
    assert _sweep._work(pickled, work, jobs[:4])[0] == 1
    costs = _sweep.Costs()
    costs.learn(jobs[:3], 3, 90.0)
    costs.learn(jobs[:3], *again)
    assert costs.of(jobs[0]) == 30.0
    costs.learn(jobs[:3], 1, 20.0)
    assert costs.of(jobs[0]) == 20.0


def test_invalid_arguments_are_named(lossy: ranway.Scenario, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="threads=0"):
        ranway.sweep(lossy, out=tmp_path / "x", threads=0)
    with pytest.raises(ValueError, match="chunk_s=0"):
        ranway.sweep(lossy, out=tmp_path / "x", chunk_s=0)
    with pytest.raises(ranway.ScenarioError, match="a sweep writes no captures"):
        ranway.sweep(lossy.set({"record.pcap": ["*"]}), out=tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
    taken = tmp_path / "notes.txt"
    taken.write_text("mine")
    with pytest.raises((OSError, ranway.RanwayError), match=r"notes\.txt"):
        ranway.sweep(lossy, out=taken)
    assert list(tmp_path.iterdir()) == [taken], "no job has run"


def test_jobs_that_are_written_elsewhere_stop_the_sweep(tmp_path: Path) -> None:
    (tmp_path / "0-0.tar").touch()
    _sweep._check_shared(tmp_path, [ranway.Job(0, 0)])
    with pytest.raises(ranway.RanwayError, match="workers write it elsewhere"):
        _sweep._check_shared(tmp_path, [ranway.Job(0, 0), ranway.Job(0, 1)])


def test_a_sweep_without_workers_says_so_and_goes_on_with_new_ones(
    lossy: ranway.Scenario, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sweep, "_NO_WORKERS_S", 0.5)
    place = tmp_path / "sweep"
    workers: list[subprocess.Popen[bytes]] = []
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50, lifetime="1s"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        while client.nthreads():
            time.sleep(0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with pytest.raises(RuntimeWarning, match=r"has had no workers for \d+ s; 12 of 12 jobs are left"):
                ranway.sweep(lossy, out=place, client=client, progress=None)
        later = threading.Timer(
            2.5, lambda: workers.append(dask("worker", cluster.scheduler_address, "--nthreads", "1", "--no-nanny"))
        )
        later.start()
        with pytest.warns(RuntimeWarning, match="no workers") as warned:
            ranway.sweep(lossy, out=place, client=client, progress=None)
        later.join()
    for worker in workers:
        worker.kill()
        worker.wait()
    assert any(warning.filename == __file__ for warning in warned), "it names the line that called"
    assert files(place) == files(whole)


def test_a_sweep_ends_with_its_scheduler(lossy: ranway.Scenario, whole: Path, tmp_path: Path) -> None:
    to = ("--scheduler-file", tmp_path / "scheduler")
    with dask("scheduler", *to, "--port", "0") as scheduler, dask("worker", *to, "--nthreads", "1") as worker:

        def kill(progress: ranway.Progress) -> None:
            if progress.runs_done > 0:
                scheduler.kill()

        try:
            with (
                distributed.Client(scheduler_file=str(tmp_path / "scheduler"), timeout="20s") as client,
                pytest.raises(ranway.RanwayError, match=r"scheduler is gone.*sweep\.sweep; the same call resumes"),
            ):
                ranway.sweep(lossy, out=tmp_path / "sweep", client=client, progress=kill)
        finally:
            scheduler.kill()
            worker.terminate()
    assert any((tmp_path / "sweep.sweep").glob("*.tar"))
    ranway.sweep(lossy, out=tmp_path / "sweep", progress=None)
    assert files(tmp_path / "sweep") == files(whole)


def test_the_costs_of_a_cluster_are_measured(tmp_path: Path) -> None:
    script, out = ROOT / "peers/sweep_tasks.py", tmp_path / "costs.json"
    few = ["--jobs", "40", "--points", "4", "--threads", "8", "--job-s", "0.5"]
    said = subprocess.run(
        [sys.executable, script, *few, "--out", out], check=True, capture_output=True, text=True
    ).stdout
    assert re.search(r"^24 jobs that sleep for 0\.5 s on 8 threads: \d+\.\d s, predicted \d+\.\d s", said, re.MULTILINE)
    found = json.loads(out.read_text())
    assert found["small tasks"]["tasks"] == 40 and found["many threads"]["tasks"] == 24
    assert found["large tasks"]["tasks"] < 40 and found["many threads"]["s"] >= 1.5
    assert found["costs"]["client_s"] > 0 and found["costs"]["merge_s"] > 0


def test_the_documented_cluster_replaces_jobs_that_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    local = pytest.importorskip("dask_jobqueue.local")
    dask_config = pytest.importorskip("dask.config")
    started = 0

    class Counted(local.LocalJob):  # type: ignore[misc]
        async def start(self) -> None:
            nonlocal started
            started += 1
            await super().start()

    def here(*, cores: int, processes: int, memory: str, walltime: str, worker_extra_args: list[str]) -> Any:
        lifetime = worker_extra_args.index("--lifetime") + 1
        return local.LocalCluster(
            cores=cores,
            processes=processes,
            memory="1 GB",
            worker_extra_args=[*worker_extra_args[:lifetime], "3s"],
            scheduler_options={"dashboard_address": ":0"},
            job_cls=Counted,
        )

    def sweep(*args: Any, **options: Any) -> Path:
        deadline = time.monotonic() + 30
        while started < 2:
            assert time.monotonic() < deadline, "the first job of the cluster has ended, and there is no second one"
            time.sleep(0.1)
        return _sweep.sweep(*args, **options)

    monkeypatch.setattr(jobqueue, "SLURMCluster", here)
    monkeypatch.setattr(ranway, "sweep", sweep)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(TOML)
    # There is one job of the cluster instead of all, and it lives for three seconds.
    example = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0].replace("jobs=320", "jobs=1")
    with dask_config.set({"distributed.deploy.lost-worker-timeout": "500ms"}):
        exec(example, {})
    ranway.run("study.toml", out="whole", progress=None)
    assert files(tmp_path / "results/study") == files(tmp_path / "whole")


# What the documented example asks each system for: a job with one core.
ASKED = {
    "SLURM": """
#SBATCH -J dask-worker
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH -t 02:00:00
""",
    "PBS": """
#PBS -N dask-worker
#PBS -l select=1:ncpus=1:mem=1908MB
#PBS -l walltime=02:00:00
""",
    "OAR": """
#OAR -n dask-worker
#OAR -l /nodes=1/core=1,walltime=02:00:00
""",
    "LSF": """
#BSUB -J dask-worker
#BSUB -n 1
#BSUB -M 2000000
#BSUB -W 02:00:00
""",
    "HTCondor": """
RequestCpus = MY.DaskWorkerCores
RequestMemory = floor(MY.DaskWorkerMemory / 1048576)
RequestDisk = floor(MY.DaskWorkerDisk / 1024)
MY.DaskWorkerCores = 1
MY.DaskWorkerMemory = 2000000000
MY.DaskWorkerDisk = 1000000000
""",
}


@pytest.mark.parametrize("system", ASKED)
def test_the_documented_cluster_asks_for_a_process_for_each_core(system: str) -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    start = PAGE.index("SLURMCluster(cores")
    call = PAGE[start : PAGE.index(") as cluster", start)].replace("SLURM", system)
    assert f"`{system}Cluster`" in PAGE or system == "SLURM"
    if system == "HTCondor":
        assert '`HTCondorCluster` takes `disk="1 GB"` in place of `walltime`' in PAGE
        call = call.replace('walltime="02:00:00"', 'disk="1 GB"')
    with eval(f"{call}, scheduler_options={{'dashboard_address': ':0'}})", vars(jobqueue)) as cluster:
        script = cluster.job_script()
    given = [line for line in script.splitlines() if re.match(r"#[A-Z]+ |Request|MY\.DaskWorker[CMD]", line)]
    assert given == ASKED[system].split("\n")[1:-1]
    worker = next(line for line in script.splitlines() if "dask_worker" in line)
    assert "--nthreads 1" in worker and "--nworkers" not in worker
    assert "--lifetime 110m --lifetime-stagger 5m" in worker
