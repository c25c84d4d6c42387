"""What hosts notice when one of two machines with `ranway proxy` dies, and keepalived makes the other one the router.

Needs root, keepalived (Debian's package) and a built `ranway` (`cargo build --release -p ranway`); with `--ranway
/bin/true`, the routers have no proxy. Two routers stand between a bridge with a UE and a bridge with a server. Both run
`ranway proxy`, and keepalived with `docs/samples/keepalived.conf` gives one of them the addresses that are the hosts'
gateways. The UE opens one connection after the other, each for a byte there and back, and has an open one on which a
byte goes there and back every 50 ms. After some seconds both links of the active router go down. Printed are the
longest time between two new connections that worked, and what became of the open one, if it has ended.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from proxy import ROOT, run

UE, SERVER, BRIDGES, ROUTERS = "pair-u", "pair-s", "pair-b", ("pair-1", "pair-2")
SAMPLE = ROOT / "docs" / "samples" / "keepalived.conf"
SERVER_ADDRESS = ("10.2.0.2", 5201)
BEFORE_S, AFTER_S, PATIENCE_S = 5, 40, 30


def join(space: str, interface: str, bridge: str, address: str) -> None:
    end = f"{space[-1]}{bridge}"
    run(f"ip -n {space} link add {interface} type veth peer name {end} netns {BRIDGES}")
    run(f"ip -n {BRIDGES} link set {end} master {bridge} up")
    run(f"ip -n {space} addr add {address}/24 dev {interface}")
    run(f"ip -n {space} link set {interface} up")


def network(stack: contextlib.ExitStack) -> None:
    for space in (UE, SERVER, BRIDGES, *ROUTERS):
        run(f"ip netns add {space}")
        stack.callback(run, f"ip netns del {space}")
        run(f"ip -n {space} link set lo up")
    for bridge in ("ran", "wan"):
        run(f"ip -n {BRIDGES} link add {bridge} type bridge")
        run(f"ip -n {BRIDGES} link set {bridge} up")
    for net, (space, bridge) in enumerate(((UE, "ran"), (SERVER, "wan")), 1):
        join(space, "eth0", bridge, f"10.{net}.0.2")
        run(f"ip -n {space} route add default via 10.{net}.0.1")
        for number, router in enumerate(ROUTERS, 11):
            join(router, bridge, bridge, f"10.{net}.0.{number}")
    for router in ROUTERS:
        run(f"ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1")


def start(stack: contextlib.ExitStack, space: str, *command: str) -> None:
    process = subprocess.Popen(["ip", "netns", "exec", space, *command], stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.terminate)


def serve() -> None:
    def answer(stream: socket.socket) -> None:
        with contextlib.suppress(OSError), stream:
            while data := stream.recv(1000):
                stream.sendall(data)

    listener = socket.create_server(SERVER_ADDRESS, backlog=100)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def ask() -> None:
    start_s = time.monotonic()

    def pump(stream: socket.socket) -> None:
        try:
            while True:
                stream.sendall(b"x")
                stream.recv(1)
                time.sleep(0.05)
        except OSError as error:
            passed = time.monotonic() - start_s - BEFORE_S
            print(f"the open connection: {error}, {passed:.1f} s after the end of its router", flush=True)

    threading.Thread(target=pump, args=(socket.create_connection(SERVER_ADDRESS, PATIENCE_S),), daemon=True).start()
    last_s, longest_s, failed = start_s, 0.0, 0
    while time.monotonic() < start_s + BEFORE_S + AFTER_S:
        try:
            with socket.create_connection(SERVER_ADDRESS, 1) as stream:
                stream.sendall(b"x")
                stream.recv(1)
            now_s = time.monotonic()
            longest_s, last_s = max(longest_s, now_s - last_s), now_s
        except OSError:
            failed += 1
        time.sleep(0.02)
    print(f"new connections: none for {longest_s:.1f} s, {failed} failed", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranway", type=Path, default=ROOT / "target" / "release" / "ranway")
    ranway = str(parser.parse_args().ranway.resolve())
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        network(stack)
        for number, router in enumerate(ROUTERS, 1):
            options = ["-n", "-f", str(SAMPLE), "-p", f"{scratch}/{number}", "-r", f"{scratch}/vrrp{number}"]
            start(stack, router, "keepalived", *options)
            start(stack, router, ranway, "proxy", "--quiet", "--wan", "wan", "--ran", "ran")
        start(stack, SERVER, sys.executable, __file__, "serve")
        time.sleep(5)
        asking = subprocess.Popen(["ip", "netns", "exec", UE, sys.executable, __file__, "ask"])
        time.sleep(BEFORE_S)
        shown = subprocess.check_output(["ip", "-n", ROUTERS[0], "-br", "addr", "show", "dev", "ran"], text=True)
        active = "1" if "10.1.0.1/24" in shown else "2"
        for bridge in ("ran", "wan"):
            run(f"ip -n {BRIDGES} link set {active}{bridge} down")
        return asking.wait()


if __name__ == "__main__":
    if sys.argv[1:] in (["serve"], ["ask"]):
        {"serve": serve, "ask": ask}[sys.argv[1]]()
    else:
        sys.exit(main())
