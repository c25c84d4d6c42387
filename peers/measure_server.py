"""What `ranway measure serve` costs on this machine, beside iperf3's server in the same run.

Needs iperf3 and a built `ranway` (`cargo build --release -p ranway`), no root. Everything is on loopback. One client
for both servers would be unfair to one of them, so each has its own: iperf3's, and one here that reads and writes 1 MiB
at a time. The servers take turns, so that what else the machine does meets both alike:

- Gbit/s of payload with one and eight flows, to the server (upload) and from it (download), and the server's processor
  time (user and system) for each Gbit: its reciprocal is what one processor carries, also where the clients are the
  limit. Chunks (of iperf3: `--length`) are of 1 MiB and of RMBT's default, which the server names (4096 bytes), as
  clients use it that do not ask for another one;
- 100 tests at the same time, of `ranway` alone since iperf3 serves one: throughput in all, the least and the largest of
  a test, and the server's resident memory.

`target/bench/measure_server.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 1 << 20
# RMBT's default: a command without a size.
DEFAULT_CHUNK = 4096
TESTS = 100
# Of 100 clients in one process, each with a buffer.
SMALL_CHUNK = 1 << 17


@dataclass
class Result:
    """What one measurement found."""

    gbit_s: float
    cpu_s_per_gbit: float

    def json(self) -> dict[str, float]:
        return {"gbit_s": round(self.gbit_s, 3), "cpu_ms_per_gbit": round(self.cpu_s_per_gbit * 1e3, 3)}


def processor_time(pid: int) -> float:
    """User and system time of a process in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def size(chunk: int) -> str:
    """The argument of a command for a size of chunks; none for the default."""
    return "" if chunk == DEFAULT_CHUNK else f" {chunk}"


