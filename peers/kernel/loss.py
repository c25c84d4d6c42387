"""CUBIC and Reno under random loss: this machine's kernel beside Ranway.

    sudo peers/kernel/loss.py

Each flow has two network namespaces of its own, which a relay joins: it takes packets
from one TUN device, loses those in the direction of the data with the given probability,
each independently of the others, and hands the rest to the other device half a round
trip later. The kernel sends packets of the wire's size (no segmentation offload), its
windows are never closed, and the relay has no rate. Then Ranway runs `loss.toml`, which
describes the same path.

Of each run counts c = goodput * RTT * sqrt(p) / MSS. p is the share of packets that was
really lost: half of the chance in a throughput is the chance in p. RTT is the path's: the
relay's delay with its mean lateness. (The smoothed RTT of tcp_info is longer, because a
segment often waits for the next one to be acknowledged with it.) The mean over the runs
is printed with Student's 95 % interval. A relay that is late or short of processor time
makes the measurement void: the exit status is then 2.

The namespaces have no names: they and their devices end with this program, however it
ends.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

RTT_MS = 30
MSS = 1448
PORT = 5001
BUFFER = 4 << 20
LOW_WATER = 1 << 19
SPIN_NS = 60_000
NAMES = {"cubic": "cubic", "reno": "new-reno"}
LOSSES = (1e-2, 1e-3)

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33

# The 97.5 % quantile of Student's distribution for 1, 2, ... degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


def fail(message: str) -> None:
    print(f"loss: {message}", file=sys.stderr)
    sys.exit(1)


def host(address: str) -> int:
    """Moves this process into a new namespace with one device `tun0`; gives the device."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        fail(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    # Nothing of one connection may reach the next, and nothing but TCP passes the relay.
    for key, value in {"ipv4/tcp_no_metrics_save": 1, "ipv6/conf/default/disable_ipv6": 1}.items():
        Path(f"/proc/sys/net/{key}").write_text(f"{value}\n")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN | IFF_NO_PI))
    commands = f"link set tun0 mtu 1500 gso_max_segs 1 up\naddress add {address}/24 dev tun0\n"
    subprocess.run(["ip", "-batch", "-"], input=commands, text=True, check=True)
    return device


@dataclass
class Flow:
    """A connection with its path."""

    cc: str
    loss: float
    number: int
    devices: tuple[int, int]
    sender: socket.socket
    listener: socket.socket
    packets: int = 0
    lost: int = 0

    @staticmethod
    def new(cc: str, loss: float, number: int) -> Flow:
        # A socket stays in the namespace in which it was made.
        right = host("10.0.0.2")
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        # Until that much waits to be read the kernel acknowledges every second segment at once. Else an
        # acknowledgement waits for the application, which sleeps while a burst arrives, and covers all of it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LOW_WATER)
        listener.bind(("10.0.0.2", PORT))
        listener.listen()
        left = host("10.0.0.1")
        sender = socket.socket()
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
        return Flow(cc, loss, number, (left, right), sender, listener)


def tcp_info(sender: socket.socket) -> dict[str, int]:
    """What `struct tcp_info` says that is of use here."""
    raw = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 248)
    u32 = {"mss": 16, "rtt_us": 68, "cwnd": 80, "retrans": 100, "segments": 156, "dsacks": 216, "reorderings": 220}
    info = {name: struct.unpack_from("=I", raw, at)[0] for name, at in u32.items()}
    u64 = {"acked": 120, "busy_us": 168, "rwnd_us": 176, "sndbuf_us": 184}
    info |= {name: struct.unpack_from("=Q", raw, at)[0] for name, at in u64.items()}
    info["rtos"] = struct.unpack_from("=H", raw, 240)[0]
    return info


def applications(flows: list[Flow], begin: float, end: float, parent: int) -> list[dict[str, float]]:
    """Sends and receives all it can until `end`; tells of each sender what it did since `begin`."""
    poll = select.epoll()
    # The parent's end of the pipe is gone: so is the parent.
    poll.register(parent, select.EPOLLERR)
    by_descriptor: dict[int, tuple[Flow, socket.socket]] = {}

    def watch(flow: Flow, sock: socket.socket, events: int) -> None:
        sock.setblocking(False)
        by_descriptor[sock.fileno()] = (flow, sock)
        poll.register(sock, events)

    for flow in flows:
        watch(flow, flow.listener, select.EPOLLIN)
        flow.sender.setblocking(False)
        flow.sender.connect_ex(("10.0.0.2", PORT))
        watch(flow, flow.sender, select.EPOLLOUT)
    zeros, waste = bytes(1 << 18), bytearray(1 << 20)
    first: dict[int, dict[str, int]] = {}
    rtts: dict[int, list[int]] = {flow.number: [] for flow in flows}
    windows: dict[int, list[int]] = {flow.number: [] for flow in flows}
    sample = begin
    while (now := time.monotonic()) < end:
        if now >= sample:
            for flow in flows:
                info = tcp_info(flow.sender)
                first.setdefault(flow.number, info)
                rtts[flow.number].append(info["rtt_us"])
                windows[flow.number].append(info["cwnd"])
            # Not in step with the round trips.
            sample += random.uniform(0.05, 0.15)
        for descriptor, _ in poll.poll(max(0.0, min(sample, end) - now)):
            if descriptor == parent:
                os._exit(1)
            flow, sock = by_descriptor[descriptor]
            with suppress(BlockingIOError):
                if sock is flow.listener:
                    watch(flow, sock.accept()[0], select.EPOLLIN)
                elif sock is flow.sender:
                    sock.send(zeros)
                else:
                    sock.recv_into(waste)
    results = []
    for flow in flows:
        was, info = first[flow.number], tcp_info(flow.sender)
        since = {name: info[name] - was[name] for name in info}
        results.append(
            {
                "goodput_mbps": since["acked"] * 8 / (end - begin) / 1e6,
                "srtt_ms": fmean(rtts[flow.number]) / 1e3,
                "cwnd": fmean(windows[flow.number]),
                "mss": info["mss"],
                "retransmission_rate": since["retrans"] / since["segments"],
                "rtos": since["rtos"],
                "dsacks": since["dsacks"],
                "reorderings": info["reorderings"],
                # Held back by anything but the congestion window.
                "other_limits": (since["rwnd_us"] + since["sndbuf_us"]) / max(1, since["busy_us"]),
            }
        )
    return results


