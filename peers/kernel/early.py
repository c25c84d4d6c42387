"""What retransmitting at a PEP-NACK gives and costs on this machine's kernel.

Needs root, clang and a built `ranway` with `mdcc`. A server sends with `mdcc`; its way to
the phone is a wire (100 Mbit/s, 5 ms), a router with the PEP, and a radio (35 Mbit/s,
20 ms), both emulated. The wire, the radio or both lose packets. `mdcc` itself retransmits
when the phone's SACKs show the loss. The programs of early.bpf.c, at the server's
interface, make something else of a PEP-NACK:

above  SACK for what passed the PEP above the missing range
cover  SACK for all that passed the PEP
hold   the same, and the phone's acknowledgements wait until they agree
copy   the missing segment itself, of which a copy was kept; the kernel is told nothing

A round is every one of them once, with the same seed. A segment's times are from a capture at
the server; counters are those of the server's kernel. "quiet" is the share of the time in gaps
of more than 75 ms (one and a half round trips) between the phone's reads. Then the simulator
runs the same network (early.toml). Means over the rounds and their standard errors; a row
whose emulation was late does not count. `target/bench/mdcc-early.json` holds the rows.

All of it ends with this program, however that ends.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import polars as pl

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

PORT = 5201
MSS = 1448
SERVER, PHONE = "10.8.1.1", "10.8.2.2"
MODES = ("none", "above", "cover", "hold", "copy")
GAP_S = 0.075
# By how much 1 % of the packets may be late, and the exit status if they were.
LATENESS, LATE = "3 ms", 3
WARM_UP_S = 2.0
DUPLICATES = 3
CLONE_NEWNET = 0x40000000
COUNTERS = (
    "TCPSACKReneging",
    "TCPSackRecovery",
    "TCPTimeouts",
    "TCPRetransFail",
    "TCPLostRetransmit",
    "TCPDSACKRecv",
    "TCPSACKReorder",
    "RetransSegs",
)
OWN = ("nacks", "evidence", "held", "resent", "missed", "failed")
GLOBALS = Path("/sys/fs/bpf/tc/globals")
# The system call on x86-64, and its commands.
SYS_BPF, MAP_LOOKUP, OBJ_GET, TEST_RUN, PROG_BY_ID = 321, 1, 7, 10, 13


def run(line: str) -> str:
    ended = subprocess.run(line.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{line}: {ended.stdout.strip()}")
    return ended.stdout


def alone() -> None:
    """Goes on in namespaces of mounts and processes of its own: what is made there ends with it."""
    if os.getpid() != 1:
        bound = ["setpriv", "--pdeathsig", "KILL"]
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        child = subprocess.Popen([*bound, *apart, sys.executable, *sys.argv])
        signal.signal(signal.SIGTERM, lambda *_: child.kill())
        with suppress(KeyboardInterrupt):
            child.wait()
        sys.exit(child.wait())
    for kind, at in (("tmpfs", "/run"), ("bpf", "/sys/fs/bpf")):
        run(f"mount -t {kind} {kind} {at}")


def way(rate: str, delay: str, loss: float) -> str:
    return (
        'duration = "600 s"\n[[links]]\nname = "way"\nfrom = "server"\nto = "phone"\nduplex = true\n'
        f'rate = "{rate}"\ndelay = "{delay}"\nloss = {loss}\nqueue = {{ kind = "drop-tail", packets = 200 }}\n'
    )


def start(host: str, words: list[str | Path], directory: Path) -> subprocess.Popen[str]:
    """Something that speaks when it is there."""
    command = ["ip", "netns", "exec", host, *words]
    child = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert child.stderr
    line = child.stderr.readline()
    if "Ctrl-C ends it" not in line and "Capturing" not in line:
        sys.exit(f"{words}: {line.strip()}")
    threading.Thread(target=child.stderr.read, daemon=True).start()
    return child


@contextmanager
def net(ranway: Path, wire_loss: float, radio_loss: float, seed: int, directory: Path) -> Iterator[list[int]]:
    """Server s, wire w, router r, radio a, phone p; afterwards the exit statuses of what emulates."""
    statuses: list[int] = []
    for host in "swrap":
        run(f"ip netns add {host}")
    children = []
    try:
        for host, device, middle, peer, address in (
            ("s", "s0", "w", "left", "10.8.1.1/24"),
            ("r", "wan", "w", "right", "10.8.1.2/24"),
            ("r", "ran", "a", "left", "10.8.2.1/24"),
            ("p", "p0", "a", "right", "10.8.2.2/24"),
        ):
            run(f"ip -n {host} link add {device} type veth peer name {peer} netns {middle}")
            run(f"ip -n {host} addr add {address} dev {device}")
            run(f"ip -n {host} link set dev {device} up")
            run(f"ip -n {middle} link set dev {peer} up")
        # Segments leave as they are on the wire: the capture sees each.
        run("ip -n s link set dev s0 gso_max_segs 1")
        run("ip -n s route add default via 10.8.1.2")
        run("ip -n p route add default via 10.8.2.1")
        for host, key in (("r", "net.ipv4.ip_forward"), ("s", "net.ipv4.tcp_no_metrics_save")):
            run(f"ip netns exec {host} sysctl -qw {key}=1")
        for host, scenario, number in (
            ("w", way("100 Mbit/s", "5 ms", wire_loss), 2 * seed),
            ("a", way("35 Mbit/s", "20 ms", radio_loss), 2 * seed + 1),
        ):
            (directory / f"{host}.toml").write_text(scenario)
            words = [ranway, "emulate", f"{host}.toml", "--attach", "left", "right", "--max-lateness", LATENESS]
            children.append(start(host, [*words, "--seed", str(number), "--out", host], directory))
        children.append(start("r", [ranway, "pep", "--wan", "wan", "--ran", "ran"], directory))
        subprocess.run(["ip", "netns", "exec", "p", "ping", "-c2", SERVER], stdout=subprocess.DEVNULL, check=False)
        yield statuses
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
        statuses += [child.wait() for child in children]
        for host in "swrap":
            run(f"ip netns delete {host}")


@contextmanager
def attached(mode: str, directory: Path) -> Iterator[None]:
    """The programs at the server's interface."""
    if mode != "none":
        obj = directory / f"{mode}.o"
        run("ip netns exec s tc qdisc add dev s0 clsact")
        # `ip netns exec` would mount another /sys: the maps' names would be elsewhere for each program.
        for way_, section in (("ingress", "tc/in"), ("egress", "tc/out")):
            run(f"nsenter --net=/run/netns/s tc filter add dev s0 {way_} bpf da obj {obj} sec {section}")
    try:
        yield
    finally:
        for name in GLOBALS.glob("early_*"):
            name.unlink()


