"""What `ranway backlog` does for a phone that uploads over a cell, with real hosts.

Needs root, iperf3, a built `ranway` (`cargo build --release -p ranway`), and for the picture `pip install '.[plot]'`.
`ranway emulate docs/samples/emulate-upload.toml` is the cell, whose modem holds 500 kB, and from the phone go at once

- an upload of the kernel's TCP (iperf3), CUBIC or BBR,
- from 4 s on a small flow: UDP, 500 kbit/s in packets of 500 bytes that carry the time at which they were sent (both
  ends are on one machine, and have one clock),
- and a ping each 200 ms,

without and with `ranway backlog` on the phone, with the same fading, and another one in each run. An emulation that was
late is repeated. `target/bench/backlog-cell.json` holds the figures, and docs/src/images/backlog.svg is drawn of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "docs" / "samples" / "emulate-upload.toml"
CELLS = {
    "10 MHz, 120 m": [],
    "5 MHz, 300 m": ["--set", "lte.bandwidth=5 MHz", "--set", "lte.ues.phone.mobility=[300, 0, 1.5]"],
}
CONTROLS = ("cubic", "bbr")
NAMES = {"cubic": "CUBIC", "bbr": "BBR"}
WAYS = ("alone", "backlog above")
# Of slow start.
OMIT_S = 4
PORT = 5402
SMALL_BYTES = 500
SMALL_BPS = 500_000
HEADERS = 28
STAMP = struct.Struct("!q")
# `ranway emulate` has been late.
LATE = 3
ATTEMPTS = 5
# Student's t, 97.5 %, for so many runs.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def receive(path: str) -> None:
    """At the server: the delay of each packet of the small flow, in ms, a line each."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s, Path(path).open("w", buffering=1) as out:
        s.bind(("", PORT))
        while True:
            (sent,) = STAMP.unpack_from(s.recv(2000))
            out.write(f"{(time.monotonic_ns() - sent) / 1e6}\n")