@dataclass
class Lateness:
    """By how much packets left late, and the share of a processor that this took."""

    p50_us: float
    p99_us: float
    p999_us: float
    worst_us: float
    mean_us: float
    cpu: float

    def valid(self) -> bool:
        return self.p99_us < 1000 and self.cpu < 0.8


def relay(flows: list[Flow], seed: str, begin: float, end: float) -> Lateness:
    """Carries packets until `end`, and counts them since `begin`."""
    delay_ns = RTT_MS * 1_000_000 // 2
    poll = select.epoll()
    # Of each device: its flow, the flow's losses if data come from here, and where to.
    routes: dict[int, tuple[Flow, random.Random | None, int]] = {}
    for flow in flows:
        left, right = flow.devices
        routes[left] = (flow, random.Random(f"{seed} {flow.cc} {flow.loss} {flow.number}"), right)
        routes[right] = (flow, None, left)
        poll.register(left, select.EPOLLIN)
        poll.register(right, select.EPOLLIN)
    # All wait equally long, so one queue is in the order of departure.
    waiting: deque[tuple[int, int, bytes]] = deque()
    late_us: list[int] = [0] * 20_001
    begin_ns, end_ns = int(begin * 1e9), int(end * 1e9)
    idle_ns = summed_ns = 0
    counting = False
    while (now := time.monotonic_ns()) < end_ns:
        if not counting and now >= begin_ns:
            counting = True
        while waiting and waiting[0][0] <= now:
            due, device, packet = waiting.popleft()
            os.write(device, packet)
            if counting:
                late_us[min((now - due) // 1000, 20_000)] += 1
                summed_ns += now - due
            now = time.monotonic_ns()
        due = waiting[0][0] if waiting else now + 1_000_000
        # `epoll` waits for whole milliseconds, `select` to the microsecond, and waking takes some tens of them.
        if due - now > SPIN_NS:
            select.select([poll], [], [], (due - now - SPIN_NS) / 1e9)
            idle_ns += (time.monotonic_ns() - now) * counting
        for device, _ in poll.poll(0):
            flow, losses, to = routes[device]
            with suppress(BlockingIOError):
                while True:
                    packet = os.read(device, 2048)
                    now = time.monotonic_ns()
                    if losses is not None:
                        lost = losses.random() < flow.loss
                        if counting:
                            flow.packets += 1
                            flow.lost += lost
                        if lost:
                            continue
                    waiting.append((now + delay_ns, to, packet))
    total, so_far = sum(late_us), 0
    quantiles = {0.5: 0.0, 0.99: 0.0, 0.999: 0.0, 1.0: 0.0}
    for us, count in enumerate(late_us):
        for q in quantiles:
            if so_far < q * total <= so_far + count:
                quantiles[q] = us
        so_far += count
    # The processor's own accounts miss what runs between two ticks.
    return Lateness(*quantiles.values(), summed_ns / total / 1e3, 1 - idle_ns / (end_ns - begin_ns))


def kernel(flows: list[Flow], seed: str, warmup_s: float, duration_s: float) -> tuple[list[dict[str, float]], Lateness]:
    """Runs the flows side by side; of each run p is set besides what its sender tells."""
    begin = time.monotonic() + 0.5 + warmup_s
    end = begin + duration_s
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # The sockets' half.
        status = 1
        try:
            os.close(read)
            results = applications(flows, begin, end, write)
            os.write(write, json.dumps(results).encode())
            status = 0
        except KeyboardInterrupt:
            pass
        finally:
            os._exit(status)
    os.close(write)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        # A little longer than the sockets' half, so that those never stand still.
        late = relay(flows, seed, begin, end + 0.2)
        with os.fdopen(read) as pipe:
            answer = pipe.read()
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(child, 15)
        raise
    finally:
        os.waitpid(child, 0)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    if not answer:
        fail("the sockets' half has failed")
    results = json.loads(answer)
    for flow, result in zip(flows, results, strict=True):
        result["p"] = flow.lost / flow.packets
        result["rtt_ms"] = RTT_MS + 2 * late.mean_us / 1e3
        for device in flow.devices:
            os.close(device)
        flow.sender.close()
        flow.listener.close()
    return results, late


def ranway(command: Path, cc: str, loss: float, run: int) -> dict[str, float]:
    """One run of the scenario."""
    with tempfile.TemporaryDirectory() as directory:
        options = ["--set", f"dumbbell.loss={loss}", "--set", f"flows.f.cc={NAMES[cc]}", "--seed", str(run)]
        out = Path(directory) / "out"
        subprocess.run([command, "run", HERE / "loss.toml", *options, "--quiet", "--out", out], check=True)
        point = json.loads((out / "summary.json").read_text())["points"][0]
    flow, link = point["flows"][0], next(link for link in point["links"] if link["link"] == "bottleneck")
    return {
        "goodput_mbps": flow["goodput_mbps"]["mean"],
        "rtt_ms": RTT_MS,
        "retransmission_rate": flow["retransmission_rate"]["mean"],
        "p": link["drop_rate"]["mean"],
    }


def constant(run: dict[str, float]) -> float:
    return run["goodput_mbps"] * 1e6 / 8 * run["rtt_ms"] / 1e3 * run["p"] ** 0.5 / MSS


def interval(values: list[float]) -> str:
    """The mean and half of its 95 % interval."""
    if len(values) < 2:
        return f"{fmean(values):.3f}"
    half = STUDENT[len(values) - 2] * stdev(values) / len(values) ** 0.5
    return f"{fmean(values):.3f} ± {half:.3f}"


def row(name: str, cc: str, loss: float, runs: list[dict[str, float]]) -> None:
    def mean(key: str) -> float:
        return fmean(run[key] for run in runs)

    print(
        f"{loss:<6g} {cc:6} {name:15} {mean('goodput_mbps'):8.3f} {mean('rtt_ms'):8.3f} "
        f"{mean('retransmission_rate') / mean('p'):11.3f}   {interval([constant(run) for run in runs])}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=6, help="side by side (6)")
    parser.add_argument("--duration", type=float, default=120, help="seconds measured (120)")
    parser.add_argument("--warmup", type=float, default=15, help="seconds before (15)")
    parser.add_argument("--seed", default="1", help="of the losses")
    parser.add_argument("--ranway", type=Path, help="a built command, not to build it")
    parser.add_argument("--json", type=Path, help="write every run there")
    arguments = parser.parse_args()
    if not 2 <= arguments.runs <= len(STUDENT) + 1:
        parser.error(f"--runs must be from 2 to {len(STUDENT) + 1}")
    if os.geteuid() != 0:
        fail("must be root, for namespaces and devices")
    command = arguments.ranway
    if command is None:
        command = ROOT / "target" / "release" / "ranway"
        if subprocess.run(["cargo", "build", "--release", "--locked", "-p", "ranway"], cwd=ROOT).returncode != 0:
            fail("Ranway cannot be built")

    name = f"Linux {os.uname().release.split('-')[0]}"
    void = False
    everything = []
    print("p      cc     who                Mbit/s   RTT ms  resent/lost  c")
    for loss, cc in ((loss, cc) for loss in LOSSES for cc in NAMES):
        flows = [Flow.new(cc, loss, number) for number in range(arguments.runs)]
        theirs, late = kernel(flows, arguments.seed, arguments.warmup, arguments.duration)
        if any(run["mss"] != MSS for run in theirs):
            fail(f"the kernel's segments are not of {MSS} bytes")
        ours = [ranway(command, cc, loss, run) for run in range(1, arguments.runs + 1)]
        row(name, cc, loss, theirs)
        row("Ranway", cc, loss, ours)
        srtt, cwnd = (fmean(run[key] for run in theirs) for key in ("srtt_ms", "cwnd"))
        rtos, dsacks, reorderings = (sum(run[key] for run in theirs) for key in ("rtos", "dsacks", "reorderings"))
        limited = max(run["other_limits"] for run in theirs)
        print(
            f"       tcp_info: RTT {srtt:.2f} ms, window {cwnd:.2f}, {rtos} time-outs, {dsacks} D-SACKs, "
            f"{reorderings} times reordering, {limited:.1%} of the time held back by buffers\n"
            f"       relay late by {late.mean_us:.0f} us (mean), {late.p50_us:.0f} us (median), {late.p99_us:.0f} us "
            f"(99 %), {late.p999_us:.0f} us (99.9 %), {late.worst_us:.0f} us (most); busy {late.cpu:.0%} of the time",
            flush=True,
        )
        void |= not late.valid()
        everything.append({"loss": loss, "cc": cc, "kernel": theirs, "ranway": ours, "relay": asdict(late)})
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")
    if void:
        print("loss: the relay was too late: this measurement is void", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