def own_counters() -> dict[str, int]:
    """What the programs count."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = ctypes.create_string_buffer(str(GLOBALS / "early_counters").encode())
    if not (GLOBALS / "early_counters").exists():
        return {}
    attributes = ctypes.create_string_buffer(struct.pack("QII", ctypes.addressof(path), 0, 0), 128)
    map_fd = libc.syscall(SYS_BPF, OBJ_GET, attributes, 128)
    key, value = ctypes.c_uint32(0), (ctypes.c_uint64 * len(OWN))()
    words = struct.pack("IIQQQ", map_fd, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
    failed = libc.syscall(SYS_BPF, MAP_LOOKUP, ctypes.create_string_buffer(words, 128), 128)
    os.close(map_fd)
    return {} if failed else dict(zip(OWN, value, strict=True))


def kernel_counters() -> dict[str, int]:
    text = run("ip netns exec s cat /proc/net/netstat /proc/net/snmp").splitlines()
    pairs = {}
    for names, values in zip(text[::2], text[1::2], strict=True):
        pairs |= dict(zip(names.split()[1:], values.split()[1:], strict=True))
    return {name: int(pairs[name]) for name in COUNTERS}


def in_host(host: str, act: Callable[[], T]) -> T:
    """Does something in a network namespace."""
    made: list[T] = []

    def there() -> None:
        with open(f"/run/netns/{host}") as space:
            if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        made.append(act())

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    return made[0]


def listen(size: int | None) -> socket.socket:
    """A server that gives each connection so many bytes, or all that it takes."""

    def serve() -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                with suppress(OSError), stream:
                    if size is not None:
                        stream.sendall(bytes(size))
                    while size is None:
                        stream.sendall(bytes(1 << 16))

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"mdcc")
    listener.bind((SERVER, PORT))
    listener.listen()
    threading.Thread(target=serve, daemon=True).start()
    return listener


def download(seconds: float) -> dict[str, float]:
    """Mbit/s of payload, the share of quiet time, and the longest gap in ms, after the warm-up."""
    listener = in_host("s", lambda: listen(None))
    phone = in_host("p", lambda: socket.create_connection((SERVER, PORT)))
    begin = time.monotonic() + WARM_UP_S
    end = begin + seconds - WARM_UP_S
    gaps, last, count = [], begin, 0
    buffer = bytearray(1 << 18)
    phone.settimeout(0.25)
    while (now := time.monotonic()) < end:
        got = 0
        with suppress(TimeoutError):
            got = phone.recv_into(buffer)
        now = time.monotonic()
        if got and now > begin:
            gaps.append(now - last)
            last, count = now, count + got
    gaps.append(end - last)
    phone.close()
    listener.close()
    span = end - begin
    return {
        "mbps": count * 8e-6 / span,
        "quiet": sum(gap for gap in gaps if gap > GAP_S) / span,
        "longest_ms": max(gaps) * 1e3,
    }


def transfers(size: int, seconds: float) -> dict[str, list[float]]:
    """How long downloads of so many bytes take, one after the other, each on a connection of its own."""

    def fetch() -> list[float]:
        took = []
        begin = time.monotonic()
        while (start := time.monotonic()) < begin + seconds:
            with socket.create_connection((SERVER, PORT)) as phone:
                left = size
                while left and (got := len(phone.recv(1 << 18))):
                    left -= got
            took.append((time.monotonic() - start) * 1e3)
        return took

    listener = in_host("s", lambda: listen(size))
    took = in_host("p", fetch)
    # Nobody waits for the next any more.
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    return {"took_ms": took}


def packets(file: Path) -> Iterator[tuple[float, bytes]]:
    """Times and frames of a capture (pcap, nanoseconds or microseconds)."""
    data = file.read_bytes()
    fraction = 1e-9 if struct.unpack_from("I", data)[0] == 0xA1B23C4D else 1e-6
    at = 24
    while at + 16 <= len(data):
        seconds, part, length, _ = struct.unpack_from("IIII", data, at)
        if at + 16 + length > len(data):
            break
        yield seconds + part * fraction, data[at + 16 : at + 16 + length]
        at += 16 + length


def times(file: Path) -> dict[str, float | list[float]]:
    """What a capture at the server tells.

    In ms: from the PEP-NACK that named a segment, and from its sending, to its first retransmission; how long the
    phone's acknowledgement stood still at a loss, of segments that the wire (named) or the radio (others) had lost.
    """
    sent: dict[int, float] = {}
    named: dict[int, float] = {}
    again: dict[int, list[float]] = {}
    stood: list[tuple[int, float]] = []
    una, since, shown = -1, 0.0, 0
    for at, frame in packets(file):
        if len(frame) < 66 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        seq, ack = struct.unpack_from(">II", frame, 38)
        header = (frame[46] >> 4) * 4
        length = struct.unpack_from(">H", frame, 16)[0] - 20 - header
        if frame[26:30] == socket.inet_aton(SERVER):
            if length <= 0:
                continue
            if seq in sent:
                again.setdefault(seq, []).append(at)
            else:
                sent[seq] = at
        elif header >= 44 and frame[66:67] == b"\xfd":
            for where in range(78, 34 + header, 8):
                start, end = struct.unpack_from(">II", frame, where)
                start, end = (ack + start) % 2**32, (ack + end) % 2**32
                while 0 < (end - start) % 2**32 < 1 << 30:
                    named.setdefault(start, at)
                    start = (start + MSS) % 2**32
        elif ack == una:
            # A block above the acknowledgement: the receiver has what was sent after.
            is_sack = header >= 44 and frame[68:69] == b"\x05"
            shown += is_sack and 0 < (struct.unpack_from(">I", frame, 70)[0] - ack) % 2**32 < 1 << 30
        else:
            if shown >= DUPLICATES:
                stood.append((una, at - since))
            una, since, shown = ack, at, 0
    after = {seq: [t for t in again.get(seq, []) if t >= at] for seq, at in named.items()}
    return {
        "named": len(named),
        "after_nack_ms": [(t[0] - named[seq]) * 1e3 for seq, t in after.items() if t],
        "named_sent_ms": [(t[0] - sent[seq]) * 1e3 for seq, t in after.items() if t and seq in sent],
        "other_sent_ms": [(t[0] - sent[seq]) * 1e3 for seq, t in again.items() if seq not in named],
        "named_stood_ms": [span * 1e3 for seq, span in stood if seq in named],
        "other_stood_ms": [span * 1e3 for seq, span in stood if seq not in named],
        "again_named": sum(len(again.get(seq, [])) for seq in named),
        "again_other": sum(len(t) for seq, t in again.items() if seq not in named),
    }


def measure(args: argparse.Namespace, mode: str, wire: float, radio: float, seed: int, directory: Path) -> dict:
    with net(args.ranway, wire, radio, seed, directory) as statuses, attached(mode, directory):
        file = directory / "capture.pcap"
        capture = start("s", ["dumpcap", "-q", "-P", "-i", "s0", "-s", "128", "-w", file], directory)
        time.sleep(0.5)
        run(f"ip netns exec s sysctl -qw net.ipv4.tcp_recovery={args.recovery}")
        before = kernel_counters()
        seen = transfers(args.size, args.seconds) if args.size else download(args.seconds)
        after = kernel_counters()
        time.sleep(0.3)
        capture.send_signal(signal.SIGINT)
        capture.wait()
        row = {"mode": mode, "wire": wire, "radio": radio, "seed": seed, "size": args.size}
        row |= seen | {name: after[name] - before[name] for name in COUNTERS}
        row |= own_counters() | times(file)
    return row | {"late": LATE in statuses}


def say(values: list[float], digits: int = 1) -> str:
    if not values:
        return "-"
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {error:.{digits}f}"


# A column's name, what of a row is in it (the median of a list), and digits.
COLUMNS = (
    ("Mbit/s", "mbps", 1),
    ("download, ms", "took_ms", 0),
    ("named", "named", 0),
    ("from NACK, ms", "after_nack_ms", 1),
    ("from sending, ms", "named_sent_ms", 1),
    ("stood still, named, ms", "named_stood_ms", 1),
    ("stood still, others, ms", "other_stood_ms", 1),
    ("sent again: named", "again_named", 0),
    ("sent again: others", "again_other", 0),
    ("recoveries", "TCPSackRecovery", 0),
    ("reneging", "TCPSACKReneging", 0),
    ("time-outs", "TCPTimeouts", 0),
    ("DSACKs", "TCPDSACKRecv", 0),
    ("reorderings", "TCPSACKReorder", 0),
    ("quiet, %", "quiet", 1),
    ("longest gap, ms", "longest_ms", 0),
)


def number(row: dict, name: str) -> float | None:
    value = row.get(name)
    if isinstance(value, list):
        return statistics.median(value) if value else None
    return value * 100 if name == "quiet" and value is not None else value


def table(rows: list[dict]) -> None:
    """Means over the rounds with their standard errors."""
    rows = [row for row in rows if not row["late"]]
    columns = [column for column in COLUMNS if any(column[1] in row for row in rows)]
    print("| wire | radio | at a PEP-NACK | rounds | " + " | ".join(name for name, _, _ in columns) + " |")
    print("| ---: | ---: | --- |" + " ---: |" * (len(columns) + 1))
    for wire, radio in dict.fromkeys((row["wire"], row["radio"]) for row in rows):
        for mode in (*MODES, "simulated, none", "simulated, at once"):
            of = [row for row in rows if (row["wire"], row["radio"], row["mode"]) == (wire, radio, mode)]
            cells = [
                say([value for row in of if (value := number(row, name)) is not None], digits)
                for _, name, digits in columns
            ]
            if of:
                print("| " + " | ".join([f"{wire:g}", f"{radio:g}", mode, str(len(of)), *cells]) + " |")


def simulated(args: argparse.Namespace, wire: float, radio: float) -> Iterator[dict]:
    """The same network in the simulator, without retransmission at a PEP-NACK and with it."""
    for early in (False, True):
        cc = f'{{ kind = "mdcc", per_acknowledgement = false, early_retransmission = {str(early).lower()} }}'
        keys = [f"cc={cc}", f"wire_loss={wire}", f"radio_loss={radio}"]
        if args.size:
            keys += [
                f'flows.0.traffic={{ kind = "short-flows", size = "{args.size} B", interval = "1 s", count = 60 }}'
            ]
        sets = [word for key in keys for word in ("--set", key)]
        with tempfile.TemporaryDirectory() as out:
            words = [args.ranway, "run", HERE / "early.toml", *sets, "--quiet", "--out", out]
            subprocess.run(words, check=True)
            flows = pl.read_parquet(Path(out) / "flows.parquet", columns=["run", "goodput_mbps"])
            took = pl.read_parquet(Path(out) / "transfers.parquet", columns=["run", "completion_s"])
        for number, mbps in flows.unique(subset="run", maintain_order=True).iter_rows():
            row = {"mode": "simulated, at once" if early else "simulated, none", "wire": wire, "radio": radio}
            times_s = took.filter(run=number)["completion_s"].to_list()
            seen = {"took_ms": [1e3 * s for s in times_s]} if args.size else {"mbps": mbps}
            yield row | seen | {"seed": number, "size": args.size, "late": False}


def cost(directory: Path) -> None:
    """Prints what `early_out` takes for a full segment if it keeps no copy and if it does, by the kernel's count."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = bytearray(66)
    header[12:15], header[16:18], header[23] = b"\x08\x00\x45", struct.pack(">H", 1500), socket.IPPROTO_TCP
    header[46], header[54:58] = 8 << 4, b"\x01\x01\x08\x0a"
    frame = ctypes.create_string_buffer(bytes(header) + os.urandom(MSS), 1514)
    run("ip netns add s")
    run("nsenter --net=/run/netns/s tc qdisc add dev lo clsact")
    for mode in ("cover", "copy"):
        on = "nsenter --net=/run/netns/s tc filter"
        run(f"{on} add dev lo egress bpf da obj {directory / mode}.o sec tc/out")
        program = int(run(f"{on} show dev lo egress").split(" id ")[1].split()[0])
        fd = libc.syscall(SYS_BPF, PROG_BY_ID, ctypes.create_string_buffer(struct.pack("III", program, 0, 0), 128), 128)
        took = []
        for _ in range(5):
            words = struct.pack("IIIIQQII", fd, 0, len(frame), 0, ctypes.addressof(frame), 0, 200_000, 0)
            attributes = ctypes.create_string_buffer(words, 128)
            if libc.syscall(SYS_BPF, TEST_RUN, attributes, 128):
                sys.exit(f"cost: {os.strerror(ctypes.get_errno())}")
            took.append(float(struct.unpack_from("I", attributes, 36)[0]))
        os.close(fd)
        run(f"{on} delete dev lo egress")
        for name in GLOBALS.glob("early_*"):
            name.unlink()
        print(f"{'a copy' if mode == 'copy' else 'no copy'}: {say(took)} ns a segment")
    run("ip netns delete s")


