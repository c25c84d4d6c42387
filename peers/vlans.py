"""Whether `ranway proxy` splits connections between VLANs, and between interfaces of VRFs, in a virtual machine.

Needs qemu-system-x86 and busybox-static (Debian's packages), nft and ip, and a built `ranway` (`cargo build --release
-p ranway`); no root, and nothing of the machine's own kernel, which need not have VLANs or VRFs. The virtual machine
runs the kernel of Debian's `linux-image-amd64`, which is downloaded with `apt-get download` and unpacked, not installed
(or `--kernel DIRECTORY`: an unpacked package). Its root is the machine's own, read-only. Debian's user-mode-linux would
not do: its kernel has neither CONFIG_NF_TABLES_INET nor CONFIG_NF_CONNTRACK_ZONES.

In each case, a router stands between one or two UEs and a server, each a namespace. Without a proxy, with it, and once
it was killed, UEs open connections to the server and the server to UEs, over IPv4 and IPv6, and both ends compare all
bytes of both directions. Printed are how many were split, how long after the kill the first one passed, what is left
of the proxy then, and what it said. The exit status is 1 if a connection failed, a byte was wrong, something was left,
or a case does not split what the book says (docs/src/proxy.md, *VLANs and VRFs*).
"""

from __future__ import annotations

import argparse
import ctypes
import difflib
import json
import lzma
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from proxy import ROOT, run