def small(seconds: float, host: str = "server") -> int:
    """At the phone: sends the small flow. How many packets."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect((host, PORT))
        gap = SMALL_BYTES * 8 / SMALL_BPS
        begun, count = time.monotonic(), 0
        while (due := count * gap) < seconds:
            time.sleep(max(0.0, begun + due - time.monotonic()))
            s.send(STAMP.pack(time.monotonic_ns()) + bytes(SMALL_BYTES - HEADERS - STAMP.size))
            count += 1
        return count


def phone(ranway: str, control: str, seconds: int, target: str | None) -> None:
    """At the phone: everything at once, with `ranway backlog` if it has a target. Prints the figures."""
    backlog = None
    if target is not None:
        command = [ranway, "backlog", "--modem", "cell0", "--target", target]
        backlog = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert backlog.stderr is not None
        assert "Ctrl-C ends it" in backlog.stderr.readline()
    upload = ["iperf3", "-4", "-c", "server", "-C", control, "-O", str(OMIT_S), "-t", str(seconds), "--json"]
    uploading = subprocess.Popen(upload, stdout=subprocess.PIPE, text=True)
    time.sleep(OMIT_S)
    ping = subprocess.Popen(["ping", "-i", "0.2", "-w", str(seconds), "server"], stdout=subprocess.PIPE, text=True)
    sent = small(seconds)
    end = json.loads(uploading.communicate()[0])["end"]
    rtts = [float(ms) for ms in re.findall(r"time=([\d.]+)", ping.communicate()[0])]
    if backlog is not None:
        backlog.send_signal(signal.SIGTERM)
        backlog.wait()
    print(json.dumps({"mbps": end["sum_received"]["bits_per_second"] / 1e6, "ping_ms": rtts, "sent": sent}))


def measure(ranway: Path, cell: str, control: str, target: str | None, seconds: int, seed: int) -> dict[str, object]:
    """One emulation, again if it was late."""
    me = [sys.executable, str(Path(__file__).resolve())]
    inside = [
        *me,
        "--ranway",
        str(ranway),
        "--seconds",
        str(seconds),
        "--phone",
        control,
        *([] if target is None else ["--above", target]),
    ]
    for _ in range(ATTEMPTS):
        with tempfile.TemporaryDirectory() as directory:
            delays = Path(directory) / "delays"
            command = [str(ranway), "emulate", str(SCENARIO), *CELLS[cell], "--set", "flows=[]", "--seed", str(seed)]
            command += ["--quiet", "--out", str(Path(directory) / "out")]
            command += ["--server", shlex.join([*me, "--receive", str(delays)]), "--", *inside]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode not in (0, LATE):
                sys.exit(f"`{shlex.join(command)}` exited with {done.returncode}")
            if done.returncode == 0:
                small_ms = [float(line) for line in delays.read_text().split()]
                return json.loads(done.stdout) | {"small_ms": small_ms}
        print("the emulation was late: once more", file=sys.stderr)
    sys.exit("the emulation was late each time: this machine has too much else to do")


def percentiles(values: list[float]) -> dict[int, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return {share: cuts[share // 5 - 1] for share in (5, 25, 50, 75, 95)}


def mean(values: list[float]) -> tuple[float, float]:
    """With half the width of its 95 % interval."""
    width = STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return statistics.mean(values), width


def figures(runs: list[dict[str, object]]) -> dict[str, object]:
    """Of all runs together."""
    all_of = {key: [ms for run in runs for ms in run[key]] for key in ("ping_ms", "small_ms")}
    arrived = len(all_of["small_ms"]) / sum(run["sent"] for run in runs)
    delays = {key: percentiles(values) for key, values in all_of.items()}
    return {"mbps": [run["mbps"] for run in runs], "arrived": arrived, **delays}


def table(rows: dict[str, dict[str, object]]) -> None:
    print("| | upload Mbit/s | change | small flow ms | its 95 % | lost | ping ms | its 95 % |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for cell in CELLS:
        for control in CONTROLS:
            names = [f"{cell}, {NAMES[control]}, {way}" for way in WAYS]
            pairs = zip(*(rows[name]["mbps"] for name in names), strict=True)
            change, width = mean([(above / alone - 1) * 100 for alone, above in pairs])
            for name, what in zip(names, ("", f"{change:+.0f} ± {width:.0f} %"), strict=True):
                row = rows[name]
                delays = [f"{row[key][share]:.0f}" for key in ("small_ms", "ping_ms") for share in ("50", "95")]
                cells = [
                    f"{statistics.mean(row['mbps']):.1f}",
                    what,
                    *delays[:2],
                    f"{1 - row['arrived']:.1%}",
                    *delays[2:],
                ]
                print(f"| {name} | {' | '.join(cells)} |")


# How matplotlib draws the pictures of the book.
STYLE = {"svg.hashsalt": "ranway", "svg.fonttype": "path", "font.size": 9, "axes.linewidth": 0.6}
STYLE |= {"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}


def draw(rows: dict[str, dict[str, object]], path: Path) -> None:
    import matplotlib.pyplot as plt

    plt.rcParams.update(STYLE)
    colours = {"alone": "#D55E00", "backlog above": "#0072B2"}
    picture, axes = plt.subplots(len(CELLS), 3, figsize=(8, 5), layout="constrained")
    for line, cell in zip(axes, CELLS, strict=True):
        for ax, title in zip(line, ("Upload (Mbit/s)", "Small flow, one way (ms)", "Ping (ms)"), strict=True):
            ax.set_title(f"{cell}: {title}", fontsize=9)
            ax.set_xticks(range(len(CONTROLS)), [NAMES[control] for control in CONTROLS])
            ax.set_xlim(-0.6, len(CONTROLS) - 0.4)
            ax.grid(axis="y", color="#E6E6E6", linewidth=0.6)
        for i, way in enumerate(WAYS):
            of = [rows[f"{cell}, {NAMES[control]}, {way}"] for control in CONTROLS]
            at = [x + (i - 0.5) * 0.38 for x in range(len(CONTROLS))]
            colour = colours[way]
            line[0].bar(at, [statistics.mean(row["mbps"]) for row in of], 0.34, color=colour, label=way)
            for x, row in zip(at, of, strict=True):
                line[0].plot([x] * len(row["mbps"]), row["mbps"], "o", color="black", markersize=2)
            for ax, key in ((line[1], "small_ms"), (line[2], "ping_ms")):
                keys = {"whislo": "5", "q1": "25", "med": "50", "q3": "75", "whishi": "95"}
                boxes = [{name: row[key][share] for name, share in keys.items()} for row in of]
                lines = {"color": colour, "linewidth": 1}
                ax.bxp(
                    boxes,
                    positions=at,
                    widths=0.3,
                    manage_ticks=False,
                    showfliers=False,
                    patch_artist=True,
                    boxprops={"facecolor": f"{colour}40", "edgecolor": colour},
                    medianprops=lines | {"linewidth": 1.6},
                    whiskerprops=lines,
                    capprops=lines,
                )
        for ax in line:
            ax.set_ylim(bottom=0)
    picture.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    picture.savefig(path, metadata={"Date": None}, facecolor="white")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=built / "release" / "ranway")
    parser.add_argument("--runs", type=int, default=5, choices=range(1, 11), metavar="N")
    parser.add_argument("--seconds", type=int, default=18)
    parser.add_argument("--target", default="20ms", help="what the modem is to hold (20ms, as `ranway backlog` has it)")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "backlog-cell.json")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "src" / "images" / "backlog.svg")
    parser.add_argument("--draw", action="store_true", help="measure nothing: table and picture of the last figures")
    parser.add_argument("--receive", help=argparse.SUPPRESS)
    parser.add_argument("--phone", help=argparse.SUPPRESS)
    parser.add_argument("--above", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.receive is not None:
        receive(arguments.receive)
    if arguments.phone is not None:
        phone(str(arguments.ranway), arguments.phone, arguments.seconds, arguments.above)
        return 0
    if not arguments.draw:
        if os.geteuid():
            print("this needs root", file=sys.stderr)
            return 2
        # In turns, so that what else the machine does meets all alike.
        runs: dict[str, list[dict[str, object]]] = {}
        for seed in range(1, arguments.runs + 1):
            for cell in CELLS:
                for control in CONTROLS:
                    for way in WAYS:
                        target = arguments.target if way != WAYS[0] else None
                        run = measure(arguments.ranway, cell, control, target, arguments.seconds, seed)
                        runs.setdefault(f"{cell}, {NAMES[control]}, {way}", []).append(run)
                        print(f"{seed}: {cell}, {control}, {way}: {run['mbps']:.2f} Mbit/s", file=sys.stderr)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        rows = {name: figures(of) for name, of in runs.items()}
        arguments.out.write_text(json.dumps(rows, indent=2) + "\n")
    rows = json.loads(arguments.out.read_text())
    table(rows)
    draw(rows, arguments.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
