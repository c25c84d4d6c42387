"""What `ranway proxy` costs on this machine, beside HAProxy and the bare router in the same run.

Needs root, HAProxy (Debian's package `haproxy`), iperf3, a C compiler and a built `ranway` (`cargo build --release -p
ranway`); nginx, if it is installed (Debian's `nginx` and `libnginx-mod-stream`), and PEPsal, if its program is given
(peers/README.md). Three namespaces in a row: a UE, a router, a server; veth pairs between them. The proxies are
transparent and run on one processor (1); the hosts run on another one (0), which they share. HAProxy and `ranway
proxy` move bytes by splice, nginx and PEPsal copy them. `rapid` is `ranway proxy` with reports of a radio that
carries more than all of this: RAPID observes each flow and sets its windows every 5 ms. The program that writes the
reports runs on the hosts' processor, and beside the others as well, for nothing. The interfaces merge and cut segments
(GRO and TSO) as they do by default. The proxies take turns, so that what else the machine does meets all alike:

- Mbit/s of payload that one flow, 16 and 1,000 flows deliver from the server to the UE (iperf3), and the proxy's
  processor time (user and system) for each Gbit: its reciprocal is what one processor carries, also where the hosts
  are the limit;
- connections per second (connect, a byte there and back, end) one after the other and 64 at a time, and the proxy's
  processor time for each: its reciprocal is what one processor carries, also where the hosts are the limit;
- memory of the proxy for each of some connections on which the server sends and the UE stops reading, at once or after
  4 MB: its sockets (`ss -m`), what is in its pipes, and its own;
- the round trip of a byte on an open connection, median and 99th percentile.

`target/bench/proxy.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UE, ROUTER, SERVER = (f"ranway-bench-{os.getpid()}-{name}" for name in "urs")
ADDRESS = "10.2.0.2"
HOSTS, PROXY = "0", "1"
# Connections at a time where the client does not wait for each.
AT_ONCE = 64
PARTS = ("transfers", "connections", "round-trips", "memory")
# The longest that a program may take, in s: one whose connection stands still does not end.
PATIENCE = 60
# Bytes that a UE takes before it stops reading.
TAKEN = 4_000_000
# The most that it accepts.
PEPSAL_CONNECTIONS = "4096"
# The proxies that are not ours.
OTHERS = ("haproxy", "nginx", "pepsal")
NGINX_MODULE = Path("/usr/lib/nginx/modules/ngx_stream_module.so")

HAPROXY = """
global
  nbthread 1
  maxconn 6000
  tune.pipesize {pipe}
defaults
  mode tcp
  option splice-auto
  timeout connect 60s
  timeout client 2h
  timeout server 2h
listen proxy
  bind :5000 transparent
  source 0.0.0.0 usesrc clientip
  server any 0.0.0.0:0
"""
# Its stream module has no splice. Its listening sockets are not transparent, so START_NGINX makes one and hands it over
# as in an upgrade.
NGINX = """
daemon off;
worker_processes 1;
user root;
pid {dir}/pid;
error_log {dir}/log;
load_module {module};
events {{ worker_connections 8192; }}
stream {{
  proxy_buffer_size 256k;
  server {{
    listen 5000;
    proxy_pass $server_addr:$server_port;
    proxy_bind $remote_addr transparent;
    proxy_timeout 2h;
  }}
}}
"""
START_NGINX = """
import os, socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
s.bind(("0.0.0.0", 5000))
s.listen(4096)
s.set_inheritable(True)
os.environ["NGINX"] = f"{s.fileno()};"
os.execvp("nginx", ["nginx", "-p", sys.argv[1], "-c", f"{sys.argv[1]}/nginx.conf"])
"""
RULES = """
table ip peer {
  chain pre {
    type filter hook prerouting priority mangle;
    meta l4proto tcp socket transparent 1 meta mark set 1 accept
    iifname "ran" meta l4proto tcp tproxy to :5000 meta mark set 1 accept
  }
}
"""

# Echoes bytes, and sends without end to whoever sends "s".
ECHO = """
import asyncio
async def serve(reader, writer):
    try:
        while byte := await reader.read(1):
            if byte == b"s":
                while True:
                    writer.write(bytes(1 << 16))
                    await writer.drain()
            writer.write(byte)
        writer.close()
    except (ConnectionError, OSError):
        pass
