"""What `ranway backlog` costs on this machine, beside the bare interface in the same run.

Needs root and a built `ranway` (`cargo build --release -p ranway`). Two namespaces with a veth pair between them,
without a rate: what passes is what the processors carry. In turns, so that what else the machine does meets both alike:

- how many Mbit/s of UDP arrive at the other side (packets of 1400 bytes; the sender sends what it can);
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
NAMES = ("ranway-bench-h", "ranway-bench-s")
SEND = """
import contextlib, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.4.0.2", 5401))
end = time.monotonic() + float(sys.argv[1])
block = bytes(1400)
while time.monotonic() < end:
    # The receiver ends first.
    with contextlib.suppress(ConnectionRefusedError):
        for _ in range(64):
            s.send(block)
"""
RECEIVE = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
s.bind(("10.4.0.2", 5401))
s.settimeout(1)
print("ready", flush=True)
buffer = bytearray(2000)
s.recv_into(buffer)
start, count = time.monotonic(), 0
while (now := time.monotonic()) < start + float(sys.argv[1]):
    count += s.recv_into(buffer)
print(count * 8e-6 / (now - start))
"""


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def inside(space: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", space, *command]


@contextmanager
def pair() -> Iterator[None]:
    h, s = NAMES
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
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
def backlog(ranway: Path) -> Iterator[None]:
    command = inside(NAMES[0], "taskset", "-c", "1", str(ranway), "backlog", "--modem", "modem")
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert "Ctrl-C ends it" in running.stderr.readline()
    try:
        yield
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def throughput(seconds: float) -> float:
    """Mbit/s that arrive."""
    receiver = subprocess.Popen(
        inside(NAMES[1], "taskset", "-c", "1", sys.executable, "-c", RECEIVE, str(seconds)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert receiver.stdout is not None
    receiver.stdout.readline()
    send = inside(NAMES[0], "taskset", "-c", "0", sys.executable, "-c", SEND, str(seconds + 0.5))
    subprocess.run(send, check=True)
    return float(receiver.communicate()[0])


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
    mbps: dict[str, list[float]] = {"bare": [], "backlog": []}
    ms: dict[str, list[float]] = {"bare": [], "backlog": []}
    with pair():
        for _ in range(arguments.rounds):
            for name in mbps:
                with backlog(arguments.ranway) if name == "backlog" else nullcontext():
                    mbps[name].append(throughput(arguments.seconds))
                    ms[name].append(ping())
    rate = {name: statistics.median(values) for name, values in mbps.items()}
    time = {name: statistics.median(values) for name, values in ms.items()}
    ratio = rate["backlog"] / rate["bare"]
    print(f"UDP: {rate['backlog']:.0f} Mbit/s, the bare interface {rate['bare']:.0f}: {ratio:.2f} of it")
    print(f"ping at idle: {time['backlog']:.3f} ms, the bare interface {time['bare']:.3f} ms")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    figures = {"mbps": rate, "ratio": ratio, "ping_ms": time, "added_ms": time["backlog"] - time["bare"]}
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
