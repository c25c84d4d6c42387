"""Section 5 of the RAPID paper with real programs, over the emulated LTE cell and through `ranway proxy`.

Needs root, nftables, OpenSSH, wget, iperf3, peers/quic and a built `ranway` (`cargo build --release -p ranway`;
`tools/setup lab` installs and builds the rest). The cell is the paper's: LTE FDD of 5 MHz, RLC AM with 1 MB, 50 ms
from the server. Each case runs without a proxy and with the policy `best`, and beside that the same flows are
simulated:

- two downloads by CUBIC (wget), or one by CUBIC and one by BBR (iperf3);
- 500 kB over an open ssh connection beside two downloads by CUBIC, or by BBR;
- UDP of 8 Mbit/s, and of 150 kbit/s, beside a download (iperf3), and of 8 Mbit/s beside one by BBR;
- a download by QUIC (quinn, with CUBIC and with BBR), which passes the proxy unsplit, beside one by TCP.

Goodput is that of the receiver, and delay the time from the moment at which the server sent a byte to its arrival at
the UE, with its time in the proxy; both are counted after the first seconds. Of ssh, the delay is the time of a
transfer. A row is marked `outside` if the emulated goodput differs from the simulated one by more than 10 % or the
median delay by more than 20 %, and `late` if the machine was too busy for the emulation.

`target/bench/rapid_lab.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WARMUP_S = 4
FILE = 500_000
GOODPUT, DELAY = 0.10, 0.20
# Of `ranway emulate`: valid, late, and a program that was ended.
ENDS = (0, 3)

CELL = """
duration = "{seconds} s"
warmup = "{warmup} s"
[lte]
bandwidth = "5 MHz"
server_delay = "25 ms"
server_rate = "1 Gbit/s"
s1_rate = "1 Gbit/s"
proxy = {{ policy = "{policy}" }}
[[lte.ues]]
name = "ue"
[lte.ues.bearer]
rlc = "am"
queue = {{ kind = "drop-tail", bytes = "1 MB" }}
"""
DOWNLOAD = """
[[flows]]
name = "download-{n}"
cc = "{cc}"
start = "100 ms"
"""
# iperf3 exchanges its parameters first, which takes 0.24 s.
BBR = """
[[flows]]
name = "bbr"
cc = "bbr"
start = "340 ms"
"""
SSH = """
[[flows]]
name = "ssh"
start = "{start} s"
traffic = {{ kind = "short-flows", size = "{size} B", interval = "4 s" }}
"""
UDP = """
[[flows]]
name = "udp"
start = "100 ms"
traffic = {{ kind = "cbr", rate = "{rate} bit/s", packet = "{packet} B" }}
"""
QUIC = """
[[flows]]
name = "quic"
cc = "{cc}"
start = "100 ms"
proxied = false
"""
SSHD = """
HostKey {dir}/host
AuthorizedKeysFile {dir}/client.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
"""
# The server's senders, whatever this machine's default is.
ROUTE = "ip route add 10.0.1.0/24 dev cell0 congctl {cc}"
IPERF_PORT = 5201
QUIC_PORT = 4433
# Bytes of IPv4 and UDP headers, which the simulated packets include.
HEADERS = 28


@dataclass(frozen=True)
class Case:
    """What runs at once: downloads by a congestion control, one more by BBR, UDP of a rate in bit/s with packets of a
    length, short transfers by ssh, and a download by QUIC with a congestion control."""

    name: str
    downloads: int
    cc: str = "cubic"
    bbr: bool = False
    udp: tuple[int, int] | None = None
    ssh: bool = False
    quic: str | None = None


CASES = (
    Case("two downloads", 2),
    Case("CUBIC and BBR", 1, bbr=True),
    Case("ssh", 2, ssh=True),
    Case("ssh, BBR", 2, cc="bbr", ssh=True),
    Case("UDP 8 Mbit/s", 1, udp=(8_000_000, 1400)),
    Case("UDP 8 M, BBR", 1, cc="bbr", udp=(8_000_000, 1400)),
    Case("UDP 150 kbit/s", 1, udp=(150_000, 200)),
    Case("QUIC, CUBIC", 1, quic="cubic"),
    Case("QUIC, BBR", 1, quic="bbr"),
)


@dataclass(frozen=True)
class Figures:
    """Of the flows of one kind: goodput of all in Mbit/s and median delay; of ssh, the median time of a transfer."""

    mbps: float
    delay_ms: float


def fail(message: str) -> None:
    print(f"rapid_lab: {message}", file=sys.stderr)
    sys.exit(1)


def run(command: list[str | Path], cwd: Path, ends: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode not in ends:
        line = " ".join(map(str, command))
        fail(f"`{line}` exited with {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done


def flows(directory: Path) -> list[dict]:
    return json.loads((directory / "summary.json").read_text())["points"][0]["flows"]


def figures(rows: list[dict]) -> Figures:
    """Sums goodputs; the delay is the median of the flows' medians."""
    delays = [row["owd_p50_ms"]["mean"] for row in rows if row["owd_p50_ms"]]
    return Figures(sum(row["goodput_mbps"]["mean"] for row in rows), statistics.median(delays))


