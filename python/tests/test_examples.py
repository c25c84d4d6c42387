"""The examples run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import needs_root

ROOT = Path(__file__).parents[2]


def run(*line: object, cwd: Path | None = None) -> str:
    command = [sys.executable, "-W", "error", *map(str, line)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_loss_sweep_prints_a_table_and_saves_a_figure(tmp_path: Path) -> None:
    out = run(ROOT / "examples" / "loss_sweep.py", "--runs", 2, "--duration", "15 s", "--out", tmp_path / "f")
    # No two runs are the same: hosts take random times.
    assert out.count("±") == 14
    assert (tmp_path / "f.pdf").stat().st_size > 5_000
    assert (tmp_path / "f.png").stat().st_size > 5_000


def test_the_quickstart_saves_a_figure(tmp_path: Path) -> None:
    out = run(ROOT / "examples" / "quickstart.py", "--out", tmp_path / "f.png")
    assert "fq-codel" in out
    assert (tmp_path / "f.png").stat().st_size > 20_000


@needs_root
def test_a_real_transfer_prints_a_table() -> None:
    out = run(ROOT / "examples" / "real_transfer.py", "--transfers", 1, "--warmup", 1)
    assert [line.split("  ")[0] for line in out.splitlines()[1:]] == [
        "alone",
        "download, drop-tail",
        "download, fq-codel",
    ]


def samples() -> list[str]:
    return re.findall(r"```python\n(import ranway\n.*?)```", (ROOT / "python" / "README.md").read_text(), re.DOTALL)


def test_the_sample_of_the_readme_runs(tmp_path: Path) -> None:
    assert "goodput_mbps" in run("-c", samples()[0], cwd=tmp_path)
    assert (tmp_path / "rtt.pdf").exists()


@needs_root
def test_the_sample_with_real_hosts_runs(tmp_path: Path) -> None:
    _, real = samples()
    assert "tcp server:80 > ue:" in run("-c", real, cwd=tmp_path)