PACKAGE = "linux-image-amd64"
BUSYBOX = Path("/bin/busybox")
# To mount the root, and what the cases need.
MODULES = "virtio_pci 9pnet_virtio 9p crc32c_generic veth 8021q vrf nf_tables nft_socket nft_tproxy nft_log"
MODULES += " nfnetlink_log nft_limit nft_objref nft_ct"
MEMORY, LONGEST_S = "1024M", 1500
BEGUN, DONE = "vlans: begun", "vlans: "
INIT = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs none /dev
for module in /modules/*; do /bin/busybox insmod $module || echo $module; done
/bin/busybox mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /host
/bin/busybox mount -t proc none /host/proc
/bin/busybox mount -t sysfs none /host/sys
/bin/busybox mount -t devtmpfs none /host/dev
/bin/busybox mount -t tmpfs none /host/run
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run PYTHONDONTWRITEBYTECODE=1
exec /bin/busybox switch_root /host {command}
"""

ROUTER, SERVER, UES = "router", "server", ("ue1", "ue2")
# The first port of the hosts' servers.
PORT = 5000
# Bytes in each direction of a connection; and the longest that it may take, in s, on a machine without KVM.
SIZE, PATIENCE_S = 300_000, 20
CLONE_NEWNET = 0x4000_0000
LIBC = ctypes.CDLL(None, use_errno=True)
SETTINGS = ("tcp_early_demux", "tcp_mtu_probing", "tcp_l3mdev_accept", "tcp_fwmark_accept")


# Inside the virtual machine.


class Net(NamedTuple):
    """The network of a host: 10.N.0.0/24 and fd0N::/64. The router is 1, the host is 2."""

    number: int

    def of(self, host: int) -> tuple[str, str]:
        return f"10.{self.number}.0.{host}", f"fd0{self.number}::{host}"

    def prefixes(self) -> tuple[str, str]:
        return f"10.{self.number}.0.0/24", f"fd0{self.number}::/64"


WAN, RANS = Net(9), (Net(1), Net(2))


@contextmanager
def inside(space: str) -> Iterator[None]:
    """Makes sockets and runs programs in a namespace."""

    with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{space}") as there:
        if LIBC.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {space}")
        try:
            yield
        finally:
            LIBC.setns(before.fileno(), CLONE_NEWNET)


def says(space: str, line: str) -> str:
    with inside(space):
        return subprocess.run(line.split(), check=False, capture_output=True, text=True).stdout


def address(space: str, interface: str, net: Net, host: int) -> None:
    v4, v6 = net.of(host)
    run(f"ip -n {space} addr add {v4}/24 dev {interface}")
    run(f"ip -n {space} addr add {v6}/64 dev {interface} nodad")
    run(f"ip -n {space} link set {interface} up")


def host(space: str, interface: str, net: Net) -> None:
    address(space, interface, net, 2)
    for gateway in net.of(1):
        run(f"ip -n {space} route add default via {gateway}")


def link(space: str, net: Net, end: str) -> None:
    """Connects a host with an interface of the router, which has no address yet."""
    run(f"ip -n {space} link add eth0 type veth peer name {end} netns {ROUTER}")
    host(space, "eth0", net)


def trunk(name: str, tags: dict[int, tuple[str, Net]]) -> None:
    """Connects hosts by tag with one interface of the router, which gets a VLAN interface for each tag."""
    run(f"ip -n switch link add {name} type veth peer name {name} netns {ROUTER}")
    for space in ("switch", ROUTER):
        run(f"ip -n {space} link set {name} up")
    for tag, (space, net) in tags.items():
        run(f"ip -n switch link add link {name} name {name}.{tag} type vlan id {tag}")
        run(f"ip -n switch link set {name}.{tag} netns {space}")
        host(space, f"{name}.{tag}", net)
        run(f"ip -n {ROUTER} link add link {name} name {name}.{tag} type vlan id {tag}")


def vrf(name: str, table: int, *interfaces: str) -> None:
    run(f"ip -n {ROUTER} link add {name} type vrf table {table}")
    run(f"ip -n {ROUTER} link set {name} up")
    for interface in interfaces:
        run(f"ip -n {ROUTER} link set {interface} master {name}")


# Its name, its table and its interfaces.
Vrf = tuple[str, int, *tuple[str, ...]]


def leak(net: Net, interface: str, table: int | str) -> None:
    """Makes a network known to the packets of another VRF (or, as table `main`, to those of none)."""
    for family, prefix in zip(("-4", "-6"), net.prefixes(), strict=True):
        run(f"ip -n {ROUTER} {family} route add {prefix} dev {interface} table {table}")


def one_trunk() -> None:
    trunk("veth", {100: (UES[0], RANS[0]), 200: (SERVER, WAN)})
    address(ROUTER, "veth.100", RANS[0], 1)
    address(ROUTER, "veth.200", WAN, 1)


def two_trunks(*vrfs: Vrf) -> None:
    """Two UEs and a server, whose interfaces may be in VRFs. These come first: they take addresses away."""
    trunk("ran", {100: (UES[0], RANS[0]), 101: (UES[1], RANS[1])})
    trunk("wan", {200: (SERVER, WAN)})
    for one in vrfs:
        vrf(*one)
    for interface, net in (("ran.100", RANS[0]), ("ran.101", RANS[1]), ("wan.200", WAN)):
        address(ROUTER, interface, net, 1)


def plain(*vrfs: Vrf) -> None:
    """The same with a UE and without VLANs."""
    link(UES[0], RANS[0], "ran")
    link(SERVER, WAN, "wan")
    for one in vrfs:
        vrf(*one)
    address(ROUTER, "ran", RANS[0], 1)
    address(ROUTER, "wan", WAN, 1)


def one_vrf() -> None:
    plain(("core", 10, "ran", "wan"))


def vlans_in_vrf() -> None:
    two_trunks(("core", 10, "ran.100", "ran.101", "wan.200"))


def ran_in_vrf() -> None:
    plain(("mobile", 10, "ran"))
    leak(WAN, "wan", 10)
    leak(RANS[0], "ran", "main")


def wan_in_vrf() -> None:
    plain(("internet", 20, "wan"))
    leak(WAN, "wan", "main")
    leak(RANS[0], "ran", 20)


def two_vrfs() -> None:
    plain(("mobile", 10, "ran"), ("internet", 20, "wan"))
    leak(WAN, "wan", 10)
    leak(RANS[0], "ran", 20)


def known_to_all(build: Callable[[], None], ues: dict[str, Net], wan: str = "wan") -> Callable[[], None]:
    """Adds the routes of a VRF to the main table, by which the proxy's own packets go."""

    def both() -> None:
        build()
        for interface, net in {**ues, wan: WAN}.items():
            leak(net, interface, "main")

    return both


# A firewall with states, as on most routers.
FIREWALL = """
table inet firewall {
  chain forward { type filter hook forward priority 0; ct state invalid drop; }
  chain input { type filter hook input priority 0; policy drop
    iifname lo accept
    meta l4proto ipv6-icmp accept
    ct state established,related accept
  }
}
"""
ONE_UE, TWO_UES = {"ran": RANS[0]}, {"ran.100": RANS[0], "ran.101": RANS[1]}


@dataclass
class Case:
    what: str
    build: Callable[[], None]
    ran: str = "ran"
    wan: str = "wan"
    ues: int = 1
    # Whether connections are split. Otherwise the proxy does not start and says why.
    splits: bool = True
    rules: str = ""


CASES = {
    "plain": Case("no VLAN, no VRF", plain),
    "stick": Case("RAN and WAN are VLANs of one trunk", one_trunk, "veth.100", "veth.200"),
    "trunks": Case("two VLANs of one trunk, one of another", two_trunks, "ran.100,ran.101", "wan.200", ues=2),
    "one-vrf": Case("RAN and WAN in one VRF", known_to_all(one_vrf, ONE_UE)),
    "vlans-in-vrf": Case(
        "VLANs of both sides in one VRF",
        known_to_all(vlans_in_vrf, TWO_UES, "wan.200"),
        "ran.100,ran.101",
        "wan.200",
        ues=2,
    ),
    "ran-in-vrf": Case("RAN in a VRF, WAN in none", ran_in_vrf),
    "wan-in-vrf": Case("WAN in a VRF, RAN in none", wan_in_vrf),
    "two-vrfs": Case("RAN in one VRF, WAN in another", known_to_all(two_vrfs, ONE_UE)),
    "firewall": Case("the same with a firewall that tracks", known_to_all(two_vrfs, ONE_UE), rules=FIREWALL),
    "unknown": Case("RAN and WAN in one VRF, not in the main table", one_vrf, splits=False),
    "named": Case("the VRF instead of what is in it", known_to_all(one_vrf, ONE_UE), "core", splits=False),
}


@contextmanager
def spaces(case: Case) -> Iterator[list[str]]:
    """Builds the network of a case. Gives its UEs."""
    names = [ROUTER, SERVER, "switch", *UES]
    try:
        for name in names:
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
        case.build()
        with inside(ROUTER):
            for setting in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
                Path("/proc/sys/net", setting).write_text("1")
            subprocess.run(["nft", "-f", "-"], input=case.rules, text=True, check=True)
        yield list(UES[: case.ues])
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def transfer(client: str, server: str, to: str, port: int) -> str:
    """Sends bytes both ways over a connection. Returns what went wrong."""
    up, down = (random.Random(f"{port}{way}").randbytes(SIZE) for way in ("up", "down"))
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with inside(server):
        listener = socket.create_server((to, port), family=family)
    with inside(client):
        stream = socket.socket(family)
    failed = []

    def everything(stream: socket.socket) -> bytes:
        parts = []
        while data := stream.recv(1 << 16):
            parts.append(data)
        return b"".join(parts)

    def serve() -> None:
        try:
            with listener:
                listener.settimeout(PATIENCE_S)
                peer, _ = listener.accept()
                with peer:
                    peer.settimeout(PATIENCE_S)
                    if everything(peer) != up:
                        failed.append("wrong bytes at the server")
                    peer.sendall(down)
        except OSError as error:
            failed.append(f"server: {error}")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with stream:
            stream.settimeout(PATIENCE_S)
            stream.connect((to, port))
            stream.sendall(up)
            stream.shutdown(socket.SHUT_WR)
            if everything(stream) != down:
                failed.append("wrong bytes at the client")
    except OSError as error:
        failed.append(f"client: {error}")
    thread.join()
    return ", ".join(failed)


class Way(NamedTuple):
    client: str
    server: str
    to: str


def ways(ues: list[str]) -> list[Way]:
    """All pairs of hosts, by who opens the connection, over both versions of IP."""
    found = []
    for ue, net in zip(ues, RANS, strict=False):
        found += [Way(ue, SERVER, to) for to in WAN.of(2)]
        found += [Way(SERVER, ue, to) for to in net.of(2)]
    return found


class Ports:
    """Another port for each connection: one that was refused passes for a while."""

    def __init__(self) -> None:
        self.last = PORT

    def next(self) -> int:
        self.last += 1
        return self.last


def failures(ues: list[str], ports: Ports) -> list[str]:
    found = []
    for way in ways(ues):
        if failed := transfer(*way, ports.next()):
            found.append(f"{way.client} to {way.to}: {failed}")
    return found


def state() -> str:
    """What a proxy changes in a router."""
    lines = ["nft -s list ruleset", *(f"ip {family} rule" for family in ("-4", "-6"))]
    lines += [f"ip {family} route show table all type local" for family in ("-4", "-6")]
    # The kernel gives interfaces link-local addresses when it likes.
    shown = [re.sub(r".* fe80::.*\n", "", says(ROUTER, line)) for line in lines]
    with inside(ROUTER):
        shown += [f"{name} {Path('/proc/sys/net/ipv4', name).read_text()}" for name in SETTINGS]
    return "".join(shown)


def status(ranway: str) -> dict[str, Any] | None:
    """The status of the proxy, if it answers."""
    answer = says(ROUTER, f"{ranway} proxy status --json")
    return json.loads(answer) if answer else None


class Proxy:
    """A proxy in the router, and what it says."""

    def __init__(self, case: Case, ranway: str) -> None:
        command = [ranway, "proxy", "--from-servers", "--ran", case.ran, "--wan", case.wan]
        with inside(ROUTER):
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said: list[str] = []
        self.listening = threading.Thread(target=self.listen)
        self.listening.start()

    def listen(self) -> None:
        assert self.process.stdout is not None
        self.said += [line.strip() for line in self.process.stdout]

    def wait(self, ranway: str) -> bool:
        """Waits until it takes connections. Whether it does."""
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s and self.process.poll() is None:
            now = status(ranway)
            if now is not None and now["accepting"]:
                return True
            time.sleep(0.1)
        return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def look(case: Case, ranway: str) -> list[str]:
    """Tries a case. Returns what is wrong."""
    ports = Ports()
    with spaces(case) as ues:
        wrong = [f"without a proxy, {failed}" for failed in failures(ues, ports)]
        before, count = state(), len(ways(ues))
        proxy = Proxy(case, ranway)
        runs = proxy.wait(ranway)
        wrong += [f"with the proxy, {failed}" for failed in failures(ues, ports)]
        now = status(ranway)
        split = 0 if now is None else now["totals"]["established"]
        if now is not None:
            print(f"  split {split} of {count} connections, bypassed {now['totals']['bypassed']}", flush=True)
        if split != (count if case.splits else 0) or runs != case.splits:
            wrong.append(f"split {split} of {count} connections, {'running' if runs else 'not running'}")
        proxy.kill()
        killed_s = time.monotonic()
        while transfer(*ways(ues)[0], ports.next()):
            if time.monotonic() > killed_s + PATIENCE_S:
                break
        print(f"  the first connection after SIGKILL passed within {time.monotonic() - killed_s:.1f} s", flush=True)
        wrong += [f"after SIGKILL, {failed}" for failed in failures(ues, ports)]
        # For the guardian, and the kernel's own clean-up.
        time.sleep(1)
        if (after := state()) != before:
            wrong.append(
                "left of the proxy:\n" + "".join(difflib.ndiff(before.splitlines(True), after.splitlines(True)))
            )
        proxy.listening.join(PATIENCE_S)
        print("  it said: " + " | ".join(proxy.said), flush=True)
    return wrong


def guest(arguments: argparse.Namespace) -> None:
    count = 0
    # After what the firmware has written.
    print(f"\n{BEGUN}", flush=True)
    for name in arguments.cases:
        case = CASES[name]
        print(f"{name} ({case.what}): --ran {case.ran} --wan {case.wan}", flush=True)
        try:
            wrong = look(case, arguments.ranway)
        except Exception as error:
            wrong = [repr(error)]
        for what in wrong:
            print(f"  wrong: {what}", flush=True)
        count += bool(wrong)
    print(f"{DONE}{count} of {len(arguments.cases)} cases are wrong", flush=True)
    os.sync()
    # RB_POWER_OFF
    LIBC.reboot(0x4321FEDC)


# Outside.


def kernel(scratch: Path) -> Path:
    """Downloads and unpacks the newest kernel of the distribution."""
    shown = subprocess.check_output(["apt-cache", "depends", PACKAGE], text=True)
    package = re.search(r"linux-image-\d\S*", shown)
    if package is None:
        raise SystemExit(f"apt-get knows no {PACKAGE}: give an unpacked one by --kernel")
    there = scratch / package[0]
    if not there.exists():
        scratch.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package[0]], cwd=scratch, check=True)
        (archive,) = scratch.glob(f"{package[0]}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, there], check=True)
        archive.unlink()
    return there


def modules(root: Path) -> dict[str, bytes]:
    """The modules that the cases need and those that these need, in the order in which they can be loaded."""
    files = {path.name.split(".")[0].replace("-", "_"): path for path in root.glob("**/*.ko*")}
    found: dict[str, bytes] = {}

    def find(name: str) -> None:
        # What is no file is built in.
        if name in found or name not in files:
            return
        content = files[name].read_bytes()
        if files[name].suffix == ".xz":
            content = lzma.decompress(content)
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in (depends[1].decode() if depends else "").split(","):
            find(other.replace("-", "_"))
        found[name] = content

    for name in MODULES.split():
        find(name)
    return found