def transfers(seconds: list[float]) -> Figures:
    median = statistics.median(seconds)
    return Figures(FILE * 8e-6 / median, median * 1e3)


def simulate(case: Case, policy: str, arguments: argparse.Namespace, scratch: Path) -> dict[str, Figures]:
    text = CELL.format(seconds=arguments.seconds, warmup=WARMUP_S, policy=policy)
    text += "".join(DOWNLOAD.format(n=n, cc=case.cc) for n in range(case.downloads))
    if case.bbr:
        text += BBR
    if case.udp:
        text += UDP.format(rate=case.udp[0], packet=case.udp[1])
    if case.ssh:
        text += SSH.format(start=WARMUP_S + 1, size=FILE)
    if case.quic:
        text += QUIC.format(cc=case.quic)
    (scratch / "simulated.toml").write_text(text)
    run([arguments.ranway, "run", "simulated.toml", "--quiet", "-o", "simulated"], scratch)
    rows = flows(scratch / "simulated")
    found = {"downloads": figures([row for row in rows if row["flow"].startswith("download")])}
    if case.udp:
        found["udp"] = figures([row for row in rows if row["flow"] == "udp"])
    for kind in ("bbr", "quic"):
        if getattr(case, kind):
            found[kind] = figures([row for row in rows if row["flow"] == kind])
    if case.ssh:
        [row] = [row for row in rows if row["flow"] == "ssh"]
        found["ssh"] = transfers([row["completion_s"]["mean"]])
    return found


def prepare_ssh(scratch: Path) -> None:
    for key in ("host", "client"):
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], scratch)
    (scratch / "sshd_config").write_text(SSHD.format(dir=scratch))
    (scratch / "file").write_bytes(os.urandom(FILE))
    # Where sshd separates privileges.
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)


