"""Whether `ranway proxy` keeps its memory flat while connections come and go for hours.

Needs root and a built `ranway` (`cargo build --release -p ranway`). The three namespaces are those of proxy.py.
Sixteen UEs are active at a time, each with an IPv4 address and an IPv6 prefix, and every two seconds one of them
gives way to a new one: thousands in an hour. RAPID is on: a program reports what each active UE could receive, 5 to
100 Mbit/s, and pauses at times, so that windows are set and lifted.

UEs and servers open connections to each other over IPv4 and IPv6, `--rate` a second together, and each side has at
most `--open`. They transfer 1 B to 1 MB each way and half-close, wait for the other side's end, stop reading for
seconds, stay idle, reset, are reset, say nothing until the proxy's idle timeout, or connect to closed ports. Both
ends check each byte, and that a connection that was cut short ends with a reset.

Each minute a line shows connections so far, open ones, faults of the hosts, the proxy's resident memory and its own
part, which is not of files (medians of the minute), its descriptors without pipes and its pipes' descriptors, sockets
of the router, and slab memory of the machine, which other programs use as well. The verdict: both grow by less than 5
% from the second to the last tenth of the time, descriptors are back where they were (but for the empty pipes that
the proxy keeps), and there were no faults. With `--upgrade`, another process takes over from the proxy each so many
minutes, and the memory is the last one's. A proxy that gets no processor for 3 s resets handshakes under way, which
counts as faults here: leave it some of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proxy import ROOT, ROUTER, SERVER, UE, inside, network, processor, resident, run

PORT, CLOSED = 5201, 5202
SERVERS = ("10.2.0.2", "fd02::2")
# Any address of a UE; the proxy of the first one passes them on.
NETWORKS = ("10.1.0.0/16", "fd01::/32")
ACTIVE, CHANGE_S = 16, 2
REPORTS_S = 0.1
# Reports pause for a while, each so often.
PAUSE_S, PAUSE_EVERY_S = 5, 120
MOST_BYTES = 1_000_000
IDLE_TIMEOUT_S = 60
# The longest that a host waits, in s.
PATIENCE = 150
# Interval between two looks at the proxy, in s.
LOOK_S = 5
GROWTH = 0.05
# Empty pipes that a thread of the proxy keeps, and descriptors of each.
SPARE_PIPES = 2 * 64
HEADER = struct.Struct("!cIII")
BLOCK = random.Random(1).randbytes(2 * MOST_BYTES)

# What a connection does, and how often. The server needs to know some of it.
WHOLE, LENGTH, STALL, HOLD, RESET_BY_CLIENT, RESET_BY_SERVER, SILENT, REFUSED = kinds = (
    "whole",
    "length",
    "stall",
    "hold",
    "reset by client",
    "reset by server",
    "silent",
    "refused",
)
WEIGHTS = (41, 20, 10, 10, 6, 6, 1, 6)
ORDERS = {
    WHOLE: b"e",
    LENGTH: b"l",
    STALL: b"e",
    HOLD: b"e",
    RESET_BY_CLIENT: b"r",
    RESET_BY_SERVER: b"b",
    SILENT: b"r",
}


class Fault(Exception):
    """What should not happen to a connection."""


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def body(seed: int, length: int) -> memoryview:
    start = seed % MOST_BYTES
    return memoryview(BLOCK)[start : start + length]


def ues() -> range:
    """The numbers of the UEs that are active now."""
    first = 256 + int(time.time() / CHANGE_S) % 60_000
    return range(first, first + ACTIVE)


def addresses(ue: int) -> tuple[str, str]:
    return f"10.1.{ue >> 8}.{ue & 255}", f"fd01:0:{ue:x}::2"


class Stream:
    """A connection that checks the bytes that it receives."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.loop = asyncio.get_running_loop()

    async def send(self, data: memoryview | bytes) -> None:
        await self.loop.sock_sendall(self.sock, data)

    async def receive(self, expected: memoryview | bytes) -> None:
        got = 0
        while got < len(expected):
            data = await self.loop.sock_recv(self.sock, min(1 << 16, len(expected) - got))
            if not data:
                raise Fault(f"an end after {got} of {len(expected)} bytes")
            if data != expected[got : got + len(data)]:
                raise Fault(f"wrong bytes after {got} of {len(expected)}")
            got += len(data)

    async def end(self) -> None:
        """Waits for the other side's end."""
        if await self.loop.sock_recv(self.sock, 1):
            raise Fault("more bytes than were sent")

    async def cut(self) -> None:
        """Waits for a reset, whatever comes before it."""
        while await self.loop.sock_recv(self.sock, 1 << 16):
            pass
        raise Fault("an end instead of a reset")

    def shut(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def answer(sock: socket.socket) -> None:
    """One connection of the server: receives and sends what its header asks for."""
    stream = Stream(sock)
    header = b""
    cut_short = False
    try:
        while len(header) < HEADER.size:
            data = await stream.loop.sock_recv(sock, HEADER.size - len(header))
            if not data:
                raise Fault("an end in the header")
            header += data
        order, seed, up, down = HEADER.unpack(header)
        cut_short = order == b"r"
        await stream.receive(body(seed, up))
        if order == b"e":
            await stream.end()
        await stream.send(body(seed + 1, down))
        if order == b"r":
            await stream.cut()
        if order == b"b":
            stream.reset()
    except ConnectionError as error:
        if header and not cut_short:
            raise Fault(f"{error} ({header.hex()})") from error
    finally:
        sock.close()


async def serve() -> None:
    tasks: set[asyncio.Task[None]] = set()

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            say(fault=f"server: {type(error).__name__} {error}")

    async def accept(listener: socket.socket) -> None:
        listener.setblocking(False)
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            task = asyncio.create_task(asyncio.wait_for(answer(sock), PATIENCE))
            tasks.add(task)
            task.add_done_callback(ended)

    families = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
    listeners = [
        socket.create_server((address, PORT), family=family, backlog=1024) for family, address in families.items()
    ]
    say(ready=True)
    await asyncio.gather(*map(accept, listeners))


async def converse(kind: str, family: int, from_ue: bool, dice: random.Random) -> int:
    """One connection. Returns the bytes that its hosts have checked."""
    ue = addresses(dice.choice(ues()))
    v6 = int(family == socket.AF_INET6)
    up, down = (round(math.exp(dice.uniform(0, math.log(MOST_BYTES)))) for _ in range(2))
    seed = dice.randrange(MOST_BYTES)
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        stream = Stream(sock)
        if from_ue:
            sock.bind((ue[v6], 0))
        peer = SERVERS[v6] if from_ue else ue[v6]
        try:
            await stream.loop.sock_connect(sock, (peer, CLOSED if kind == REFUSED else PORT))
            if kind == REFUSED:
                await stream.cut()
            if kind == SILENT:
                up = down = min(up, down, 1000)
            await stream.send(HEADER.pack(ORDERS[kind], seed, up, down))
            whole = body(seed + 1, down)
            sending = asyncio.create_task(stream.send(body(seed, up)))
            try:
                await sending
                if kind == HOLD:
                    await asyncio.sleep(dice.uniform(10, IDLE_TIMEOUT_S * 2 / 3))
                if ORDERS[kind] == b"e":
                    stream.shut()
                if kind == STALL:
                    await asyncio.sleep(dice.uniform(1, 10))
                if kind == RESET_BY_SERVER:
                    await stream.cut()
                if kind == RESET_BY_CLIENT:
                    part = dice.randrange(down + 1)
                    await stream.receive(whole[:part])
                    stream.reset()
                    return up + part
                await stream.receive(whole)
                if kind == SILENT:
                    await stream.cut()
                await stream.end()
            finally:
                sending.cancel()
        except ConnectionError:
            if kind not in (REFUSED, RESET_BY_SERVER, SILENT):
                raise
            return 0
    return up + down


async def churn(from_ue: bool, rate: float, most: int, seconds: float, upgrade: float) -> None:
    """Opens connections at random times until the time is over, and waits for their ends."""
    dice = random.Random(f"{from_ue} {time.time()}")
    done: Counter[str] = Counter()
    total = peak = 0
    # What bypasses the proxy during an upgrade has no idle timeout.
    weights = [0 if upgrade and kind == SILENT else weight for kind, weight in zip(kinds, WEIGHTS, strict=True)]
    tasks: set[asyncio.Task[None]] = set()

    async def one(kind: str) -> None:
        nonlocal total
        family = dice.choice((socket.AF_INET, socket.AF_INET6))
        try:
            checked = await asyncio.wait_for(converse(kind, family, from_ue, dice), PATIENCE)
            total += checked
            done[kind] += 1
        except (Fault, OSError, TimeoutError) as error:
            say(fault=f"{'UE' if from_ue else 'server'} opened, {kind}, {family.name}: {type(error).__name__} {error}")

    start, told = time.monotonic(), 0.0
    while tasks or time.monotonic() < start + seconds:
        if time.monotonic() < start + seconds and len(tasks) < most:
            task = asyncio.create_task(one(*dice.choices(kinds, weights)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        peak = max(peak, len(tasks))
        if time.monotonic() > told + LOOK_S:
            say(done=done, bytes=total, peak=peak)
            told = time.monotonic()
        await asyncio.sleep(dice.expovariate(rate))
    say(done=done, bytes=total, peak=peak)


def report(path: str) -> None:
    """Reports what the active UEs could receive, with pauses. A proxy that takes over has another socket."""
    while True:
        with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
            sock.connect(path)
            write_reports(sock)
        time.sleep(REPORTS_S)


def write_reports(sock: socket.socket) -> None:
    pause = time.time() + PAUSE_EVERY_S
    while True:
        now = time.time()
        lines = []
        for ue in ues():
            first, second = addresses(ue)
            one: dict[str, Any] = {
                "time_us": int(now * 1e6),
                "interval_us": int(REPORTS_S * 1e6),
                "cell": ue % 4,
                "rnti": ue,
            }
            one |= {"address": first, "second_address": second, "n_prb": 100, "slots": int(REPORTS_S * 1e3)}
            # A tenth of Mbit/s for each bit.
            rate = 1000 * 20 ** (math.sin(now / 30 + ue) / 2 - 0.5)
            one |= {"cell_prbs": 0, "active_ues": 0, "prbs": 0, "acked_bits": 0, "blocks": 0, "failed": 0}
            lines.append(json.dumps({**one, "bits_per_prb": rate}) + "\n")
        sock.sendall("".join(lines).encode())
        time.sleep(REPORTS_S)
        if now > pause:
            time.sleep(PAUSE_S)
            pause += PAUSE_EVERY_S


class Hosts:
    """The programs that open and answer connections, and what they have said."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []
        self.last: dict[str, dict[str, Any]] = {}
        self.faults = 0

    def start(self, space: str, *arguments: str) -> subprocess.Popen[str]:
        """Runs this file as `helper` in a namespace."""
        command = inside(space, sys.executable, __file__, *arguments, cpu="0,1")
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.running.append(program)
        threading.Thread(target=self.listen, args=(f"{space} {arguments[0]}", program), daemon=True).start()
        return program

    def listen(self, name: str, program: subprocess.Popen[str]) -> None:
        assert program.stdout is not None
        for line in program.stdout:
            said = json.loads(line)
            if "fault" in said:
                self.faults += 1
                print(f"{time.strftime('%H:%M:%S')} fault: {said['fault']}", flush=True)
            else:
                self.last[name] = said

    def sum(self, key: str) -> int:
        return sum(said.get(key, 0) for said in self.last.values())

    def done(self) -> Counter[str]:
        return sum((Counter(said.get("done", {})) for said in self.last.values()), Counter())

    def end(self) -> None:
        for program in self.running:
            program.kill()
            program.wait()


def repeat(lines: Iterable[str]) -> None:
    """Prints what the proxy says."""
    for line in lines:
        print(line.strip(), flush=True)


@contextlib.contextmanager
def proxy(ranway: Path, reports: str) -> Iterator[Process]:
    """Gives its process."""
    options = ["--wan", "wan", "--ran", "ran", "--drain", "100ms", "--reports", f"recording:unix:{reports}"]
    command = [str(ranway), "proxy", *options, "--idle-timeout", f"{IDLE_TIMEOUT_S} s", "--from-servers"]
    running = subprocess.Popen(inside(ROUTER, *command, cpu="0,1"), stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    try:
        assert "splitting" in running.stderr.readline()
        threading.Thread(target=repeat, args=(running.stderr,), daemon=True).start()
        process = Process(running.pid)
        yield process
    finally:
        with contextlib.suppress(OSError):
            os.kill(process.number, signal.SIGTERM)
        running.wait()


class Process:
    """The proxy, or the last that has taken over from it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.longest_s = 0.0

    def replace(self) -> None:
        """Has another process take over."""
        before, start = self.number, time.monotonic()
        os.kill(before, signal.SIGUSR2)
        successor: list[str] = []
        while Path(f"/proc/{before}").exists() and "State:\tZ" not in Path(f"/proc/{before}/status").read_text():
            command = ["pgrep", "-P", str(before), "-f", "--", "--take-over"]
            found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
            successor = found or successor
            if time.monotonic() - start > 30:
                raise RuntimeError("no process has taken over")
            time.sleep(0.02)
        self.number = int(successor[0])
        self.longest_s = max(self.longest_s, time.monotonic() - start)


def own_memory(process: int) -> float:
    """KB of memory that is not of files, such as the program itself."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def descriptors(process: int) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for file in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            kinds["pipes" if os.readlink(file).startswith("pipe:") else "others"] += 1
    return kinds


def kernel(process: int) -> tuple[int, int, float]:
    """TCP sockets of the router that are in use and in TIME-WAIT, and the machine's slab memory in MB."""
    fields: dict[str, int] = {}
    for name in ("sockstat", "sockstat6"):
        for line in Path(f"/proc/{process}/net/{name}").read_text().splitlines():
            protocol, *pairs = line.split()
            fields |= {protocol + key: int(value) for key, value in zip(pairs[::2], pairs[1::2], strict=True)}
    lines = Path("/proc/meminfo").read_text().splitlines()
    slab = next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("Slab:"))
    return fields["TCP:inuse"] + fields["TCP6:inuse"], fields["TCP:tw"], slab


def status(ranway: Path) -> dict[str, Any]:
    command = inside(ROUTER, str(ranway), "proxy", "status", "--json", cpu="0,1")
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    totals: dict[str, Any] = json.loads(said)["totals"]
    return totals


def route_ues() -> None:
    for host, route in ((ROUTER, "via {} dev ran"), (UE, "dev lo")):
        kind = "local " if host == UE else ""
        for network_, gateway in zip(NETWORKS, ("10.1.0.2", "fd01::2"), strict=True):
            run(f"ip -n {host} route add {kind}{network_} {route.format(gateway)}")
    for version in ("ipv4", "ipv6"):
        subprocess.run(inside(UE, "sysctl", "-qw", f"net.{version}.ip_nonlocal_bind=1"), check=True)


def watch(arguments: argparse.Namespace, hosts: Hosts, proxied: Process) -> dict[str, Any]:
    """Prints a line each minute until all connections have ended. Returns the figures."""
    seconds = arguments.minutes * 60
    serving = [hosts.start(space, "serve") for space in (UE, SERVER)]
    while len(hosts.last) < len(serving):
        time.sleep(0.1)
    hosts.start(ROUTER, "report", arguments.socket)
    time.sleep(1)
    process = proxied.number
    before = descriptors(process)
    options = [str(value) for value in (arguments.rate / 2, arguments.open, seconds, arguments.upgrade)]
    clients = [hosts.start(space, "open", name, *options) for space, name in ((UE, "ue"), (SERVER, "server"))]
    head = "min  connections  open  faults  resident kB   own kB    files  pipes  sockets  TIME-WAIT  slab MB  CPU %"
    print(head, flush=True)
    start, minute = time.monotonic(), 0
    looks: list[tuple[float, float, float]] = []
    used, upgrades = processor(process), 0
    while any(client.poll() is None for client in clients):
        time.sleep(LOOK_S)
        if arguments.upgrade and time.monotonic() - start > (upgrades + 1) * arguments.upgrade * 60:
            proxied.replace()
            upgrades += 1
            process = proxied.number
            used = processor(process)
        for program in serving:
            if program.poll() is not None:
                raise RuntimeError("a server has ended")
        now = time.monotonic() - start
        looks.append((now, resident(process), own_memory(process)))
        if now // 60 > minute:
            minute = int(now // 60)
            memory, own = (statistics.median(look[n] for look in looks if look[0] > now - 60) for n in (1, 2))
            files, (inuse, waiting, slab) = descriptors(process), kernel(process)
            share, used = (processor(process) - used) / 0.6, processor(process)
            print(
                f"{minute:3}{sum(hosts.done().values()):13}{status(arguments.ranway)['open']:6}{hosts.faults:8}{memory:13.0f}{own:9.0f}"
                f"{files['others']:9}{files['pipes']:7}{inuse:9}{waiting:11}{slab:9.0f}{share:7.1f}",
                flush=True,
            )
    # What the hosts have ended ends in the proxy a moment later.
    time.sleep(5)

    def tenth(number: int, what: int) -> float:
        return statistics.median(look[what] for look in looks if number <= look[0] * 10 / seconds < number + 1)

    memory = {name: [tenth(1, what), tenth(9, what)] for what, name in ((1, "resident"), (2, "own"))}
    after, totals = descriptors(process), status(arguments.ranway)
    return {
        "minutes": arguments.minutes,
        "connections": dict(hosts.done()),
        "faults": hosts.faults,
        "upgrades": upgrades,
        "longest_upgrade_s": proxied.longest_s,
        "checked_bytes": hosts.sum("bytes"),
        "peak_of_each": {name: said["peak"] for name, said in hosts.last.items() if "peak" in said},
        "kb_in_the_second_and_the_last_tenth": memory,
        "growth": {name: last / first - 1 for name, (first, last) in memory.items()},
        "descriptors": {"before": dict(before), "after": dict(after)},
        "totals": totals,
    }


def verdict(figures: dict[str, Any], threads: int) -> bool:
    files = figures["descriptors"]
    before, after = files["before"], files["after"]
    checks = {
        **{f"growth of {name} memory {growth:.1%}": growth < GROWTH for name, growth in figures["growth"].items()},
        f"descriptors {before} before, {after} after": after["others"] <= before["others"]
        and after.get("pipes", 0) <= before.get("pipes", 0) + SPARE_PIPES * threads,
        f"{figures['faults']} faults": figures["faults"] == 0,
        f"{figures['totals']['open']} connections left": figures["totals"]["open"] == 0,
        f"{figures['totals']['internal_errors']} errors of the proxy": figures["totals"]["internal_errors"] == 0,
    }
    for what, holds in checks.items():
        print(f"{'held' if holds else 'MISSED':8}{what}")
    return all(checks.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--minutes", type=float, default=120, help="default: 120")
    parser.add_argument("--rate", type=float, default=60, help="connections per second (default: 60)")
    parser.add_argument("--open", type=int, default=300, help="most open connections of each side (default: 300)")
    text = "minutes after which another process takes over, again and again (default: never)"
    parser.add_argument("--upgrade", type=float, default=0, help=text)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "churn.json")
    arguments = parser.parse_args()
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    # So that the namespaces go even then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    hosts = Hosts()
    with tempfile.TemporaryDirectory() as scratch, network():
        arguments.socket = f"{scratch}/reports"
        route_ues()
        with proxy(arguments.ranway.resolve(), arguments.socket) as process:
            try:
                figures = watch(arguments, hosts, process)
            finally:
                hosts.end()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures))
    return 0 if verdict(figures, os.cpu_count() or 1) else 1


def helper(role: str, arguments: list[str]) -> None:
    """What the hosts run."""
    if role == "serve":
        asyncio.run(serve())
    elif role == "open":
        side, rate, most, seconds, upgrade = arguments
        asyncio.run(churn(side == "ue", float(rate), int(most), float(seconds), float(upgrade)))
    else:
        report(*arguments)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("serve", "open", "report"):
        helper(sys.argv[1], sys.argv[2:])
    else:
        sys.exit(main())
