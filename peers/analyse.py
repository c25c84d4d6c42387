"""`ranway analyse` beside tshark and tcptrace: the same capture, in turns, on one core.

Usage: python3 peers/analyse.py [--ranway COMMAND] [--gigabytes N] [--packets N]

Generates captures in a temporary directory, uploads of 20 connections with losses: a small one, which the others read
as well, one of a gigabyte of headers, the hardest kind, and one of a gigabyte of full segments. Prints packets and
megabytes per second, medians of three runs, and peak memory.
"""

import argparse
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

MSS = 1448
ACK, SYN = 0x10, 0x02
FIELDS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "duplicate_ack",
    "bytes_in_flight",
    "ack_rtt",
    "zero_window",
    "window_full",
    "keep_alive",
    "lost_segment",
)


def packet(flow: int, back: bool, seq: int, ack: int, length: int, stamps: tuple[int, int], sack: bytes = b"") -> bytes:
    """An Ethernet frame's headers, with timestamps and possibly a SACK block."""
    options = b"\x01\x01\x08\x0a" + struct.pack(">II", *stamps)
    if sack:
        options += b"\x01\x01\x05\x0a" + sack
    client, server = (b"\x0a\x00" + struct.pack(">H", flow), 40000 + flow), (b"\x0a\x01\x00\x01", 443)
    (source, sport), (destination, dport) = (server, client) if back else (client, server)
    offset = (20 + len(options)) // 4
    tcp = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset << 4, ACK, 500, 0, 0)
    total = 20 + len(tcp) + len(options) + length
    ip = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, 6, 0) + source + destination
    return bytes(12) + b"\x08\x00" + ip + tcp + options


def traffic(flows: int, seed: int) -> Iterator[tuple[int, bytes, int]]:
    """Time in microseconds, headers and frame length of endless uploads, each acknowledged every second segment."""
    rng = random.Random(seed)
    sent = [0] * flows
    now = 0
    while True:
        flow = rng.randrange(flows)
        burst = rng.randrange(2, 12)
        lost = rng.randrange(burst) if rng.random() < 0.02 else None
        start = sent[flow]
        for n in range(burst):
            now += 60
            stamps = (now // 1000, max(now - 50000, 0) // 1000)
            yield now, packet(flow, False, 1 + (start + n) * MSS, 1, MSS, stamps), 66 + MSS
            if n % 2 == 1:
                now += 20
                upto = start + (n + 1 if lost is None or n < lost else lost)
                sack = b""
                if lost is not None and n > lost:
                    edges = (1 + (start + lost + 1) * MSS, 1 + (start + n + 1) * MSS)
                    sack = struct.pack(">II", *(edge & 0xFFFFFFFF for edge in edges))
                frame = packet(flow, True, 1, 1 + upto * MSS, 0, (now // 1000, now // 1000), sack)
                yield now, frame, len(frame)
        if lost is not None:
            now += 300
            yield now, packet(flow, False, 1 + (start + lost) * MSS, 1, MSS, (now // 1000, now // 1000)), 66 + MSS
        sent[flow] += burst
        now += 20
        frame = packet(flow, True, 1, 1 + sent[flow] * MSS, 0, (now // 1000, now // 1000))
        yield now, frame, len(frame)


def write(path: Path, *, packets: int | None = None, size: int | None = None, full: bool = False) -> int:
    """Writes a capture; returns the number of its packets. Long ones repeat a pattern, with their times going on."""
    count = written = 0
    pad = bytes(MSS)
    with path.open("wb", buffering=1 << 20) as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for at, frame, length in traffic(20, 7):
            data = frame + pad[: length - len(frame)] if full else frame
            second, micro = divmod(at, 1_000_000)
            file.write(struct.pack("<IIII", 1_700_000_000 + second, micro, len(data), length) + data)
            count += 1
            written += 16 + len(data)
            if (packets is not None and count >= packets) or (size is not None and written >= size):
                return count
    return count


def timed(command: list[str], runs: int) -> tuple[float, float]:
    """Median seconds of a command, and its peak memory in MB."""
    seconds, peak = [], 0.0
    for _ in range(runs):
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"error: {' '.join(command)} failed with {process.returncode}")
        seconds.append(time.perf_counter() - began)
        peak = max(peak, usage.ru_maxrss / 1e3)
    return statistics.median(seconds), peak


def main() -> None:
    """Generates, runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranway", default="target/release/ranway", help="the command to measure")
    parser.add_argument("--packets", type=int, default=500_000, help="packets of the capture that tshark reads")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="size of the large captures; 0 for none")
    args = parser.parse_args()
    one_core = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    fields = [argument for field in FIELDS for argument in ("-e", f"tcp.analysis.{field}")]
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small.pcap")
        count = write(small, packets=args.packets)
        size = small.stat().st_size
        out = str(Path(folder, "out"))
        ours = [*one_core, args.ranway, "analyse", "--quiet", "--out", out]
        commands = {
            "ranway": [*ours, str(small)],
            "ranway --as wireshark": [*ours, "--as", "wireshark", str(small)],
            "tshark": [*one_core, "tshark", "-n", "-r", str(small), "-T", "fields", *fields],
            "tcptrace": [*one_core, "tcptrace", "-n", "-l", "-r", str(small)],
        }
        print(f"{count} packets, headers alone, {size / 1e6:.0f} MB")
        base = None
        for name, command in commands.items():
            if name in ("tshark", "tcptrace") and not shutil.which(name):
                print(f"  {name}: not installed")
                continue
            seconds, peak = timed(command, 3)
            base = base or seconds
            rate = count / seconds / 1e6
            print(
                f"  {name:22} {seconds:8.2f} s  {rate:6.2f} M packets/s  {peak:6.0f} MB peak  {seconds / base:6.1f} x"
            )
        for full, what in ((False, "headers alone"), (True, "full segments")):
            if args.gigabytes <= 0:
                break
            large = Path(folder, "large.pcap")
            count = write(large, size=int(args.gigabytes * 1e9), full=full)
            seconds, peak = timed([*ours, str(large)], 1)
            rate = large.stat().st_size / seconds / 1e6
            print(
                f"{args.gigabytes:g} GB, {count} packets, {what}: {seconds:.2f} s, {rate:.0f} MB/s, {peak:.0f} MB peak"
            )


if __name__ == "__main__":
    main()