def archive(files: dict[str, tuple[int, bytes]]) -> bytes:
    """An initramfs: a cpio archive of the format `newc` (buffer-format.rst in the documentation of Linux)."""
    parts = bytearray()

    def pad() -> None:
        parts.extend(bytes(-len(parts) % 4))

    everything = {**files, "TRAILER!!!": (0, b"")}
    for inode, (name, (mode, content)) in enumerate(everything.items(), 1):
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        parts += b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
        pad()
        parts += content
        pad()
    return bytes(parts)


def initramfs(root: Path, command: list[str]) -> bytes:
    files = {name: (stat.S_IFDIR | 0o755, b"") for name in ("bin", "dev", "host", "modules")}
    program = stat.S_IFREG | 0o755
    files["init"] = (program, INIT.format(command=" ".join(command)).encode())
    files["bin/busybox"] = (program, BUSYBOX.read_bytes())
    for number, (name, content) in enumerate(modules(root).items()):
        files[f"modules/{number:03}-{name}"] = (program, content)
    return archive(files)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--kernel", type=Path, help="an unpacked package with a kernel and its modules")
    parser.add_argument("--accel", default="tcg", choices=("tcg", "kvm"), help="what runs the machine's processor")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), help="(default: all)")
    arguments = parser.parse_args()
    ranway = arguments.ranway.resolve()
    for program in (ranway, BUSYBOX, "qemu-system-x86_64"):
        if shutil.which(program) is None:
            print(f"{program} is missing", file=sys.stderr)
            return 2
    root = arguments.kernel or kernel(target / "vlans")
    (image,) = root.glob("boot/vmlinuz-*")
    print(f"Linux {image.name.removeprefix('vmlinuz-')} in a virtual machine", flush=True)
    command = [os.path.realpath(sys.executable), str(Path(__file__).resolve()), "guest", str(ranway), *arguments.cases]
    with tempfile.NamedTemporaryFile() as initrd:
        initrd.write(initramfs(root, command))
        initrd.flush()
        qemu = ["qemu-system-x86_64", "-accel", arguments.accel, "-m", MEMORY, "-nographic", "-no-reboot"]
        qemu += ["-nodefaults", "-serial", "stdio", "-kernel", str(image), "-initrd", initrd.name]
        qemu += ["-append", "console=ttyS0 quiet panic=-1"]
        qemu += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
        machine = subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        timer = threading.Timer(LONGEST_S, machine.kill)
        timer.start()
        begun, wrong = False, True
        before: list[str] = []
        try:
            assert machine.stdout is not None
            for line in machine.stdout:
                text = line.rstrip()
                if begun:
                    print(text, flush=True)
                begun = begun or text == BEGUN
                before = [*before[-9:], text]
                wrong = wrong and not text.startswith(f"{DONE}0 ")
        finally:
            timer.cancel()
            machine.kill()
            machine.wait()
    if not begun:
        print("the virtual machine did not get to its first case:", *before, sep="\n", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    if sys.argv[1:2] == ["guest"]:
        guest(argparse.Namespace(ranway=sys.argv[2], cases=sys.argv[3:]))
    else:
        sys.exit(main())
