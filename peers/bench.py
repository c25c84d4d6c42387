"""Processor time of Ranway and of ns-3 for the same scenarios, on this machine.

Both sides are built, then run in turns several times in one go, so that whatever else
the machine does falls on both. Of each quantity the median over the turns counts.
Processor time is that of the whole process (user and system, all threads) as the kernel
accounts it: start, simulation and results. A data packet is a full segment of payload
that was delivered. `target/bench/results.json` holds an array of objects
{name, unit, ours, peer, peer_name, ratio}; above 1, the ratio says how many times less
time Ranway takes. The cities have no peer: the ratio is to the time that they should take
on the machine for which that was set, scaled by the dumbbell as the mmWave module's.

Random losses fall on other packets on either side, so that a lossy scenario is run
several times with different seeds and its goodputs differ somewhat: there, the cost of a
packet is the fairer figure.

ns-3's mmWave module is not part of ns-3 and is not built here. Its cost was measured once
(ns3-mmwave 0b1f4b7c, optimised, CUBIC over RLC AM with 10 MB at 28 GHz and 200 MHz) beside
that of the dumbbell; it is scaled by what the dumbbell costs ns-3 in this run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "peers"
NS3 = ROOT / "target" / "peers"


@dataclass(frozen=True)
class Case:
    """A scenario, and what ns-3 must be told for the same one."""

    name: str
    scenario: str
    duration_s: int
    warmup_s: int
    runs: int
    program: str = "dumbbell"
    ns3: tuple[str, ...] = ()
    ranway: tuple[str, ...] = ()
    # Processor seconds per simulated second of a peer that was measured elsewhere, where the
    # first case took STORED_DUMBBELL_S.
    stored_s: float | None = None
    # Without a peer: processor seconds per simulated second that it should take at most on the same machine.
    goal_s: float | None = None


STORED = "ns-3 mmWave, stored"
GOAL = "goal"
# ns-3 3.37 of Debian 12.
STORED_DUMBBELL_S = 0.0634

FOUR_FLOWS = ("--four", "--rlc=um", "--cc=TcpNewReno", "--prbs=25", "--queue=500000", "--buffer=131072")

CASES = (
    Case("dumbbell 35 Mbit/s, 30 ms", "dumbbell.toml", 100, 10, 1),
    Case(
        "1 Gbit/s, 100 ms, loss 1e-4",
        "fat-lossy.toml",
        10,
        2,
        3,
        ns3=("--bw=1Gbps", "--rtt=100", "--queue=8333", "--loss=1e-4", "--buffer=64000000"),
    ),
    Case("LTE, one UE, 100 blocks, AM, download", "lte-download.toml", 20, 5, 1, "lte"),
    Case("LTE, one UE, 25 blocks, UM, four flows", "lte-cell.toml", 20, 5, 1, "lte", FOUR_FLOWS),
    Case(
        "LTE, ten UEs, 25 blocks, UM, 40 flows",
        "lte-cell.toml",
        20,
        5,
        1,
        "lte",
        (*FOUR_FLOWS, "--ues=10"),
        ("--set", "ues=10"),
    ),
    Case("NR at 28 GHz, one UE, 132 blocks, AM, download", "nr-download.toml", 5, 1, 1, stored_s=14.1),
    Case("LTE, a city of 57 sectors, 1,000 UEs", "city-lte.toml", 20, 10, 1, goal_s=0.2),
    Case("LTE and NR, a city of 57 sectors each, 1,000 UEs", "city-nr.toml", 20, 10, 1, goal_s=0.4),
)


@dataclass(frozen=True)
class Cost:
    """What a case took, and what it carried."""

    cpu_s: float
    simulated_s: float
    packets: int
    goodput_mbps: float

    def ms_per_simulated_s(self) -> float:
        return self.cpu_s / self.simulated_s * 1e3

    def ns_per_packet(self) -> float:
        return self.cpu_s / self.packets * 1e9


FIGURES: tuple[tuple[str, str, Callable[[Cost], float]], ...] = (
    ("CPU per simulated second", "ms", Cost.ms_per_simulated_s),
    ("CPU per data packet", "ns", Cost.ns_per_packet),
)


def fail(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr)
    sys.exit(1)


def build(command: list[str | Path]) -> None:
    """Runs a build, which prints its own errors."""
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        fail(f"`{' '.join(map(str, command))}` failed")


def measure(command: list[str | Path]) -> tuple[str, float]:
    """What a command prints, and its processor seconds."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        output = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        # The process has been waited for: Popen must not do it again.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            command_line = " ".join(map(str, command))
            fail(f"`{command_line}` exited with {process.returncode}\n{text}")
    return output.decode(), usage.ru_utime + usage.ru_stime


def ours(ranway: Path, case: Case, scratch: Path) -> Cost:
    """Runs a case with Ranway."""
    scenario = PEERS / "scenarios" / case.scenario
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        out = Path(directory) / "out"
        _, cpu_s = measure([ranway, "run", scenario, *case.ranway, "--quiet", "--out", out])
        timing = json.loads((out / "timing.json").read_text())
        summary = json.loads((out / "summary.json").read_text())
    simulated_s = case.duration_s * case.runs
    if abs(timing["simulated_s"] - simulated_s) > 1e-6:
        told = timing["simulated_s"]
        fail(f"{scenario} simulates {told} s, ns-3 is told {simulated_s} s")
    goodput = summary["points"][0]["goodput_mbps"]["mean"]
    return Cost(cpu_s, simulated_s, timing["packets"], goodput)


