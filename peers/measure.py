"""What the sampling of `ranway measure` costs, beside iperf3 in the same run.

Needs iperf3, root for the pair of namespaces, and a built `ranway` (`cargo build --release -p ranway`). Client and
server of each contender run on one processor (0), over loopback and over a veth pair, for uploads and for downloads
(`iperf3 -R`). They take turns, so that what else the machine does meets all alike:

- `iperf3`: its client and server;
- `ranway`: `ranway measure`, each flow sampled every 10 ms, with probes;
- `bare`: the same with a sample every 10 s and hardly any probe;
- `tls`: `ranway` over TLS, which iperf3 does not have.

The columns are Gbit/s that arrive at the receiver (median of the rounds), the ratio of `ranway` to `iperf3` and to
`bare`, and that of `tls` to `ranway` (medians of the rounds' ratios, since the machine's speed differs between rounds).
`target/bench/measure.json` holds the figures. Timings are reported; no test depends on them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPACES = ("ranway-bench-a", "ranway-bench-b")
PORT = {"iperf3": 5201, "ranway": 5231, "bare": 5231, "tls": 5231}


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inside(space: str | None) -> list[str]:
    pinned = ["taskset", "-c", "0"]
    return ["ip", "netns", "exec", space, *pinned] if space else pinned


@contextmanager
def veth() -> Iterator[None]:
    """Two namespaces with a veth pair between them."""
    try:
        for number, space in enumerate(SPACES):
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
            if number:
                run("ip", "link", "add", "v0", "netns", SPACES[0], "type", "veth", "peer", "v1", "netns", SPACES[1])
        for number, space in enumerate(SPACES):
            run("ip", "-n", space, "address", "add", f"10.9.9.{number + 1}/24", "dev", f"v{number}")
            run("ip", "-n", space, "link", "set", f"v{number}", "up")
        yield
    finally:
        for space in SPACES:
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)


@contextmanager
def server(name: str, ranway: Path, space: str | None, address: str) -> Iterator[None]:
    command: list[str | Path] = ["iperf3", "-s", "-B", address]
    if name != "iperf3":
        command = [ranway, "measure", "serve", "--quiet", "--open", "--listen", f"{address}:{PORT[name]}"]
        command += ["--self-signed"] if name == "tls" else []
    with subprocess.Popen([*inside(space), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(0.5)
            yield
        finally:
            process.terminate()
            process.wait()


def client(
    name: str, arguments: argparse.Namespace, space: str | None, address: str, direction: str, flows: int
) -> float:
    """Gbit/s of an upload (`up`) or a download (`down`) at its receiver."""
    seconds = arguments.seconds
    if name == "iperf3":
        command = ["iperf3", "-c", address, "-t", str(seconds), "-P", str(flows), "-J"]
        text = run(*inside(space), *command, *(["-R"] if direction == "down" else []))
        return json.loads(text)["end"]["sum_received"]["bits_per_second"] * 1e-9
    options = ["-d", direction, "-f", str(flows), "-t", f"{seconds} s", "--idle", "500 ms", "--json"]
    if name == "bare":
        options += ["--interval", "10 s", "--probe-interval", "10 s", "--hops", "0"]
    if name == "tls":
        options += ["--tls", "--insecure"]
    out = ROOT / "target" / "bench" / "measure"
    where = f"{address}:{PORT[name]}"
    text = run(*inside(space), arguments.ranway, "measure", where, *options, "-o", out)
    return json.loads(text)["loads"][0]["directions"][0]["mbps"] * 1e-3


def ratio(ours: list[float], others: list[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(one / other for one, other in zip(ours, others, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--ranway", type=Path, default=target / "release" / "ranway")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "measure.json")
    arguments = parser.parse_args()
    if os.geteuid():
        print("this needs root", file=sys.stderr)
        return 2
    # What was started and created goes away then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    found: dict[str, dict[str, list[float]]] = {}
    places = {"loopback": (None, None, "127.0.0.1"), "veth": (*SPACES, "10.9.9.2")}
    with veth():
        for _ in range(arguments.rounds):
            for place, (near, far, address) in places.items():
                for direction, title in (("up", "upload"), ("down", "download")):
                    for flows in (1, 8):
                        for name in PORT:
                            with server(name, arguments.ranway, far, address):
                                rate = client(name, arguments, near, address, direction, flows)
                            case = f"{title}, {place}, {flows} flow{'s' * (flows > 1)}"
                            found.setdefault(case, {}).setdefault(name, []).append(rate)
    heads = "  ranway/iperf3  ranway/bare  tls/ranway"
    print(f"{'Gbit/s':30}" + "".join(f"{name:>10}" for name in PORT) + heads)
    medians = {case: {name: statistics.median(rates) for name, rates in of.items()} for case, of in found.items()}
    for case, of in medians.items():
        pairs = (("ranway", "iperf3"), ("ranway", "bare"), ("tls", "ranway"))
        to_iperf3, to_bare, of_tls = (ratio(found[case][ours], found[case][other]) for ours, other in pairs)
        ratios = f"{to_iperf3:15.2f}{to_bare:13.3f}{of_tls:12.2f}"
        print(f"{case:30}" + "".join(f"{rate:10.2f}" for rate in of.values()) + ratios)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"medians": medians, "all": found}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
