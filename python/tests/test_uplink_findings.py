"""The script that prints the figures of the LTE uplink study (`papers/uplink/findings.py`), on short tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

UPLINK = Path(__file__).resolve().parents[2] / "papers" / "uplink"


def findings(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, UPLINK / "findings.py", out], capture_output=True, text=True)


def simulate(command: Path, out: Path, name: str, flows: dict[str, tuple[int, int]]) -> None:
    """One test of each congestion control at each node, from and to these seconds."""
    keys = ["runs=1", "tests=1", "background=1", "duration=22 s", "lte.bandwidth=5 MHz"]
    for node in ["node", "bus"]:
        for cc, (start, stop) in flows.items():
            keys += [f"flows.{node}-{cc}.start={start} s", f"flows.{node}-{cc}.stop={stop} s"]
    sets = [word for key in keys for word in ("--set", key)]
    scenario = UPLINK / f"{name}.toml"
    subprocess.run([command, "run", scenario, "--quiet", "--out", out / "uplink" / name, *sets], check=True)


def test_tables_have_the_values_of_the_results(command: Path, tmp_path: Path) -> None:
    missing = findings(tmp_path)
    assert missing.returncode != 0 and "run `ranway reproduce uplink" in missing.stderr
    simulate(command, tmp_path, "kernel-4-9", {"cubic": (1, 7), "new-reno": (7, 13), "bbr": (13, 20)})
    simulate(command, tmp_path, "cache", {"cubic": (1, 10), "new-reno": (10, 20)})
    done = findings(tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in done.stdout.splitlines() if "|" in line]
    both = {(row[0], row[1]): row[3:] for row in rows if row[2] == "4.9"}
    assert len(both) == 6
    # A quarter of the bandwidth carries a quarter of 17 Mbit/s at the still node; four flows share it.
    goodput, rtt, in_flight, retransmitted, jain, starving = (float(cell) for cell in both["still", "CUBIC"])
    assert 1 < goodput < 6 and rtt > 100 and in_flight > 10
    assert 0 <= retransmitted < 100 and 0.25 <= jain <= 1 and starving in (0, 100)
    switches = [row[1:3] for row in rows if row[2] in ("cached threshold", "none cached")]
    assert len(switches) == 8 and ["NewReno", "none cached"] in switches
    assert "RTO less smoothed RTT" in done.stdout and "of 4 flows without a lost packet" in done.stdout