def compile_programs(directory: Path, headers: Path) -> None:
    for mode in MODES[1:]:
        out = directory / f"{mode}.o"
        flags = f"-g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Wshadow -Werror -DMODE={mode.upper()} -I{headers}"
        run(f"clang {flags} -c {HERE / 'early.bpf.c'} -o {out}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranway", type=Path, default=ROOT / "target" / "release" / "ranway")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--seconds", type=float, default=12, help="of each download, 2 of them warm-up")
    parser.add_argument(
        "--size", type=int, default=0, help="instead: downloads of so many bytes each, of none and copy"
    )
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--losses", default="1e-3:0,1e-2:0,0:1e-3,1e-3:1e-3,1e-2:1e-3", help="WIRE:RADIO,...")
    parser.add_argument("--recovery", type=int, default=1, help="the server's net.ipv4.tcp_recovery; 3: a fixed window")
    parser.add_argument("--cost", action="store_true", help="instead: what keeping copies costs")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "mdcc-early.json")
    args = parser.parse_args()
    args.ranway = args.ranway.resolve()
    modes = [mode for mode in args.modes.split(",") if not args.size or mode in ("none", "copy")]
    if os.geteuid() != 0:
        sys.exit("this needs root: namespaces and eBPF")
    if platform.machine() != "x86_64":
        sys.exit("the number of the system call bpf() is that of x86-64")
    alone()
    headers = next((ROOT / "target").glob("*/build/libbpf-sys-*/out/include"), None)
    if not headers:
        sys.exit("libbpf's headers are missing: `cargo build --release -p ranway` makes them")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        compile_programs(directory, headers)
        if args.cost:
            cost(directory)
            return
        run(f"{args.ranway} mdcc load")
        try:
            for pair in args.losses.split(","):
                wire, radio = map(float, pair.split(":"))
                rows += simulated(args, wire, radio)
                for seed in range(args.seed, args.seed + args.rounds):
                    for mode in modes:
                        row = measure(args, mode, wire, radio, seed, directory)
                        rows.append(row)
                        print({k: v for k, v in row.items() if not isinstance(v, list)}, file=sys.stderr, flush=True)
        finally:
            run(f"{args.ranway} mdcc unload")
    table(rows)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
