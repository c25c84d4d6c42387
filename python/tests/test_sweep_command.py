"""`ranway sweep --dask`: the command hands its jobs to a cluster."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import TOML, files

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")

OPTIONS = ["--set", "duration=20 s", "--set", "sweep.loss=[1e-4, 1e-2]", "--runs", "6"]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of two workers."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "two.toml").write_text(TOML)
    return tmp_path


def start(command: Path, place: Path, *options: str, path: str | None = None) -> subprocess.Popen[str]:
    """Starts the command in a folder, with the Python of this test."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}" if path is None else path
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([command, *options], cwd=place, env={**os.environ, "PATH": path}, **pipes)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_the_command_runs_its_jobs_on_a_cluster(command: Path, scheduler: str, place: Path) -> None:
    assert ended(start(command, place, "run", "two.toml", *OPTIONS, "--quiet", "--out", "whole")) == (0, "", "")
    (place / "scheduler.json").write_text(json.dumps({"address": scheduler, "type": "Scheduler", "workers": {}}))
    for where in [scheduler, "scheduler.json"]:
        code, out, err = ended(start(command, place, "sweep", "two.toml", *OPTIONS, "--dask", where, "--out", "swept"))
        assert (code, err) == (0, "") and out.endswith("report: swept/report.html\n"), (out, err)
        assert files(place / "swept") == files(place / "whole")
        assert not (place / "swept.sweep").exists()


def test_ctrl_c_ends_it_and_the_same_command_resumes(command: Path, scheduler: str, place: Path) -> None:
    long = ["sweep", "two.toml", *OPTIONS, "--set", "duration=600 s", "--dask", scheduler, "--out", "swept"]
    sweep = start(command, place, *long)
    # The first one counts, and the second one means that jobs are written while others run.
    while len(list(place.glob("swept.sweep/*.tar"))) < 2:
        assert sweep.poll() is None
        time.sleep(0.02)
    sweep.send_signal(signal.SIGINT)
    code, out, err = ended(sweep)
    assert (code, out) == (130, "") and "of 12 jobs have finished; the same command resumes" in err, err
    assert not (place / "swept").exists()
    code, out, err = ended(start(command, place, *long))
    assert code == 0 and "of 12 jobs have finished before" in err, err
    assert ended(start(command, place, "run", *long[1:-4], "--quiet", "--out", "whole"))[0] == 0
    assert files(place / "swept") == files(place / "whole")


def test_what_is_missing_is_one_line(command: Path, place: Path) -> None:
    nowhere = ["sweep", "two.toml", *OPTIONS, "--dask"]
    (place / "none.json").write_text('{"address": 5}')
    for scheduler, code_of, why in [
        ("tcp://127.0.0.1:9", 1, ""),
        ("none.json", 1, "the file has no address"),
        ("two.toml", 1, ""),
        ("nonsense", 2, "there is no such file, and an address has a port"),
    ]:
        began = time.monotonic()
        code, out, err = ended(start(command, place, *nowhere, scheduler))
        assert (code, out) == (code_of, "") and err.startswith(f"error: --dask {scheduler}: {why}"), err
        assert err.count("\n") == 1 and time.monotonic() - began < 30, err
    # A Python without Dask, and none at all.
    (place / "python3").write_text("#!/bin/sh\nexec /usr/bin/env -i " + sys.executable + ' -S "$@"\n')
    (place / "python3").chmod(0o755)
    for path in [f"{place}:{os.environ['PATH']}", "/nowhere"]:
        code, out, err = ended(start(command, place, *nowhere, "tcp://127.0.0.1:9", path=path))
        assert (code, out) == (1, ""), err
        assert err.startswith("error: --dask needs the Python package `ranway` with its extra `dask`"), err
        assert err.count("\n") == 1, err
    code, _, err = ended(start(command, place, *nowhere, "tcp://127.0.0.1:9", "--shard", "1/2"))
    assert code == 2 and "cannot be used with" in err, err
