"""The job arrays of the page on large sweeps, with this machine in place of the cluster."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import ranway
from conftest import ROOT, TOML, files

PAGE = (ROOT / "docs/src/sweeps.md").read_text()
JOBS = 20


def block(kind: str, of: str) -> str:
    """The page's block of this kind that has a text in it."""
    blocks: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(block for block in blocks if of in block)


def study(folder: Path, whole: Path) -> None:
    """Writes the page's scenario with more jobs than the array has, and its results."""
    folder.mkdir()
    (folder / "study.toml").write_text(TOML.replace("runs = 2", "runs = 25"))
    ranway.run(folder / "study.toml", progress=None, out=whole)


def test_an_array_of_slurm_writes_what_a_run_writes(command: Path, tmp_path: Path) -> None:
    here = tmp_path / "shared"
    study(here, tmp_path / "whole")
    script = block("bash", "#SBATCH")
    assert f"#SBATCH --array=1-{JOBS}\n" in script
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "SLURM_CPUS_PER_TASK": "2"}
    for index in range(1, JOBS + 1):
        environment["SLURM_ARRAY_TASK_ID"] = str(index)
        subprocess.run(["bash", "-euc", script], cwd=here, env=environment, check=True)
    after = block("console", "sbatch").split("&& ")[1]
    subprocess.run(["bash", "-euc", after], cwd=here, env=environment, check=True)
    assert files(here / "results/study") == files(tmp_path / "whole")


def test_an_array_of_htcondor_gives_and_takes_all_files_that_a_job_needs(command: Path, tmp_path: Path) -> None:
    here = tmp_path / "submit"
    study(here, tmp_path / "whole")
    *lines, queue = block("text", "transfer_input_files").splitlines()
    assert queue == f"queue {JOBS}"
    asked = dict(line.split(" = ") for line in lines)
    # Without these, a job that is evicted loses what it has finished.
    assert asked["should_transfer_files"] == "YES"
    assert asked["when_to_transfer_output"] == "ON_EXIT_OR_EVICT"
    assert asked["request_cpus"] == "1" and "--jobs 1 " in asked["arguments"]
    assert {"request_memory", "request_disk", "log"} <= set(asked)
    assert asked["executable"] == "/usr/bin/ranway" and asked["Shard"] == "$(Process) + 1"
    for process in range(JOBS):

        def filled(key: str, process: int = process) -> list[str]:
            return asked[key].replace("$(Process)", str(process)).replace("$INT(Shard)", str(process + 1)).split()

        machine = tmp_path / f"machine-{process}"
        machine.mkdir()
        for name in filled("transfer_input_files"):
            shutil.copy(here / name, machine)
        subprocess.run([command, *filled("arguments")], cwd=machine, check=True)
        for name in filled("transfer_output_files"):
            shutil.move(machine / name, here)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    merge = block("console", "part-*").removeprefix("$ ")
    subprocess.run(["bash", "-euc", merge], cwd=here, env=environment, check=True)
    assert files(here / "results/study") == files(tmp_path / "whole")
