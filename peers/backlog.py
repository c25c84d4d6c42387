"""What `ranway backlog` costs on this machine, beside the bare interface in the same run.

Needs root and a built `ranway` (`cargo build --release -p ranway`). Two namespaces with a veth pair between them,
without a rate: what passes is what the processors carry. In turns, so that what else the machine does meets both alike:

- how many Mbit/s of UDP arrive at the other side (packets of 1400 bytes; the sender sends what it can);
- how many Mbit/s of payload a TCP upload delivers, whose acknowledgements `ranway backlog` learns from;
- how much processor time `ranway backlog` takes for each Gbit of either, user and system: its reciprocal is what one
  processor carries;
- what a ping at idle takes (the median of 200).

`target/bench/backlog.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = (f"ranway-bench-{os.getpid()}-h", f"ranway-bench-{os.getpid()}-s")
SEND = """
import contextlib, socket, sys, time
kind = socket.SOCK_STREAM if sys.argv[1] == "TCP" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.connect(("10.4.0.2", 5401))
end = time.monotonic() + float(sys.argv[2])
block = bytes(1 << 16 if kind == socket.SOCK_STREAM else 1400)
# The receiver ends first.
with contextlib.suppress(ConnectionResetError, BrokenPipeError):
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionRefusedError):
            for _ in range(64):
                s.send(block)
"""
RECEIVE = """
import socket, sys, time
kind = socket.SOCK_STREAM if sys.argv[1] == "TCP" else socket.SOCK_DGRAM
s = socket.socket(socket.AF_INET, kind)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if kind == socket.SOCK_DGRAM:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(("10.4.0.2", 5401))
if kind == socket.SOCK_STREAM:
    s.listen()
print("ready", flush=True)
if kind == socket.SOCK_STREAM:
    s, _ = s.accept()
s.settimeout(1)
buffer = bytearray(1 << 18)
s.recv_into(buffer)
start, count = time.monotonic(), 0
while (now := time.monotonic()) < start + float(sys.argv[2]):
    count += s.recv_into(buffer)
print(count, now - start)
"""


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def inside(space: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", space, *command]


@contextmanager
def pair() -> Iterator[None]:
    h, s = NAMES
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        ip(f"-n {h} link add modem type veth peer name far netns {s}")
        for space, interface, address in ((h, "modem", "10.4.0.1/24"), (s, "far", "10.4.0.2/24")):
            ip(f"-n {space} addr add {address} dev {interface}")
            ip(f"-n {space} link set dev {interface} up")
        yield
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextmanager
def backlog(ranway: Path) -> Iterator[int]:
    command = inside(NAMES[0], "taskset", "-c", "1", str(ranway), "backlog", "--modem", "modem")
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "Ctrl-C ends it" in running.stderr.readline()
    try:
        # `ip` and `taskset` have become it.
        yield running.pid
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def processor(process: int | None) -> float:
    """Seconds of processor time that it has taken."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(kind: str, seconds: float, process: int | None) -> tuple[float, float]:
    """Mbit/s that arrive, and the seconds of the process for each Gbit."""
    receiver = subprocess.Popen(
        inside(NAMES[1], "taskset", "-c", "1", sys.executable, "-c", RECEIVE, kind, str(seconds)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert receiver.stdout is not None
    receiver.stdout.readline()
    send = inside(NAMES[0], "taskset", "-c", "0", sys.executable, "-c", SEND, kind, str(seconds + 0.5))
    before = processor(process)
    sender = subprocess.Popen(send)
    count, took = map(float, receiver.communicate()[0].split())
    # What it did for what had not arrived yet counts as well.
    taken = processor(process) - before
    assert sender.wait() == 0
    return count * 8e-6 / took, taken / (count * 8e-9)


def ping() -> float:
    """Milliseconds, the median."""
    command = inside(NAMES[0], "ping", "-i", "0.01", "-c", "200", "10.4.0.2")
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(float(time) for time in re.findall(r"time=([\d.]+)", out))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "backlog.json")
    arguments = parser.parse_args()
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    # What was started and created goes away then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    ways, kinds = ("bare", "backlog"), ("UDP", "TCP")
    mbps: dict[tuple[str, str], list[float]] = {(kind, way): [] for kind in kinds for way in ways}
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    ms: dict[str, list[float]] = {way: [] for way in ways}
    with pair():
        for _ in range(arguments.rounds):
            for way in ways:
                with backlog(arguments.ranway) if way == "backlog" else nullcontext() as process:
                    for kind in kinds:
                        rate, cost = throughput(kind, arguments.seconds, process)
                        mbps[kind, way].append(rate)
                        if process is not None:
                            costs[kind].append(cost)
                    ms[way].append(ping())
    time = {way: statistics.median(values) for way, values in ms.items()}
    figures: dict[str, object] = {"ping_ms": time, "added_ms": time["backlog"] - time["bare"]}
    for kind in kinds:
        rate = {way: statistics.median(mbps[kind, way]) for way in ways}
        cost = statistics.median(costs[kind])
        print(
            f"{kind}: {rate['backlog']:.0f} Mbit/s, the bare interface {rate['bare']:.0f}; "
            f"{cost:.2f} s of a processor for each Gbit"
        )
        figures[kind] = {"mbps": rate, "processor_s_per_gbit": cost}
    print(f"ping at idle: {time['backlog']:.3f} ms, the bare interface {time['bare']:.3f} ms")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