def emulate(case: Case, policy: str, arguments: argparse.Namespace, scratch: Path) -> tuple[dict[str, Figures], bool]:
    """Also tells whether the machine delivered packets in time."""
    (scratch / "emulated.toml").write_text(CELL.format(seconds=arguments.seconds, warmup=WARMUP_S, policy=policy))
    download = f"timeout {arguments.seconds} wget -4 -qO /dev/null http://server/endless &\n"
    commands = download * case.downloads
    route = ROUTE.format(cc=case.cc)
    server = ["--server", f"{route}; exec sleep infinity"]
    if case.bbr:
        commands += f"iperf3 -4 -c server -R -C bbr -t {arguments.seconds} >/dev/null &\n"
    if case.udp:
        rate, packet = case.udp
        length = packet - HEADERS
        commands += (
            f"sleep 0.1; iperf3 -4 -c server -R -u -b {rate * length // packet} -l {length} "
            f"-t {arguments.seconds} >/dev/null\n"
        )
    if case.ssh:
        server = [
            "--server",
            f"{route}; exec {shutil.which('sshd') or '/usr/sbin/sshd'} -D -p 22 -f {scratch}/sshd_config",
        ]
        master = f"-S {scratch}/master"
        options = "-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        commands += (
            f"rm -f {scratch}/master\nssh -4 {options} -i {scratch}/client -M {master} -fN root@server\n"
            f"sleep {WARMUP_S}\n: >{scratch}/times\n"
            f"while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do\n"
            f"  before=$(date +%s.%N); got=$(ssh -F none {master} root@server cat {scratch}/file | wc -c)\n"
            f"  [ $got = {FILE} ] || exit 1\n"
            f'  echo "$before $(date +%s.%N)" >>{scratch}/times; sleep 2\ndone\n'
        )
    if case.quic:
        certificate = scratch / "quic.der"
        certificate.unlink(missing_ok=True)
        server = ["--server", f"{route}; exec {arguments.quic} serve {QUIC_PORT} {case.quic} {certificate}"]
        commands += f"until [ -s {certificate} ]; do sleep 0.05; done\n"
        commands += f"{arguments.quic} get server:{QUIC_PORT} {arguments.seconds} {certificate} || exit 1\n"
    script = f"end=$(( $(cut -d. -f1 /proc/uptime) + {arguments.seconds - 4} ))\nsleep 0.2\n{commands}wait\ntrue\n"
    command = [arguments.ranway, "emulate", "emulated.toml", "--max-lateness", "2 ms", "-o", "emulated", *server]
    done = run([*command, "--", "sh", "-c", script], scratch, ENDS)
    # Through a proxy, the flows at the UE begin at `core`.
    rows, first = flows(scratch / "emulated"), "server" if policy == "none" else "core"
    web = [row for row in rows if row["flow"].startswith(f"tcp {first}:80 > ue")]
    found = {"downloads": figures(web)}
    if case.bbr:
        # iperf3 has a connection for its messages as well.
        own = [row for row in rows if row["flow"].startswith(f"tcp {first}:{IPERF_PORT} > ue")]
        found["bbr"] = figures([max(own, key=lambda row: row["goodput_mbps"]["mean"])])
    for kind, port in (("udp", IPERF_PORT), ("quic", QUIC_PORT)):
        if not getattr(case, kind):
            continue
        legs = [f"server:{port} > ue"] if policy == "none" else [f"server:{port} > core", f"core:{port} > ue"]
        each = [figures([row for row in rows if row["flow"].startswith(f"udp {leg}")]) for leg in legs]
        found[kind] = Figures(each[-1].mbps, sum(leg.delay_ms for leg in each))
    if case.ssh:
        pairs = [map(float, line.split()) for line in (scratch / "times").read_text().splitlines()]
        found["ssh"] = transfers([after - before for before, after in pairs])
    return found, done.returncode == 0


def within(simulated: Figures, emulated: Figures) -> bool:
    def near(one: float, other: float, part: float) -> bool:
        return abs(other - one) <= part * one

    return near(simulated.mbps, emulated.mbps, GOODPUT) and near(simulated.delay_ms, emulated.delay_ms, DELAY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    quic = target / "quic" / "release" / "quic"
    parser.add_argument("--quic", type=Path, default=quic, help="peers/quic (default: as tools/setup lab builds it)")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="default: all")
    parser.add_argument("--seconds", type=int, default=20, help="length of each run (default: 20)")
    parser.add_argument("--policies", nargs="+", default=["none", "best"], help="default: none best")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "rapid_lab.json")
    arguments = parser.parse_args()
    arguments.ranway, arguments.quic = arguments.ranway.resolve(), arguments.quic.resolve()
    tools = ("ssh", "ssh-keygen", "wget", "iperf3", "nft", str(arguments.quic))
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    if missing or not arguments.ranway.exists():
        print(f"missing: {', '.join(missing) or arguments.ranway}; tools/setup lab installs programs", file=sys.stderr)
        return 2
    if arguments.seconds < 4 * WARMUP_S:
        print(f"--seconds must be at least {4 * WARMUP_S}", file=sys.stderr)
        return 2
    print(f"{'':32}{'goodput Mbit/s':>20}{'median delay ms':>20}")
    print(f"{'case':16}{'proxy':8}{'flows':10}{'simul.':>10}{'emul.':>8}{'simul.':>12}{'emul.':>8}")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        prepare_ssh(scratch)
        for case in [case for case in CASES if case.name in (arguments.cases or [case.name])]:
            for policy in arguments.policies:
                simulated = simulate(case, policy, arguments, scratch)
                emulated, in_time = emulate(case, policy, arguments, scratch)
                for kind, one in simulated.items():
                    other = emulated[kind]
                    fits = within(one, other)
                    notes = ("" if fits else "  outside") + ("" if in_time else "  late")
                    print(
                        f"{case.name:16}{policy:8}{kind:10}{one.mbps:10.2f}{other.mbps:8.2f}"
                        f"{one.delay_ms:12.1f}{other.delay_ms:8.1f}{notes}",
                        flush=True,
                    )
                    figure = {"simulated": asdict(one), "emulated": asdict(other), "within": fits, "in_time": in_time}
                    rows.append({"case": case.name, "proxy": policy, "flows": kind, **figure})
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(rows, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