async def main():
    server = await asyncio.start_server(serve, "10.2.0.2", 5201, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
PING = """
import socket, statistics, sys, time
s = socket.create_connection(("10.2.0.2", 5201))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
times = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    s.sendall(b"x")
    s.recv(1)
    times.append((time.perf_counter() - start) * 1e6)
times = sorted(times[100:])
print(statistics.median(times), times[len(times) * 99 // 100])
"""
# Reports each 5 ms on a UE that could receive 20 Gbit/s.
REPORTS = """
import json, socket, sys, time
send = open("/dev/null", "wb", buffering=0).write
if sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    send = s.sendall
report = {"interval_us": 5000, "cell": 1, "rnti": 61, "address": "10.1.0.2", "n_prb": 1700, "slots": 5, "cell_prbs": 0,
    "active_ues": 0, "prbs": 0, "acked_bits": 0, "blocks": 0, "failed": 0, "bits_per_prb": 12000}
while True:
    send((json.dumps({"time_us": int(time.time() * 1e6), **report}) + "\\n").encode())
    time.sleep(0.005)
"""
HOLD = """
import socket, sys, time
held = []
for _ in range(int(sys.argv[1])):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
    s.connect(("10.2.0.2", 5201))
    s.sendall(b"s")
    left = int(sys.argv[2])
    while left > 0:
        left -= len(s.recv(min(left, 1 << 16)))
    held.append(s)
print("ready", flush=True)
sys.stdin.read()
"""


def run(line: str) -> None:
    subprocess.run(line.split(), check=True)


def inside(space: str, *command: str, cpu: str = HOSTS) -> list[str]:
    return ["ip", "netns", "exec", space, "taskset", "-c", cpu, *command]


@contextmanager
def network(mtu: int = 1500) -> Iterator[None]:
    try:
        for name in (UE, ROUTER, SERVER):
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
        for host, interface, end, net in ((UE, "u0", "ran", 1), (SERVER, "s0", "wan", 2)):
            run(f"ip -n {host} link add {interface} type veth peer name {end} netns {ROUTER}")
            for prefix, length in ((f"10.{net}.0.", "24"), (f"fd0{net}::", "64 nodad")):
                run(f"ip -n {host} addr add {prefix}2/{length} dev {interface}")
                run(f"ip -n {ROUTER} addr add {prefix}1/{length} dev {end}")
            run(f"ip -n {host} link set {interface} mtu {mtu} up")
            run(f"ip -n {ROUTER} link set {end} mtu {mtu} up")
            for gateway in (f"10.{net}.0.1", f"fd0{net}::1"):
                run(f"ip -n {host} route add default via {gateway}")
        for forwarding in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
            subprocess.run(inside(ROUTER, "sysctl", "-qw", f"net.{forwarding}=1"), check=True)
        # Thousands of ports in TIME-WAIT make each further connection slower, whatever is in between.
        for name in (UE, ROUTER, SERVER):
            subprocess.run(inside(name, "sysctl", "-qw", "net.ipv4.tcp_max_tw_buckets=100"), check=True)
        yield
    finally:
        for name in (UE, ROUTER, SERVER):
            subprocess.run(["ip", "netns", "delete", name], check=False)


@contextmanager
def serving(*command: str) -> Iterator[None]:
    server = subprocess.Popen(inside(SERVER, *command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        yield
    finally:
        server.kill()
        server.wait()


@contextmanager
def reports(socket: str | None) -> Iterator[None]:
    """Writes reports to a socket, or nowhere."""
    arguments = [] if socket is None else [socket]
    feed = subprocess.Popen(inside(ROUTER, sys.executable, "-c", REPORTS, *arguments), stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        feed.kill()
        feed.wait()


@contextmanager
def woken(process: int) -> Iterator[None]:
    """Sends PEPsal the signal of a new connection a hundred times a second. If such a signal arrives just before
    PEPsal waits, PEPsal misses it, and the connection stalls until the next one."""
    over = threading.Event()

    def wake() -> None:
        while not over.wait(0.01):
            os.kill(process, signal.SIGUSR1)

    waker = threading.Thread(target=wake)
    waker.start()
    try:
        yield
    finally:
        over.set()
        waker.join()


@contextmanager
def way(name: str, arguments: argparse.Namespace, scratch: str) -> Iterator[int | None]:
    """Runs a proxy, with its files in a directory. Gives its process."""
    if name == "bare":
        with reports(None):
            yield None
        return
    socket = f"/tmp/{ROUTER}.reports"
    nice = ["nice", "-n", str(arguments.nice)]
    if name in ("ranway", "rapid"):
        options = ["--wan", "wan", "--ran", "ran", "--threads", "1", "--drain", "100ms"]
        # One host is all UEs here, and another one all servers.
        options += ["--max-per-ue", "20000", "--max-per-server", "20000"]
        options += ["--max-half-open-per-ue", "2000", "--max-half-open-per-server", "2000"]
        if name == "rapid":
            options += ["--reports", f"recording:unix:{socket}"]
        command = inside(ROUTER, *nice, str(arguments.ranway), "proxy", *options, cpu=PROXY)
        running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        said = running.stderr.readline()
        assert "splitting" in said, said
    else:
        rules = inside(ROUTER, "nft", "-f", "-")
        subprocess.run(rules, input=RULES, text=True, check=True)
        run(f"ip -n {ROUTER} rule add fwmark 1 lookup 100")
        run(f"ip -n {ROUTER} route add local default dev lo table 100")
        if name == "haproxy":
            file = Path(scratch) / "haproxy.cfg"
            file.write_text(HAPROXY.format(pipe=arguments.pipe << 10))
            # -db: in the foreground, without a master.
            command = ["haproxy", "-db", "-f", str(file)]
        elif name == "nginx":
            (Path(scratch) / "nginx.conf").write_text(NGINX.format(dir=scratch, module=NGINX_MODULE))
            command = [sys.executable, "-c", START_NGINX, scratch]
        else:
            command = [str(arguments.pepsal), "-p", "5000", "-c", PEPSAL_CONNECTIONS]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = subprocess.Popen(inside(ROUTER, *nice, *command, cpu=PROXY), **quiet)
    time.sleep(1)
    if running.poll() is not None:
        raise RuntimeError(f"{name} does not start")
    try:
        with reports(socket if name == "rapid" else None), woken(running.pid) if name == "pepsal" else nullcontext():
            # `ip`, `taskset` and `nice` have become it; of nginx, a child does the work.
            yield child(running.pid) if name == "nginx" else running.pid
    finally:
        running.send_signal(signal.SIGKILL if name in ("haproxy", "pepsal") else signal.SIGTERM)
        running.wait()
        if name in OTHERS:
            subprocess.run(inside(ROUTER, "nft", "delete", "table", "ip", "peer"), check=False)
            run(f"ip -n {ROUTER} rule del fwmark 1 lookup 100")
            run(f"ip -n {ROUTER} route flush table 100")


def child(process: int) -> int:
    return int(Path(f"/proc/{process}/task/{process}/children").read_text())


def processor(process: int | None) -> float:
    """Seconds of processor time that it has taken."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """KB of its memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def in_sockets() -> float:
    """KB that the router's sockets take: received, and to be sent or acknowledged."""
    said = subprocess.run(inside(ROUTER, "ss", "-tmnH"), check=True, capture_output=True, text=True).stdout
    return sum(int(taken) for taken in re.findall(r"[(,][rw](\d+)\b", said)) / 1024


def in_pipes(process: int) -> float:
    """KB that are in its pipes."""
    bytes_in: dict[str, int] = {}
    for file in Path(f"/proc/{process}/fd").iterdir():
        # It may just have been closed.
        with suppress(FileNotFoundError):
            name = os.readlink(file)
            if name.startswith("pipe:") and name not in bytes_in:
                pipe = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
                bytes_in[name] = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
                os.close(pipe)
    return sum(bytes_in.values()) / 1024


def transfers(flows: int, seconds: float, process: int | None) -> dict[str, float]:
    """Mbit/s, and the process's seconds for each Gbit."""
    # A process of iperf3 has 128 flows at most.
    shares = {5301 + n: min(flows - first, 125) for n, first in enumerate(range(0, flows, 125))}
    servers = [
        subprocess.Popen(inside(SERVER, "iperf3", "-s", "-1", "-p", str(port)), stdout=subprocess.DEVNULL)
        for port in shares
    ]
    time.sleep(0.3)
    before = processor(process)
    clients = []
    for port, share in shares.items():
        options = ["-p", str(port), "-R", "-J", "-P", str(share), "-t", str(seconds)]
        command = inside(UE, "iperf3", "-c", ADDRESS, *options)
        clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    try:
        said = [json.loads(client.communicate(timeout=PATIENCE)[0]) for client in clients]
    finally:
        for iperf3 in clients + servers:
            iperf3.kill()
            iperf3.wait()
    taken = processor(process) - before
    for one in said:
        if "error" in one:
            raise RuntimeError(f"iperf3 with {flows} flows: {one['error']}")
    received = [one["end"]["sum_received"] for one in said]
    rate = sum(one["bits_per_second"] for one in received) / 1e6
    cost = taken / (sum(one["bytes"] for one in received) * 8e-9)
    return {f"Mbit/s, {flows} flows": rate, f"processor s/Gbit, {flows} flows": cost}


def said_by(host: str, *command: str) -> str:
    return subprocess.run(inside(host, *command), check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def connections(program: Path, at_once: int, seconds: float, process: int | None) -> dict[str, float]:
    """Connections per second, and the process's time for each in us."""
    before = processor(process)
    rate = float(said_by(UE, str(program), "connect", str(seconds), str(at_once)))
    taken = processor(process) - before
    of = "connections/s" if at_once == 1 else f"connections/s, {at_once} at once"
    return {of: rate, of.replace("connections/s", "processor us/connection"): taken * 1e6 / rate / seconds}


def round_trips() -> dict[str, float]:
    """The median and the 99th percentile, in us."""
    median, most = map(float, said_by(UE, sys.executable, "-c", PING, "5000").split())
    return {"round trip us, median": median, "round trip us, 99 %": most}


def memory(count: int, process: int, taken: int = 0) -> dict[str, float]:
    """KB for each connection, of which the UE has taken so many bytes: of the process, and with sockets and pipes."""
    before = resident(process)
    command = inside(UE, sys.executable, "-c", HOLD, str(count), str(taken))
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()
    time.sleep(3)
    own = resident(process) - before
    after = f" after {taken / 1e6:.0f} MB" if taken else ""
    figures = {
        f"resident kB/connection{after}": own / count,
        f"memory kB/connection{after}": (own + in_sockets() + in_pipes(process)) / count,
    }
    holder.communicate("")
    time.sleep(1)
    return figures


def figures_of(name: str, process: int | None, arguments: argparse.Namespace) -> Iterator[tuple[str, float]]:
    """The figures of one turn, by name. PEPsal breaks connections when there are many; such a figure is left out."""
    program, seconds = arguments.program, arguments.seconds
    parts: dict[str, list[Callable[[], dict[str, float]]]] = {
        "transfers": [partial(transfers, flows, seconds, process) for flows in arguments.flows],
        "connections": [partial(connections, program, at_once, seconds, process) for at_once in (1, AT_ONCE)],
        "round-trips": [round_trips],
        "memory": [partial(memory, arguments.connections, process, taken) for taken in (0, TAKEN)]
        if process is not None
        else [],
    }
    for part in [part for name in arguments.parts for part in parts[name]]:
        try:
            yield from part().items()
        except (RuntimeError, subprocess.SubprocessError) as error:
            said = error.stderr.splitlines()[-1] if isinstance(error, subprocess.CalledProcessError) else error
            if name != "pepsal":
                raise RuntimeError(f"{name}: {said}") from error
            print(f"{name}: {said}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--pepsal", type=Path, help="the program of PEPsal, to measure it as well")
    parser.add_argument("--pipe", type=int, default=1024, help="KiB of HAProxy's pipes (the kernel's default: 64)")
    parser.add_argument("--nice", type=int, default=0, help="priority of the proxies, -20 to 19 (default: 0)")
    parser.add_argument("--mtu", type=int, default=1500, help="of all interfaces")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    parser.add_argument("--flows", nargs="+", type=int, default=(1, 16, 1000), help="of transfers")
    parser.add_argument("--ways", nargs="+", help="the proxies to measure (default: all)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "proxy.json")
    arguments = parser.parse_args()
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    # So that the namespaces go even then.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.program = arguments.out.parent.resolve() / "connections"
    source = Path(__file__).with_name("connections.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", arguments.program, source], check=True)
    has_nginx = shutil.which("nginx") is not None and NGINX_MODULE.exists()
    others = {"haproxy": True, "nginx": has_nginx, "pepsal": arguments.pepsal is not None}
    names = ["bare", *(name for name, there in others.items() if there), "ranway", "rapid"]
    if arguments.ways is not None:
        names = [name for name in names if name in arguments.ways]
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in names}
    for name, of in [pair for _ in range(arguments.rounds) for pair in figures.items()]:
        # Each has a network of its own: connections of a proxy that is killed go on in the kernel for a while.
        with (
            tempfile.TemporaryDirectory() as scratch,
            network(arguments.mtu),
            serving(sys.executable, "-c", ECHO),
            serving(str(arguments.program), "answer"),
            way(name, arguments, scratch) as process,
        ):
            for what, value in figures_of(name, process, arguments):
                of.setdefault(what, []).append(value)
    medians = {name: {what: statistics.median(values) for what, values in of.items()} for name, of in figures.items()}
    for what in medians["ranway"]:
        print(f"{what:32}" + "".join(f"  {name} {of[what]:10.3f}" for name, of in medians.items() if what in of))
    arguments.out.write_text(json.dumps({"medians": medians, "all": figures}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
