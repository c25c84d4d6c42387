"""What `ranway backlog` does beside the algorithm of cake-autorate, on one drive through a cell, in both directions.

Needs root, iperf3, a built `ranway` (`cargo build --release -p ranway`), and for the picture `pip install '.[plot]'`.
In a row there are, in namespaces: a host, a router (the phone), the cell of docs/samples/drive.toml, and a server.
While the phone is driven away from the cell and back, host and server exchange at once

- a bulk transfer of the kernel's TCP (iperf3), up or down,
- a small flow in the same direction: UDP, 500 kbit/s in packets that carry the time at which they were sent,
- and a ping each 200 ms,

each with the same fading in all ways, and another one in each run:

- nothing: the modem's and the eNodeB's own queues;
- backlog TARGET: `ranway backlog`, on the router's modem for an upload, on the server's interface for a download;
- autorate THRESHOLD: `ranway backlog --reflector`, on the modem for an upload and on the router's LAN for a download,
  as cake-autorate is used;
- cake-autorate: the script itself, if --script has its directory (it needs fping). It sets the rate of the same shaper
  by a `tc` that writes what it is told into `ranway backlog --follow`.

An emulation that was late is repeated. `target/bench/autorate.json` holds the figures of each run.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from backlog_cell import ATTEMPTS, LATE, ROOT, STYLE, mean, percentiles, receive, small

SCENARIO = ROOT / "docs" / "samples" / "drive.toml"
# What cake-autorate has to be told of the line in kbit/s: the least, the base and the largest rate. They are the 5th
# percentile, the mean and the 95th percentile of what a transfer has without shaping, second by second (`--line`), and
# at least the 2 Mbit/s below which cake-autorate takes a connection for idle.
BOUNDS = {"up": (2000, 17000, 31000), "down": (3600, 20000, 34000)}
TARGETS = ("10ms", "20ms", "40ms", "80ms")
THRESHOLDS = ("10ms", "30ms")
NOTHING, SCRIPT = "nothing", "cake-autorate"
# As many as cake-autorate pings by default.
REFLECTORS = [f"10.9.3.{host}" for host in range(2, 8)]
SERVER, HOST = REFLECTORS[0], "10.9.1.1"
# Not measured: slow start. Measured, in s.
OMIT_S = 3
SECONDS = 36
# The smallest delay here is ten times that.
LATENESS = ("--max-lateness", "2 ms")
# Where `tc` is asked for by the script: it shows what the script looks for, and hands on a rate.
TC = """#!/bin/sh
case "$*" in
*change*) echo "$*" | sed -n 's/.* bandwidth \\([0-9]*\\)Kbit/\\1 kbit\\/s/p' > "$RANWAY_RATES" ;;
*) echo "qdisc cake 8001: root refcnt 2 bandwidth 1Mbit noatm overhead 0" ;;
esac
"""


class Net:
    """A host, a router, the cell and a server, and what runs there. All of it goes away in the end."""

    def __init__(self, ranway: Path, seed: int, directory: Path) -> None:
        self.ranway, self.directory = ranway, directory
        self.prefix = f"ranway-a{os.getpid()}"
        self.running: list[subprocess.Popen[str]] = []
        for name in "hras":
            self.ip(f"netns add {self.prefix}-{name}")
        self.join(("h", "h0", [f"{HOST}/24"]), ("r", "lan", ["10.9.1.2/24"]))
        self.join(("r", "modem", ["10.9.3.1/24"]), ("a", "right", []))
        self.join(("s", "s0", [f"{address}/24" for address in REFLECTORS]), ("a", "left", []))
        self.ip(f"-n {self.prefix}-h route add default via 10.9.1.2")
        self.ip(f"-n {self.prefix}-s route add default via 10.9.3.1")
        self.run("r", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        emulate = ["emulate", str(SCENARIO), "--set", "flows=[]", "--seed", str(seed), "--out", str(directory / "out")]
        self.start("s", "iperf3", "-s", stderr=subprocess.DEVNULL)
        self.emulation = self.ready("a", str(ranway), *emulate, "--attach", "left", "right", *LATENESS)

    def ip(self, arguments: str) -> None:
        subprocess.run(["ip", *arguments.split()], check=True)

    def join(self, *ends: tuple[str, str, list[str]]) -> None:
        (a, one, _), (b, other, _) = ends
        self.ip(f"-n {self.prefix}-{a} link add {one} type veth peer name {other} netns {self.prefix}-{b}")
        for space, interface, addresses in ends:
            for address in addresses:
                self.ip(f"-n {self.prefix}-{space} addr add {address} dev {interface}")
            self.ip(f"-n {self.prefix}-{space} link set dev {interface} up")

    def inside(self, space: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", f"{self.prefix}-{space}", *command]

    def run(self, space: str, *command: str) -> None:
        subprocess.run(self.inside(space, *command), check=True)

    def start(self, space: str, *command: str, **more: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self.inside(space, *command), **{"stdout": subprocess.DEVNULL, "stderr": None, "text": True} | more
        )
        self.running.append(process)
        return process

    def ready(self, space: str, *command: str, **more: object) -> subprocess.Popen[str]:
        """Starts a `ranway` that says when it is there."""
        process = self.start(space, *command, stderr=subprocess.PIPE, **more)
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "Ctrl-C ends it" in said, f"`{shlex.join(command)}` says: {said}"
        threading.Thread(target=process.stderr.read, daemon=True).start()
        return process

    def end(self, process: subprocess.Popen[str]) -> int:
        self.running.remove(process)
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def close(self) -> None:
        for process in reversed(self.running.copy()):
            self.end(process)
        for name in "hras":
            subprocess.run(["ip", "netns", "delete", f"{self.prefix}-{name}"], check=False)


def shape(net: Net, way: str, direction: str, script: Path | None) -> None:
    """Starts what shapes."""
    kind, _, setting = way.partition(" ")
    least, base, largest = (f"{kbps} kbit/s" for kbps in BOUNDS[direction])
    router = "modem" if direction == "up" else "lan"
    backlog = (str(net.ranway), "backlog", "--modem")
    if kind == "backlog":
        space, interface = ("r", "modem") if direction == "up" else ("s", "s0")
        net.ready(space, *backlog, interface, "--target", setting)
    elif kind == "autorate":
        reflectors = [word for address in REFLECTORS for word in ("--reflector", address)]
        rates = ["--rate", base, "--min-rate", least, "--max-rate", largest]
        net.ready("r", *backlog, router, *rates, *reflectors, "--delay-threshold", setting)
    elif kind == SCRIPT:
        assert script is not None
        rates_path = net.directory / "rates"
        os.mkfifo(rates_path)
        # This end stays open, so that the shaper's input does not end with the first rate.
        rates = os.open(rates_path, os.O_RDWR)
        net.ready("r", *backlog, router, "--rate", base, "--target", "1ms", "--follow", stdin=rates)
        os.close(rates)
        start_script(net, direction, script, rates_path)


def start_script(net: Net, direction: str, script: Path, rates: Path) -> None:
    tc = net.directory / "bin" / "tc"
    tc.parent.mkdir()
    tc.write_text(TC)
    tc.chmod(0o755)
    settings = {"dl_if": "lan", "ul_if": "modem", "log_file_path_override": f'"{net.directory}"', "debug": 0}
    settings |= {"reflectors": f"({' '.join(REFLECTORS)})", "connection_active_thr_kbps": BOUNDS[direction][0]}
    for way, short in (("down", "dl"), ("up", "ul")):
        for what, kbps in zip(("min", "base", "max"), BOUNDS[way], strict=True):
            settings[f"{what}_{short}_shaper_rate_kbps"] = kbps
        settings[f"adjust_{short}_shaper_rate"] = int(way == direction)
    settings["connection_active_thr_kbps"] = min(least for least, _, _ in BOUNDS.values())
    config = net.directory / f"config.ranway{os.getpid()}.sh"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    environment = os.environ | {"PATH": f"{tc.parent}:{os.environ['PATH']}", "RANWAY_RATES": str(rates)}
    environment |= {"CAKE_AUTORATE_SCRIPT_PREFIX": str(script), "CAKE_AUTORATE_CONFIG_PREFIX": str(net.directory)}
    log = (net.directory / "script.log").open("w")
    net.start("r", "bash", str(script / "cake-autorate.sh"), str(config), env=environment, stdout=log, stderr=log)


def transfer(net: Net, direction: str, control: str) -> dict[str, object]:
    """Everything at once. The figures."""
    me = [sys.executable, str(Path(__file__).resolve())]
    delays = net.directory / "delays"
    sender, receiver, to = ("h", "s", SERVER) if direction == "up" else ("s", "h", HOST)
    net.start(receiver, *me, "--receive", str(delays))
    bulk = ["iperf3", "-4", "-c", SERVER, "-C", control, "-O", str(OMIT_S), "-t", str(SECONDS), "--json"]
    reverse = [] if direction == "up" else ["-R"]
    bulk_run = net.start("h", *bulk, *reverse, stdout=subprocess.PIPE)
    time.sleep(OMIT_S)
    ping = net.start("h", "ping", "-i", "0.2", "-w", str(SECONDS), SERVER, stdout=subprocess.PIPE)
    sending = net.start(sender, *me, "--small", to, stdout=subprocess.PIPE)
    done = json.loads(bulk_run.communicate()[0])
    sent = int(sending.communicate()[0])
    rtts = [float(ms) for ms in re.findall(r"time=([\d.]+)", ping.communicate()[0])]
    # What still waits is late and not lost.
    time.sleep(1)
    small_ms = [float(line) for line in delays.read_text().split()]
    seconds = [part["sum"]["bits_per_second"] / 1e6 for part in done["intervals"] if not part["sum"].get("omitted")]
    return {
        "mbps": done["end"]["sum_received"]["bits_per_second"] / 1e6,
        "mbps_by_second": seconds,
        "small_ms": {str(share): ms for share, ms in percentiles(small_ms).items()},
        "small_mean_ms": statistics.mean(small_ms),
        "lost": 1 - len(small_ms) / sent,
        "ping_ms": {str(share): ms for share, ms in percentiles(rtts).items()},
    }


def measure(ranway: Path, way: str, direction: str, control: str, seed: int, script: Path | None) -> dict[str, object]:
    """One emulation, again if it was late."""
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as directory:
            net = Net(ranway, seed, Path(directory))
            try:
                shape(net, way, direction, script)
                figures = transfer(net, direction, control)
                code = net.end(net.emulation)
            finally:
                net.close()
        if code == 0:
            return {"way": way, "direction": direction, "control": control, "seed": seed} | figures
        if code != LATE:
            sys.exit(f"the emulation exited with {code}")
        print("the emulation was late: once more", file=sys.stderr)
    sys.exit("the emulation was late each time: this machine has too much else to do")


Runs = list[dict[str, object]]
METRICS = {
    "throughput Mbit/s": lambda run: run["mbps"],
    "small flow, median ms": lambda run: run["small_ms"]["50"],
    "mean ms": lambda run: run["small_mean_ms"],
    "95 % ms": lambda run: run["small_ms"]["95"],
    "lost %": lambda run: run["lost"] * 100,
    "ping, median ms": lambda run: run["ping_ms"]["50"],
    "ping, 95 % ms": lambda run: run["ping_ms"]["95"],
}
# The delays that are compared at equal throughput.
DELAYS = {
    what: METRICS[key] for what, key in (("median", "small flow, median ms"), ("mean", "mean ms"), ("95 %", "95 % ms"))
}


def by_way(runs: Runs, direction: str, control: str) -> dict[str, Runs]:
    """In the order of the ways."""
    ways = {way: [] for way in all_ways(True)}
    for run in runs:
        if (run["direction"], run["control"]) == (direction, control):
            ways[run["way"]].append(run)
    return {way: of for way, of in ways.items() if of}


def all_ways(script: bool) -> list[str]:
    ways = [NOTHING, *(f"backlog {target}" for target in TARGETS), *(f"autorate {value}" for value in THRESHOLDS)]
    return [*ways, SCRIPT] if script else ways


def groups(runs: Runs) -> Iterator[tuple[str, str, dict[str, Runs]]]:
    for direction in BOUNDS:
        for control in dict.fromkeys(run["control"] for run in runs):
            if ways := by_way(runs, direction, control):
                yield direction, control, ways


def table(runs: Runs) -> None:
    print(f"| | {' | '.join(METRICS)} |")
    print(f"| --- |{' ---: |' * len(METRICS)}")
    for direction, control, ways in groups(runs):
        for way, of in ways.items():
            cells = []
            for metric in METRICS.values():
                value, width = mean([metric(run) for run in of])
                digits = 1 if value < 30 else 0
                cells.append(f"{value:.{digits}f}" + (f" ± {width:.{digits}f}" if len(of) > 1 else ""))
            print(f"| {direction}, {control}, {way} ({len(of)}) | {' | '.join(cells)} |")


def at(x: float, points: list[tuple[float, float]]) -> float | None:
    """On the line through points; none outside of them."""
    points = sorted(points)
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else min(y0, y1)
    return None


def compare(runs: Runs) -> None:
    """Delays at equal throughput: what our curve has at the throughput of each point of the other, run by run."""
    print(f"| small flow, ours and its | runs | {' | '.join(f'{what} ms | change' for what in DELAYS)} |")
    print(f"| --- | ---: |{' ---: | ---: |' * len(DELAYS)}")
    for direction, control, ways in groups(runs):
        ours = [run for way, of in ways.items() if way.startswith("backlog") for run in of]
        for other, theirs in ways.items():
            if not other.startswith(("autorate", SCRIPT)):
                continue
            cells: list[str] = []
            within = 0
            for delay in DELAYS.values():
                curves = [[(our["mbps"], delay(our)) for our in ours if our["seed"] == run["seed"]] for run in theirs]
                pairs = [(at(run["mbps"], curve), delay(run)) for run, curve in zip(theirs, curves, strict=True)]
                pairs = [(our, its) for our, its in pairs if our is not None]
                within = len(pairs)
                if pairs:
                    change, width = mean([our - its for our, its in pairs])
                    our_ms, its_ms = (statistics.mean(values) for values in zip(*pairs, strict=True))
                    cells += [
                        f"{our_ms:.0f}, {its_ms:.0f}",
                        f"{change:+.0f}" + (f" ± {width:.0f}" if within > 1 else ""),
                    ]
                else:
                    cells += ["", ""]
            print(f"| {direction}, {control}, as {other} | {within} of {len(theirs)} | {' | '.join(cells)} |")


def draw(runs: Runs, path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    names = {"up": "Uplink", "down": "Downlink"}
    lines = {
        "backlog": ("#0072B2", "o", "ranway backlog (--target)"),
        "autorate": ("#009E73", "s", "autorate (threshold)"),
    }
    points = {NOTHING: ("#D55E00", "X", "nothing"), SCRIPT: ("#CC79A7", "D", "cake-autorate.sh")}
    shown = list(groups(runs))
    picture, axes = plt.subplots(2, len(shown), figsize=(8, 5.6), layout="constrained", squeeze=False)
    for column, (direction, control, ways) in enumerate(shown):
        for ax, what in zip(axes[:, column], ("median", "95 %"), strict=True):
            ax.set_title(f"{names[direction]}, {control.upper()}: small flow, one way, {what} (ms)", fontsize=9)
            ax.grid(color="#E6E6E6", linewidth=0.6)
            ax.set_yscale("log")
            ax.set_xlabel("Throughput (Mbit/s)")
            spot = {
                way: (statistics.mean(run["mbps"] for run in of), statistics.mean(map(DELAYS[what], of)))
                for way, of in ways.items()
            }
            for kind, (colour, marker, label) in lines.items():
                of = [(way, place) for way, place in spot.items() if way.startswith(f"{kind} ")]
                x, y = zip(*(place for _, place in of), strict=True)
                ax.plot(x, y, color=colour, marker=marker, markersize=4, label=label)
                for way, place in of:
                    offset = (-2, 6) if kind == "backlog" else (-2, -12)
                    ax.annotate(way.split()[1], place, offset, textcoords="offset points", fontsize=7, color=colour)
            for way, (colour, marker, label) in points.items():
                if way in spot:
                    ax.plot(*spot[way], color=colour, marker=marker, markersize=6, linestyle="none", label=label)
            ticks = [20, 30, 50, 100, 200, 500, 1000]
            ax.set_ylim(15, 1800)
            ax.set_yticks(ticks, [str(tick) for tick in ticks])
            ax.minorticks_off()
    picture.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    picture.savefig(path, metadata={"Date": None}, facecolor="white")


def line(runs: Runs) -> None:
    """What a user of cake-autorate would measure of the line first."""
    for direction, control, ways in groups(runs):
        seconds = [mbps for run in ways.get(NOTHING, []) for mbps in run["mbps_by_second"]]
        if seconds:
            cuts = percentiles(seconds)
            shares = statistics.quantiles(seconds, n=20)
            middle = statistics.mean(seconds)
            print(f"{direction}, {control}: 5 % {shares[0]:.1f}, mean {middle:.1f}, 95 % {cuts[95]:.1f} Mbit/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=built / "release" / "ranway")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5], metavar="N")
    parser.add_argument("--control", nargs="+", default=["cubic"], choices=("cubic", "bbr"))
    parser.add_argument("--directions", nargs="+", default=list(BOUNDS), choices=list(BOUNDS))
    parser.add_argument("--ways", nargs="+", help="only these (as `backlog 20ms`)")
    parser.add_argument("--script", type=Path, help="a directory with a checked-out cake-autorate")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "autorate.json")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "src" / "images" / "autorate.svg")
    parser.add_argument("--draw", action="store_true", help="measure nothing: table and picture of the last figures")
    parser.add_argument("--line", action="store_true", help="measure nothing: what the line carries without shaping")
    parser.add_argument("--receive", help=argparse.SUPPRESS)
    parser.add_argument("--small", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.receive is not None:
        receive(arguments.receive)
    if arguments.small is not None:
        print(small(SECONDS, arguments.small))
        return 0
    runs: Runs = json.loads(arguments.out.read_text()) if arguments.out.exists() else []
    if not arguments.draw and not arguments.line:
        if os.geteuid():
            print("this needs root", file=sys.stderr)
            return 2
        # What was started and created goes away then, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        ways = arguments.ways or all_ways(arguments.script is not None)
        # In turns, so that what else the machine does meets all alike.
        for seed in arguments.seeds:
            for control in arguments.control:
                for direction in arguments.directions:
                    for way in ways:
                        is_same = {"way": way, "direction": direction, "control": control, "seed": seed}.items()
                        run = measure(arguments.ranway, way, direction, control, seed, arguments.script)
                        runs = [old for old in runs if not is_same <= old.items()] + [run]
                        arguments.out.write_text(json.dumps(runs, indent=1) + "\n")
                        print(
                            f"{seed}: {direction}, {control}, {way}: {run['mbps']:.2f} Mbit/s, "
                            f"{run['small_ms']['50']:.0f} and {run['small_ms']['95']:.0f} ms",
                            file=sys.stderr,
                        )
    if arguments.line:
        line(runs)
        return 0
    table(runs)
    compare(runs)
    with contextlib.suppress(ImportError):
        draw(runs, arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
