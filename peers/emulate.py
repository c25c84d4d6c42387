"""What emulation can carry on this machine, beside what the machine itself can.

Needs root, and iperf3. In one go, one after the other:

- the limit: one TCP flow between two namespaces over a veth pair, which carries segments
  of up to 64 kB, and over two TUN interfaces with a loop between them that only hands
  packets over (crates/emulate/examples/forward.rs);
- `ranway emulate` of a plain link at several rates;
- `ranway emulate` of a 20 MHz LTE cell at its peak, down, and down and up at once;
- `ranway emulate` of a 200 MHz NR cell at its peak, down.

Goodput is the payload that iperf3 received, without the first two seconds. `IP` is that
with the headers of full packets, both ways together: 1500 bytes for 1448. A link holds
its rate if IP reaches 98 % of it and the run is valid: 99 % of all packets late by less
than 0.5 ms, and none missed. CPU is that of the thread with the network, and with it what the kernel does for
both hosts' TCP while that thread gives them packets. `target/bench/emulate.json` holds
the rows. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "peers" / "scenarios"
RATES_GBPS = (0.5, 1.0, 1.25, 1.5, 2.0)
# Of a full packet over IPv4 with timestamps.
IP_PER_PAYLOAD = 1500 / 1448
HELD = 0.98
# Of slow start.
OMIT_S = 2
NR = "NR cell, 200 MHz at 28 GHz, down"
# Of `ranway emulate`: valid, and not.
ENDS = (0, 3)


@dataclass(frozen=True)
class Row:
    """What was measured at once. An emulation also says how late it was, and whether that is valid."""

    name: str
    down_mbps: float | None
    up_mbps: float | None
    p50_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    missed: int | None = None
    cpu_share: float | None = None
    valid: bool | None = None

    def ip_mbps(self) -> float:
        return ((self.down_mbps or 0) + (self.up_mbps or 0)) * IP_PER_PAYLOAD


def fail(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr)
    sys.exit(1)


def run(command: list[str | Path], ends: tuple[int, ...] = (0,)) -> str:
    """What a command prints."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in ends:
        line = " ".join(map(str, command))
        fail(f"`{line}` exited with {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.stdout


def build(program: str, *what: str) -> Path:
    """Builds a program, which prints its own errors."""
    if subprocess.run(["cargo", "build", "--release", "--locked", *what], cwd=ROOT, check=False).returncode != 0:
        fail(f"{program} cannot be built")
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / program


def iperf3(server: str, seconds: int, direction: str) -> list[str | Path]:
    """A client, at the UE's end."""
    options = {"down": ["--reverse"], "up": [], "both": ["--bidir"]}[direction]
    return ["iperf3", "-4", "--client", server, "--time", str(seconds), "--omit", str(OMIT_S), "--json", *options]


def goodput(printed: str, direction: str) -> tuple[float | None, float | None]:
    """Down and up, as the receivers saw it."""
    end = json.loads(printed)["end"]
    here = end["sum_received"]["bits_per_second"] / 1e6
    if direction == "both":
        return end["sum_received_bidir_reverse"]["bits_per_second"] / 1e6, here
    return (here, None) if direction == "down" else (None, here)


@contextmanager
def veth() -> Iterator[str]:
    """Two namespaces with a veth pair between them, with iperf3 at 10.77.0.1. Gives the other."""
    ends = (f"bench-{os.getpid()}-a", f"bench-{os.getpid()}-b")
    server = None
    try:
        for namespace in ends:
            run(["ip", "netns", "add", namespace])
        run(["ip", "-n", ends[0], "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", ends[1]])
        for number, namespace in enumerate(ends, 1):
            run(["ip", "-n", namespace, "address", "add", f"10.77.0.{number}/24", "dev", "wire"])
            run(["ip", "-n", namespace, "link", "set", "wire", "up"])
        command = ["ip", "netns", "exec", ends[0], "iperf3", "--server", "--forceflush"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            if server.poll() is not None:
                fail("iperf3 does not start")
        yield ends[1]
    finally:
        if server is not None:
            server.kill()
            server.wait()
        for namespace in ends:
            subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)


def limits(forward: Path, seconds: int) -> Iterator[Row]:
    """What there is to reach."""
    for direction in ("down", "up"):
        with veth() as client:
            command = ["ip", "netns", "exec", client, *iperf3("10.77.0.1", seconds, direction)]
            yield Row(f"veth pair, {direction}", *goodput(run(command), direction))
    for direction in ("down", "up"):
        printed = run([forward, *iperf3("server", seconds, direction)])
        yield Row(f"bare loop between two TUN, {direction}", *goodput(printed, direction))


def emulate(ranway: Path, name: str, scenario: str, seconds: int, direction: str, *options: str) -> Row:
    """One TCP flow each way through an emulation."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        command: list[str | Path] = [ranway, "emulate", SCENARIOS / scenario, *options, "--quiet", "--out", out, "--"]
        printed = run([*command, *iperf3("server", seconds, direction)], ENDS)
        late = json.loads((out / "timing.json").read_text())["lateness"]
    figures = {key: late[key] for key in ("p50_ms", "p99_ms", "max_ms", "missed", "cpu_share", "valid")}
    return Row(name, *goodput(printed, direction), **figures)


def emulations(ranway: Path, seconds: int) -> Iterator[Row]:
    """What emulation reaches."""
    for gbps in RATES_GBPS:
        rate = f"links.wire.rate={gbps * 1000:.0f} Mbit/s"
        yield emulate(ranway, link(gbps), "emulate-link.toml", seconds, "down", "--set", rate)
    for direction, what in (("down", "down"), ("both", "down and up")):
        yield emulate(ranway, f"LTE cell, 20 MHz, two layers, {what}", "emulate-cell.toml", seconds, direction)
    yield emulate(ranway, NR, "emulate-nr.toml", seconds, "down")


def link(gbps: float) -> str:
    return f"link of {gbps:g} Gbit/s, down"


def show(row: Row, width: int) -> None:
    def cell(value: float | None, form: str) -> str:
        return format(value, form) if value is not None else " " * len(format(0.0, form)) + " "

    verdict = {None: "", True: "valid", False: "NOT VALID"}[row.valid]
    if row.missed:
        verdict += f", {row.missed} missed"
    print(
        f"{row.name:{width}}  {cell(row.down_mbps, '8.1f'):>8}  {cell(row.up_mbps, '8.1f'):>8}  {row.ip_mbps():8.1f}  "
        f"{cell(row.p50_ms, '7.3f'):>7}  {cell(row.p99_ms, '7.3f'):>7}  {cell(row.max_ms, '7.3f'):>7}  "
        f"{cell(row.cpu_share, '5.0%'):>5}  {verdict}",
        flush=True,
    )


def conclude(rows: list[Row]) -> None:
    """Puts the figures beside what is aimed at."""
    by_name = {row.name: row for row in rows}
    held = [gbps for gbps in RATES_GBPS if (row := by_name[link(gbps)]).valid and row.ip_mbps() >= HELD * gbps * 1000]
    print(f"\nlink: {max(held, default=0):g} Gbit/s of IP packets held; 1 is aimed at")
    for row in rows:
        if row.name.startswith("LTE"):
            what = "held" if row.valid else "not held"
            print(f"{row.name}: {row.ip_mbps():.1f} Mbit/s of IP packets {what}; 150 is aimed at")
    print("(of transport blocks, with the headers of MAC, RLC and PDCP, the cell has at most 150.75 Mbit/s down)")
    nr = by_name[NR]
    print(f"{NR}: {nr.ip_mbps():.1f} Mbit/s of IP packets, p99 {nr.p99_ms:.3f} ms; below 0.3 ms is aimed at")
    print("(of transport blocks, the cell has at most 852.6 Mbit/s down)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seconds", type=int, default=30, help="of each measurement (30)")
    parser.add_argument("--ranway", type=Path, help="a built command, not to build it")
    parser.add_argument("--forward", type=Path, help="a built forward.rs, likewise")
    arguments = parser.parse_args()
    if arguments.seconds < 1:
        parser.error("--seconds must be at least 1")
    # So that namespaces go away then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if os.geteuid() != 0:
        fail("real hosts need root: use sudo")
    ranway = arguments.ranway or build("ranway", "-p", "ranway")
    forward = arguments.forward or build("examples/forward", "-p", "emulate", "--example", "forward")
    width = 38
    print(f"{'Mbit/s; ms':{width}}  {'down':>8}  {'up':>8}  {'IP':>8}  {'p50':>7}  {'p99':>7}  {'max':>7}  {'CPU':>5}")
    rows = []
    for part in (limits(forward, arguments.seconds), emulations(ranway, arguments.seconds)):
        for row in part:
            show(row, width)
            rows.append(row)
    conclude(rows)
    results = ROOT / "target" / "bench" / "emulate.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps([asdict(row) | {"ip_mbps": row.ip_mbps()} for row in rows], indent=2) + "\n")
    print(f"\n{results.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
