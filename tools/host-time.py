#!/usr/bin/env python3
"""Measure how long this machine's kernel takes to answer a TCP segment.

Two network namespaces are joined by a veth pair. A sender writes pairs of full segments at random intervals. A packet
socket at the receiver's interface reads the kernel's own time stamps of each segment's arrival and of the departure of
the acknowledgement that covers it or, with --echo, of the data that the application writes in reply. Prints quantiles
of the difference. Needs root, ip and ethtool.
"""

import argparse
import ctypes
import os
import random
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

ETH_P_ALL = 0x0003
ETH_P_IP = 0x0800
CLONE_NEWNET = 0x40000000
PACKET_OUTGOING = 4
SO_TIMESTAMPNS = 35
TCP = 6
MSS = 1448
RECEIVER = ("10.9.0.2", 5000)
QUANTILES = (0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100)


@dataclass
class Packet:
    """A TCP segment that has passed the receiver's interface."""

    nanos: int
    leaves: bool
    seq: int
    ack: int
    payload: int


def run(*words: str) -> None:
    """Run a command."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def enter(name: str) -> None:
    """Move this thread to a network namespace."""
    with open(f"/run/netns/{name}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter {name}")


def parse(data: bytes, nanos: int, leaves: bool) -> Packet:
    """Parse an IPv4 packet."""
    head = 4 * (data[0] & 15)
    (length,) = struct.unpack("!H", data[2:4])
    seq, ack, bits = struct.unpack("!IIH", data[head + 4 : head + 14])
    return Packet(nanos, leaves, seq, ack, length - head - 4 * (bits >> 12))


def capture(packets: list[Packet], stop: threading.Event, device: str) -> None:
    """Collect all TCP segments at an interface until `stop` is set."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)) as tap:
        tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        tap.bind((device, ETH_P_ALL))
        tap.settimeout(0.2)
        while not stop.is_set():
            try:
                data, extra, _, where = tap.recvmsg(128, 64)
            except TimeoutError:
                continue
            if where[1] == ETH_P_IP and data[9] == TCP:
                seconds, nanos = struct.unpack("qq", extra[0][2][:16])
                packets.append(parse(data, seconds * 10**9 + nanos, where[2] == PACKET_OUTGOING))


def receive(namespace: str, echo: bool, packets: list[Packet], ready: threading.Event, stop: threading.Event) -> None:
    """Read what the sender writes, in a namespace of its own."""
    enter(namespace)
    tap = threading.Thread(target=capture, args=(packets, stop, "v1"))
    tap.start()
    with socket.create_server(RECEIVER) as server:
        ready.set()
        peer, _ = server.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := peer.recv(1 << 16):
        if echo:
            peer.send(data[:100])
    tap.join()


def measure(names: list[str], count: int, interval: float, echo: bool) -> list[float]:
    """Return the answers' times in microseconds, in ascending order."""
    packets: list[Packet] = []
    ready, stop = threading.Event(), threading.Event()
    receiver = threading.Thread(target=receive, args=(names[1], echo, packets, ready, stop))
    receiver.start()
    ready.wait()
    enter(names[0])
    with socket.create_connection(RECEIVER) as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        block, rng = bytes(2 * MSS), random.Random(1)
        for _ in range(count):
            sender.send(block)
            time.sleep(rng.expovariate(1000 / interval))
        time.sleep(0.2)
        stop.set()
    receiver.join()
    took, waiting = [], []
    for packet in sorted(packets, key=lambda packet: packet.nanos):
        if not packet.leaves and packet.payload > 0:
            waiting.append(((packet.seq + packet.payload) & 0xFFFFFFFF, packet.nanos))
        elif packet.leaves and (packet.payload > 0) == echo:
            covered = [one for one in waiting if (packet.ack - one[0]) & 0xFFFFFFFF < 1 << 31]
            waiting = waiting[len(covered) :]
            if covered:
                # The segment that caused it is the last that it covers.
                took.append((packet.nanos - covered[-1][1]) / 1000)
    return sorted(took)


def main() -> None:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=15_000, help="pairs of segments to send [15000]")
    parser.add_argument("--interval", type=float, default=1.0, help="mean interval between them in ms [1]")
    parser.add_argument("--echo", action="store_true", help="measure an application's reply, not the acknowledgement")
    args = parser.parse_args()
    names = [f"host-time-{os.getpid()}-{i}" for i in range(2)]
    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", names[1])
        for i, name in enumerate(names):
            run("ip", "-n", name, "address", "add", f"10.9.0.{i + 1}/24", "dev", f"v{i}")
            run("ip", "-n", name, "link", "set", f"v{i}", "up")
            run("ip", "netns", "exec", name, "ethtool", "-K", f"v{i}", "tso", "off", "gso", "off", "gro", "off")
        took = measure(names, args.count, args.interval, args.echo)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)
    print(f"{len(took)} answers, Linux {os.uname().release}, us:")
    for q in QUANTILES:
        print(f"{q:>5} %  {took[min(len(took) - 1, int(q / 100 * len(took)))]:.1f}")


if __name__ == "__main__":
    main()