def ns3(case: Case) -> tuple[Cost, str]:
    """Runs a case with ns-3; also tells the version."""
    options = (f"--duration={case.duration_s}", f"--warmup={case.warmup_s}", *case.ns3)
    results = []
    cpu_s = 0.0
    for run in range(1, case.runs + 1):
        output, seconds = measure([NS3 / case.program, *options, f"--run={run}"])
        results.append(json.loads(output))
        cpu_s += seconds
    cost = Cost(
        cpu_s,
        case.duration_s * case.runs,
        sum(result["packets"] for result in results),
        fmean(sum(result["goodput_mbps"]) for result in results),
    )
    return cost, f"ns-3 {results[0]['version']}"


def scaled(seconds: float, case: Case, dumbbell: Cost, goodput_mbps: float) -> Cost:
    """What takes `seconds` per simulated second where the dumbbell took STORED_DUMBBELL_S; packets were not counted."""
    scale = dumbbell.cpu_s / dumbbell.simulated_s / STORED_DUMBBELL_S
    return Cost(seconds * scale * case.duration_s, case.duration_s, 0, goodput_mbps)


def compare(ranway: Path, turns: int, scratch: Path) -> tuple[dict[Case, tuple[list[Cost], list[Cost]]], str]:
    """Runs each case on both sides in turns."""
    costs: dict[Case, tuple[list[Cost], list[Cost]]] = {case: ([], []) for case in CASES}
    begin = time.monotonic()
    peer_name = ""
    for turn in range(turns):
        for case, (our_costs, peer_costs) in costs.items():
            our_costs.append(ours(ranway, case, scratch))
            if case.goal_s is not None:
                name, peer_cost = GOAL, scaled(case.goal_s, case, costs[CASES[0]][1][turn], float("nan"))
            elif case.stored_s is not None:
                name, peer_cost = STORED, scaled(case.stored_s, case, costs[CASES[0]][1][turn], 735.0)
            else:
                peer_cost, peer_name = ns3(case)
                name = peer_name
            peer_costs.append(peer_cost)
            print(
                f"turn {turn + 1}/{turns}, {case.name}: "
                f"ranway {our_costs[-1].cpu_s:.3f} s, {name} {peer_cost.cpu_s:.3f} s",
                flush=True,
            )
        left = (time.monotonic() - begin) / (turn + 1) * (turns - turn - 1)
        if left > 0:
            print(f"about {left:.0f} s left", flush=True)
    return costs, peer_name


def figures(costs: dict[Case, tuple[list[Cost], list[Cost]]], peer_name: str) -> list[dict[str, object]]:
    """The medians and their ratios, as results.json has them."""
    rows: list[dict[str, object]] = []
    for case, (our_costs, peer_costs) in costs.items():
        is_run = case.stored_s is None and case.goal_s is None
        name = peer_name if is_run else STORED if case.goal_s is None else GOAL
        # Nothing but a peer that ran has packets.
        for what, unit, figure in FIGURES if is_run else FIGURES[:1]:
            our, peer = median(map(figure, our_costs)), median(map(figure, peer_costs))
            rows.append(
                {
                    "name": f"{case.name}: {what}",
                    "unit": unit,
                    "ours": our,
                    "peer": peer,
                    "peer_name": name,
                    "ratio": peer / our,
                }
            )
    return rows


def report(
    rows: list[dict[str, object]],
    costs: dict[Case, tuple[list[Cost], list[Cost]]],
    peer_name: str,
) -> None:
    """Prints the table, and what each side carried."""
    width = max(len(str(row["name"])) for row in rows)
    print(f"\n{'':{width}}  {'ranway':>10}  {peer_name:>10}       ratio")
    for row in rows:
        print(f"{row['name']:{width}}  {row['ours']:10.4g}  {row['peer']:10.4g} {row['unit']}  {row['ratio']:8.1f}")
    print("\ngoodput in Mbit/s, to see that both did the same work")
    for case, (our_costs, peer_costs) in costs.items():
        our, peer = our_costs[0].goodput_mbps, peer_costs[0].goodput_mbps
        print(f"{case.name:{width}}  {our:10.4g}  {peer:10.4g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--turns", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--ranway", type=Path, help="a built command, not to build it")
    arguments = parser.parse_args()
    if arguments.turns < 1:
        parser.error("--turns must be at least 1")
    build(["make", "--silent", "-C", PEERS / "ns3"])
    ranway = arguments.ranway
    if ranway is None:
        build(["cargo", "build", "--release", "--locked", "-p", "ranway"])
        ranway = ROOT / "target" / "release" / "ranway"
    scratch = ROOT / "target" / "bench"
    scratch.mkdir(parents=True, exist_ok=True)
    costs, peer_name = compare(ranway, arguments.turns, scratch)
    rows = figures(costs, peer_name)
    report(rows, costs, peer_name)
    results = scratch / "results.json"
    results.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"\n{results.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