class Connection:
    """A connection to our server, up to its first ACCEPT."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.say("GET /rmbt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: RMBT\r\n\r")
        while self.line() != "\r":
            pass
        self.expect("RMBTv")
        self.expect("ACCEPT")
        self.say("TOKEN x")
        self.expect("OK")
        default = int(self.expect("CHUNKSIZE").split()[1])
        if default != DEFAULT_CHUNK:
            raise ConnectionError(f"the server's default size of chunks is {default}")
        self.expect("ACCEPT")

    def say(self, line: str) -> None:
        self.socket.sendall(line.encode() + b"\n")

    def line(self) -> str:
        while b"\n" not in self.rest:
            data = self.socket.recv(4096)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def expect(self, start: str) -> str:
        line = self.line()
        if not line.startswith(start):
            raise ConnectionError(f"{line!r} instead of {start}")
        return line

    def download(self, seconds: int, chunk: int) -> tuple[int, float]:
        """Returns bytes and seconds."""
        buffer = bytearray(CHUNK)
        start, total = time.monotonic(), 0
        self.say(f"GETTIME {seconds}" + size(chunk))
        while True:
            # The server waits after the last chunk, so a read never has more than its end.
            length = self.socket.recv_into(buffer)
            if not length:
                raise ConnectionError("the server has closed the connection")
            total += length
            if total % chunk == 0 and buffer[length - 1] == 0xFF:
                break
        took = time.monotonic() - start
        self.say("OK")
        self.expect("TIME")
        self.expect("ACCEPT")
        return total, took

    def upload(self, seconds: int, chunk: int) -> tuple[int, float]:
        """Returns bytes, and seconds by the server's clock."""
        one = os.urandom(chunk - 1)
        more = (one + b"\x00") * max(1, CHUNK // chunk)
        end, total = time.monotonic() + seconds, 0
        self.say("PUTNORESULT" + size(chunk))
        self.expect("OK")
        while time.monotonic() < end:
            self.socket.sendall(more)
            total += len(more)
        self.socket.sendall(one + b"\xff")
        took = int(self.expect("TIME").split()[1]) / 1e9
        self.expect("ACCEPT")
        return total + chunk, took


@contextmanager
def ranway(binary: Path) -> Iterator[tuple[int, int]]:
    """Our server: its process and its port."""
    command = [binary, "measure", "serve", "--open", "--listen", "127.0.0.1:0", "--flows-per-address", "1000"]
    command += ["--connections-per-address", "1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            if not line.startswith("serving at "):
                sys.exit(f"{binary}: {line}")
            threading.Thread(target=server.stderr.read, daemon=True).start()
            yield server.pid, int(line.split(";")[0].rsplit(":", 1)[1])
        finally:
            server.send_signal(signal.SIGINT)
            server.send_signal(signal.SIGINT)
            server.wait()


@contextmanager
def iperf3() -> Iterator[tuple[int, int]]:
    """iperf3's server: its process and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["iperf3", "--server", "--bind", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            time.sleep(0.5)
            yield server.pid, port
        finally:
            server.terminate()
            server.wait()


def parallel(port: int, flows: int, run: Callable[[Connection], tuple[int, float]]) -> list[tuple[int, float]]:
    """Runs a transfer on several connections at the same time."""
    results: list[tuple[int, float]] = []
    connections = [Connection(port) for _ in range(flows)]
    threads = [threading.Thread(target=lambda one=one: results.append(run(one))) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in connections:
        one.socket.close()
    if len(results) != flows:
        sys.exit("a transfer failed")
    return results


def measure_ranway(binary: Path, flows: int, direction: str, seconds: int, chunk: int) -> Result:
    with ranway(binary) as (pid, port):
        before = processor_time(pid)
        results = parallel(port, flows, lambda one: getattr(one, direction)(seconds, chunk))
        spent = processor_time(pid) - before
    gbit = sum(size for size, _ in results) * 8e-9
    return Result(gbit / max(took for _, took in results), spent / gbit)


def measure_iperf3(flows: int, direction: str, seconds: int, chunk: int) -> Result:
    with iperf3() as (pid, port):
        before = processor_time(pid)
        command = ["iperf3", "--client", "127.0.0.1", "--port", str(port), "--time", str(seconds), "--json"]
        command += ["--parallel", str(flows), "--length", str(chunk)]
        command += ["--reverse"] if direction == "download" else []
        output = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        spent = processor_time(pid) - before
    received = output["end"]["sum_received"]
    gbit = received["bytes"] * 8e-9
    return Result(gbit / received["seconds"], spent / gbit)


def measure_many(binary: Path, seconds: int) -> dict[str, float]:
    """100 tests at the same time, half of them in each direction."""
    with ranway(binary) as (pid, port):
        before = processor_time(pid)
        turn = iter(range(TESTS))

        def run(one: Connection) -> tuple[int, float]:
            direction = one.download if next(turn) % 2 else one.upload
            return direction(seconds, SMALL_CHUNK)

        results = parallel(port, TESTS, run)
        spent, memory = processor_time(pid) - before, resident_mib(pid)
    rates = [size * 8e-9 / took for size, took in results]
    gbit = sum(size for size, _ in results) * 8e-9
    return {
        "tests": TESTS,
        "gbit_s": round(sum(rates), 3),
        "least_mbit_s": round(min(rates) * 1e3, 1),
        "largest_mbit_s": round(max(rates) * 1e3, 1),
        "cpu_ms_per_gbit": round(spent / gbit * 1e3, 3),
        "resident_mib": round(memory, 1),
    }


def median(results: list[Result]) -> Result:
    return Result(
        statistics.median(one.gbit_s for one in results), statistics.median(one.cpu_s_per_gbit for one in results)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranway", type=Path, default=ROOT / "target/release/ranway", help="the command to measure")
    parser.add_argument("--seconds", type=int, default=5, help="seconds of a transfer")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each server; medians are reported")
    args = parser.parse_args()
    if not args.ranway.exists():
        sys.exit(f"{args.ranway} is not there: cargo build --release -p ranway")
    if not shutil.which("iperf3"):
        sys.exit("iperf3 is not there: apt install iperf3")
    figures: dict[str, object] = {}
    print(f"{'':36}{'ranway':>18}{'iperf3':>22}")
    sizes = {"1 MiB": CHUNK, "4 KiB": DEFAULT_CHUNK}
    cases = [(direction, flows, of) for direction in ("upload", "download") for flows in (1, 8) for of in sizes]
    for direction, flows, of in cases:
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(measure_ranway(args.ranway, flows, direction, args.seconds, sizes[of]))
            theirs.append(measure_iperf3(flows, direction, args.seconds, sizes[of]))
        one, other = median(ours), median(theirs)
        name = f"{direction}, {flows} flow{'s' * (flows > 1)}, {of}"
        figures[name] = {"ranway": one.json(), "iperf3": other.json()}
        cells = [f"{r.gbit_s:7.2f} Gbit/s {r.cpu_s_per_gbit * 1e3:5.1f} ms/Gbit" for r in (one, other)]
        print(f"{name:32}{cells[0]:>26}{cells[1]:>28}", flush=True)
    figures["many"] = many = measure_many(args.ranway, args.seconds)
    print(f"{TESTS} tests: " + ", ".join(f"{name} {value}" for name, value in many.items() if name != "tests"))
    path = ROOT / "target/bench/measure_server.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=2) + "\n")
    print(path)


if __name__ == "__main__":
    main()
