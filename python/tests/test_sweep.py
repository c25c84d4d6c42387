"""Sweeps: the same bytes as one run, whatever happens to the processes on the way."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ranway
from conftest import files

distributed = pytest.importorskip("distributed")

# Dask warns of what its own parts do.
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


def test_the_documented_cluster_asks_slurm_for_a_process_on_each_core() -> None:
    jobqueue = pytest.importorskip("dask_jobqueue")
    page = (Path(__file__).parents[2] / "docs/src/sweeps.md").read_text()
    start = page.index("SLURMCluster(cores")
    call = page[start : page.index(") as cluster", start)]
    with eval(
        f"{call}, scheduler_options={{'dashboard_address': ':0'}})", {"SLURMCluster": jobqueue.SLURMCluster}
    ) as cluster:
        script = cluster.job_script()
    asked = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    assert asked == [
        "#SBATCH -J dask-worker",
        "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=32",
        "#SBATCH --mem=60G",
        "#SBATCH -t 02:00:00",
    ]
    worker = script.splitlines()[-1 if script.splitlines()[-1] else -2]
    assert "--nthreads 1" in worker and "--nworkers 32" in worker
    assert "--lifetime 110m --lifetime-stagger 5m" in worker
