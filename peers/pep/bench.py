"""What `mdcc` and the PEP cost on this machine.

Needs root, a C compiler and a built `ranway` (`cargo build --release -p ranway`). In turns, so that what else the
machine does meets all alike:

- `mdcc` against the kernel's CUBIC: one flow over a veth pair between two namespaces, whose
  writing and reading process stay on one processor each. Processor time (user and system) of
  both for each GB.
- the PEP against the same programs that look at nothing (`ranway pep --blind`): full
  segments and an acknowledgement for every second one, through a router between two veth
  pairs, on one processor (peers/pep/load.c), without a key and with one. What it takes to make the packets is measured
  without the router and taken off; both are printed.

`target/bench/pep.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FLOWS = (1, 10_000)
# Of sched.h; Python has it from 3.12 on.
CLONE_NEWNET = 0x40000000
NAMES = ("ranway-bench-s", "ranway-bench-r", "ranway-bench-p")


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def inside(space: str, *command: str) -> list[str]:
    return ["ip", "netns", "exec", space, *command]


@contextmanager
def router() -> Iterator[tuple[str, str]]:
    """A sender's side, a router, a receiver's side. Nobody is at either end: what comes there is for others."""
    s, r, p = NAMES
    for name in NAMES:
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        macs = []
        for space, interface, address in ((s, "wan", "10.1.0.254/24"), (p, "ran", "10.2.0.254/24")):
            ip(f"-n {r} link add {interface} type veth peer name far netns {space}")
            ip(f"-n {r} addr add {address} dev {interface}")
            ip(f"-n {r} link set dev {interface} up")
            ip(f"-n {space} link set dev far up")
            text = subprocess.run(
                ["ip", "-n", r, "-json", "link", "show", interface], check=True, capture_output=True
            ).stdout
            macs.append(json.loads(text)[0]["address"])
        ip(f"-n {r} neigh add 10.1.0.1 lladdr 02:02:02:02:02:02 dev wan")
        ip(f"-n {r} neigh add 10.2.0.2 lladdr 02:02:02:02:02:02 dev ran")
        subprocess.run(inside(r, "sysctl", "-qw", "net.ipv4.ip_forward=1"), check=True)
        yield macs[0], macs[1]
    finally:
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def load(program: Path, flows: int, seconds: float, macs: tuple[str, str]) -> float:
    """Nanoseconds for each packet."""
    command = inside(
        NAMES[0], "taskset", "-c", "1", str(program), str(flows), str(seconds), "far", NAMES[2], "far", *macs
    )
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(out[1]) / int(out[0]) * 1e9


@contextmanager
def pep(ranway: Path, *options: str) -> Iterator[None]:
    command = inside(NAMES[1], str(ranway), "pep", "--wan", "wan", "--ran", "ran", *options)
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    running.stderr.readline()
    try:
        yield
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait()


def bench_pep(ranway: Path, rounds: int, seconds: float) -> list[dict[str, float]]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch, router() as macs:
        program = Path(scratch) / "load"
        source = Path(__file__).parent / "load.c"
        key = Path(scratch) / "key"
        key.touch(mode=0o600)
        key.write_text(os.urandom(16).hex())
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", str(program), str(source)], check=True)
        nowhere = ("02:00:00:00:00:01", "02:00:00:00:00:01")
        for flows in FLOWS:
            making, blind, seeing, tagging = [], [], [], []
            for _ in range(rounds):
                making.append(load(program, flows, seconds, nowhere))
                with pep(ranway, "--blind"):
                    blind.append(load(program, flows, seconds, macs))
                with pep(ranway):
                    seeing.append(load(program, flows, seconds, macs))
                with pep(ranway, "--key", str(key)):
                    tagging.append(load(program, flows, seconds, macs))
            m, b, s, t = (statistics.median(times) for times in (making, blind, seeing, tagging))
            row = {
                "flows": flows,
                "making_ns": m,
                "blind_ns": b,
                "pep_ns": s,
                "tag_ns": t,
                "blind_mpps": 1e3 / b,
                "pep_mpps": 1e3 / s,
                "fewer": 1 - b / s,
                "fewer_net": 1 - (b - m) / (s - m),
            }
            rows.append(row)
            print(
                f"PEP, {flows:6} flows: {b:.0f} ns a packet blind, {s:.0f} ns seeing ({m:.0f} ns to make it): "
                f"{row['fewer']:.1%} fewer packets, {row['fewer_net']:.1%} without their making; {t:.0f} ns with a key"
            )
    return rows


def transfer(control: str, seconds: float) -> float:
    """Processor seconds for each GB of one flow."""
    s, _, p = NAMES
    ready, start = os.pipe(), time.monotonic()
    children = []

    def child(space: str, processor: int, act) -> None:
        pid = os.fork()
        if pid:
            children.append(pid)
            return
        try:
            os.sched_setaffinity(0, {processor})
            with open(f"/run/netns/{space}") as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            act()
        finally:
            os._exit(0)

    def read() -> None:
        listener = socket.create_server(("10.3.0.2", 5301))
        os.write(ready[1], b"r")
        peer, _ = listener.accept()
        buffer, total = bytearray(1 << 20), 0
        while count := peer.recv_into(buffer):
            total += count
        os.write(ready[1], str(total).encode())

    def write() -> None:
        stream = socket.socket()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        stream.connect(("10.3.0.2", 5301))
        block, end = bytes(1 << 20), time.monotonic() + seconds
        while time.monotonic() < end:
            stream.sendall(block)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child(p, 1, read)
    os.read(ready[0], 1)
    child(s, 0, write)
    for pid in children:
        os.waitpid(pid, 0)
    total = int(os.read(ready[0], 32))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    for end in ready:
        os.close(end)
    assert time.monotonic() - start >= seconds
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / (total / 1e9)


def bench_mdcc(ranway: Path, rounds: int, seconds: float) -> dict[str, float]:
    s, _, p = NAMES
    loaded = False
    try:
        for name in NAMES:
            ip(f"netns add {name}")
        ip(f"-n {s} link add v0 type veth peer name v0 netns {p}")
        for space, address in ((s, "10.3.0.1/24"), (p, "10.3.0.2/24")):
            ip(f"-n {space} addr add {address} dev v0")
            ip(f"-n {space} link set dev v0 up")
        subprocess.run([ranway, "mdcc", "load"], check=True)
        loaded = True
        times: dict[str, list[float]] = {"cubic": [], "mdcc": []}
        for n in range(rounds + 1):
            for control, seen in times.items():
                used = transfer(control, seconds)
                # The first round warms up.
                if n:
                    seen.append(used)
    finally:
        if loaded:
            subprocess.run([ranway, "mdcc", "unload"], check=True)
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", name], check=False)
    cubic, mdcc = (statistics.median(times[control]) for control in ("cubic", "mdcc"))
    pairs = statistics.median(m / c for c, m in zip(times["cubic"], times["mdcc"], strict=True))
    print(f"mdcc: {mdcc:.3f} s of processor time for a GB, CUBIC {cubic:.3f} s; in pairs {pairs - 1:+.1%}")
    return {"cubic_s_per_gb": cubic, "mdcc_s_per_gb": mdcc, "pairs": pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "pep.json")
    arguments = parser.parse_args()
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    mdcc = bench_mdcc(arguments.ranway, arguments.rounds, arguments.seconds)
    rows = bench_pep(arguments.ranway, arguments.rounds, arguments.seconds)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"mdcc": mdcc, "pep": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
