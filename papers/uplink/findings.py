"""Prints the figures of `docs/src/uplink-findings.md` that `ranway reproduce uplink` does not print as rows.

    ranway reproduce uplink
    python3 papers/uplink/findings.py ranway-out/reproduce

It reads the tables in that directory. `--sampling` instead runs `kernel-4-9` twice for 24 minutes, with samples each
200 ms and each 10 ms, and compares times, memory and rows; it needs `ranway` in the path, or its place in `--ranway`.
`--grid` instead prints the grid of modems' buffers and losses that `ranway reproduce uplink@loss --grid` ran.
Needs the Python package `polars`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import polars as pl

HERE = Path(__file__).resolve().parent
CCS = {"cubic": "CUBIC", "new-reno": "NewReno", "bbr": "BBR"}
NODES = {"node": "still", "bus": "bus"}
KERNELS = {"kernel-4-9": "4.9", "current": "current"}
# As in crates/reproduce/src/study/quantity.rs.
STARVING_SHARE, STARVING_S = 0.25, 5
MODEM_BYTES = 6_000_000


def mean(values: Iterable[float]) -> float:
    """The mean; NaN of nothing."""
    values = list(values)
    return statistics.fmean(values) if values else float("nan")


def median(values: Iterable[float]) -> float:
    """The median; NaN of nothing."""
    values = list(values)
    return statistics.median(values) if values else float("nan")


def jain(values: Iterable[float]) -> float:
    values = list(values)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares > 0 else float("nan")


def table(heads: list[str], rows: Iterable[Iterable[object]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|" + " --- |" * len(heads))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


class Test:
    """The flows of a test and, while the application sends, their samples: one list of rows for each flow."""

    def __init__(self, flows: list[dict], samples: dict[int, list[dict]]) -> None:
        self.flows = flows
        self.samples = [samples.get(flow["conn"], []) for flow in flows]
        self.group = flows[0]["flow"].rstrip("0123456789").rstrip("-")

    def sum(self, column: str) -> float:
        return sum(flow[column] or 0 for flow in self.flows)

    def of_flows(self, column: str) -> list[float]:
        return [flow[column] for flow in self.flows if flow[column] is not None]

    def retransmitted(self) -> float:
        return 100 * self.sum("retransmitted") / self.sum("segments_sent")

    def rtt(self) -> float:
        return mean(self.of_flows("rtt_mean_ms"))

    def jain(self) -> float:
        return jain(self.of_flows("goodput_mbps"))

    def moments(self) -> Iterator[tuple[dict, ...]]:
        return zip(*self.samples, strict=False)

    def start(self) -> float:
        return min(rows[0]["t_s"] for rows in self.samples if rows)

    def after(self, t_s: float) -> float:
        return t_s - self.flows[0]["start_s"]

    def starves(self) -> bool:
        moments = list(self.moments())
        if len(moments) < 2:
            return False
        each = max(1, round(1 / (moments[1][0]["t_s"] - moments[0][0]["t_s"])))
        since = [0] * len(self.flows)
        for at in range(0, len(moments) - each + 1, each):
            got = [mean(moment[i]["goodput_mbps"] for moment in moments[at : at + each]) for i in range(len(since))]
            share = sum(got) / len(got)
            if share == 0:
                continue
            since = [n + 1 if one < STARVING_SHARE * share else 0 for n, one in zip(since, got, strict=True)]
            if max(since) >= STARVING_S:
                return True
        return False

    def most_in_flight(self) -> float:
        return max(sum(sample["in_flight_bytes"] or 0 for sample in moment) for moment in self.moments())

    def jain_between(self, since: float, until: float) -> float:
        inside = [
            [sample["goodput_mbps"] for sample in rows if since < self.after(sample["t_s"]) <= until]
            for rows in self.samples
        ]
        return jain(sum(rows) for rows in inside)

    def rtt_between(self, since: float, until: float) -> float:
        rtts = [
            sample["rtt_ms"]
            for rows in self.samples
            for sample in rows
            if sample["rtt_ms"] is not None and since < self.after(sample["t_s"]) <= until
        ]
        return mean(rtts)

    def firsts(self, holds: Callable[[dict], bool]) -> list[dict]:
        """The first sample of each flow of which `holds` is true."""
        found = [next((row for row in rows if holds(row)), None) for rows in self.samples]
        return [row for row in found if row]


class Results:
    """The tests of an experiment, by (point, run), and where its bus was."""

    def __init__(self, folder: Path) -> None:
        self.points = json.loads((folder / "meta.json").read_text())["points"]
        flows = pl.read_parquet(folder / "flows.parquet").filter(pl.col("transport") == "tcp")
        names = flows["flow"].unique().to_list()
        columns = ["point", "run", "flow", "conn", "t_s", "goodput_mbps", "in_flight_bytes", "srtt_ms", "rtt_ms"]
        columns += ["rto_ms", "cwnd_bytes", "ssthresh_bytes", "limit", "state"]
        samples = (
            pl.scan_parquet(folder / "samples.parquet")
            .select(columns)
            .filter(pl.col("flow").is_in(names), ~pl.col("limit").is_in(["app", "idle"]))
            .collect()
        )
        of_test: dict[tuple, dict[int, list[dict]]] = {}
        for key, frame in samples.group_by(["point", "run", "flow", "conn"], maintain_order=True):
            rows = frame.sort("t_s").drop("point", "run", "flow", "conn").to_dicts()
            of_test.setdefault(key[:3], {})[key[3]] = rows
        self.tests: list[tuple[int, int, Test]] = []
        for key, frame in flows.group_by(["point", "run", "flow"], maintain_order=True):
            self.tests.append((key[0], key[1], Test(frame.sort("conn").to_dicts(), of_test.get(key, {}))))
        columns = ["point", "run", "ue", "t_s", "cell", "ul_queue_bytes"]
        radio = pl.read_parquet(folder / "radio.parquet", columns=columns)
        radio = radio.filter(pl.col("ue") == "bus").sort("point", "run", "t_s")
        self.radio = dict(radio.group_by(["point", "run"], maintain_order=True))

    def of(self, group: str, point: int = 0) -> list[Test]:
        return [test for at, _, test in self.tests if at == point and test.group == group]

    def in_forest(self, point: int, run: int, t_s: float) -> bool:
        frame = self.radio[(point, run)]
        at = min(frame["t_s"].search_sorted(t_s), frame.height - 1)
        return str(frame["cell"][at]).startswith("forest")

    def fills_modem(self, point: int, run: int, test: Test) -> bool:
        frame = self.radio[(point, run)]
        inside = frame.filter(pl.col("t_s").is_between(test.start(), test.flows[0]["end_s"] or test.start() + 60))
        return (inside["ul_queue_bytes"].max() or 0) >= 0.99 * MODEM_BYTES


def item(*parts: str) -> None:
    print("- " + " ".join(parts))


def percent(flags: Iterable[bool]) -> float:
    flags = list(flags)
    return 100 * sum(flags) / len(flags) if flags else float("nan")


def modem(results: Results) -> None:
    print("## The modem's buffer (`uplink/modem`)\n")
    rows = []
    for point, values in enumerate(results.points):
        cubic, bbr = results.of("bus-cubic", point), results.of("bus-bbr", point)
        rtts = [test.rtt() for test in cubic]
        rows.append(
            [
                values["modem"],
                f"{percent(rtt > 2500 for rtt in rtts):.0f} %",
                f"{max(rtt for test in cubic for rtt in test.of_flows('rtt_mean_ms')) / 1e3:.1f} s",
                f"{median(rtts) / 1e3:.2f} s",
                f"{mean(test.retransmitted() for test in bbr):.2f}",
                f"{mean(test.jain() for test in bbr):.3f}",
                f"{mean(test.jain() for test in cubic):.3f}",
                f"{percent(test.starves() for test in bbr):.0f}",
            ]
        )
    heads = ["buffer", "CUBIC: tests above 2.5 s", "largest mean RTT of a flow", "median RTT of a test"]
    table([*heads, "BBR: retransmitted, %", "Jain's index", "CUBIC's", "BBR: tests with a starving flow, %"], rows)


def medians(tests: list[Test]) -> list[str]:
    """Goodput, RTT and data in flight as medians, retransmissions, fairness and starvation as means."""
    return [
        f"{median(test.sum('goodput_mbps') for test in tests):.1f}",
        f"{median(test.rtt() for test in tests):.0f}",
        f"{median(kb / 1e3 for test in tests for kb in test.of_flows('mean_in_flight_bytes')):.0f}",
        f"{mean(test.retransmitted() for test in tests):.2f}",
        f"{mean(test.jain() for test in tests):.3f}",
        f"{percent(test.starves() for test in tests):.0f}",
    ]


HEADS = ["goodput, Mbit/s", "RTT, ms", "in flight of a flow, kB", "retransmitted, %", "Jain's index"]
HEADS += ["tests with a starving flow, %"]


def both_nodes(name: str, results: Results) -> list[list[str]]:
    names = [(node, cc) for node in NODES for cc in CCS]
    return [[NODES[node], CCS[cc], KERNELS[name], *medians(results.of(f"{node}-{cc}"))] for node, cc in names]


def switches(results: Results, ccs: list[str]) -> None:
    def setting(values: dict) -> str:
        if "cached" in values:
            return "cached threshold" if values["cached"] else "none cached"
        return ("paced" if values["paced"] else "unpaced") + (
            ", room for aggregation" if values["linux"] == "6.1" else ""
        )

    rows = [
        [NODES[node], CCS[cc], setting(values), *medians(results.of(f"{node}-{cc}", point))]
        for node in NODES
        for cc in ccs
        for point, values in enumerate(results.points)
    ]
    table(["node", "congestion control", "switch", *HEADS], rows)


def first_loss(tests: list[Test]) -> float:
    """The median time until the first loss of a test, s; infinite for tests without any."""
    times = []
    for test in tests:
        found = test.firsts(lambda row: row["state"] in ("recovery", "loss"))
        times.append(min((test.after(row["t_s"]) for row in found), default=float("inf")))
    return median(times)


def slow_start(tests: list[Test]) -> tuple[float, float]:
    """Medians over flows: when slow start ends, s, and the window then, MB."""
    ends = [(test, row) for test in tests for row in test.firsts(lambda row: row["state"] != "slow-start")]
    return median(test.after(row["t_s"]) for test, row in ends), median(row["cwnd_bytes"] for _, row in ends) / 1e6


def thresholds(tests: list[Test]) -> float:
    """The median over tests of the largest over the smallest threshold of the flows after their first loss."""
    ratios = []
    for test in tests:
        found = [row["ssthresh_bytes"] for row in test.firsts(lambda row: row["state"] == "recovery")]
        if len(found) == len(test.flows) and all(found):
            ratios.append(max(found) / min(found))
    return median(ratios)


def causes(name: str, results: Results) -> None:
    print(f"## Causes, Linux {KERNELS[name]}\n")
    still = {cc: results.of(f"node-{cc}") for cc in CCS}
    bus = {cc: results.of(f"bus-{cc}") for cc in CCS}
    clean = [flow["lost_packets"] == 0 for test in still["new-reno"] for flow in test.flows]
    item(f"NewReno, still: {sum(clean)} of {len(clean)} flows without a lost packet")
    for cc in ["new-reno", "cubic"]:
        tests = still[cc]
        at, window = slow_start(tests)
        halves = [median(test.rtt_between(*half) for test in tests) / 1e3 for half in [(0, 30), (30, 60)]]
        item(
            f"{CCS[cc]}, still: slow start ends after {at:.1f} s with a window of {window:.2f} MB;",
            f"the first loss of a test comes after {first_loss(tests):.0f} s;",
            f"most in flight {max(test.most_in_flight() for test in tests) / 1e6:.1f} MB;",
            f"RTT {halves[0]:.1f} s in the first half and {halves[1]:.1f} s in the second;",
            f"thresholds after the first loss differ by a factor of {thresholds(tests):.1f}",
        )
    for node, tests in [("still", still["bbr"]), ("bus", bus["bbr"])]:
        tens = [mean(test.jain_between(ten + 1, ten + 10) for test in tests) for ten in range(0, 60, 10)]
        item(f"BBR, {node}: Jain's index in spans of nine seconds {', '.join(f'{index:.2f}' for index in tens)}")
    unfair = [test.starves() for tests in (still, bus) for test in tests["bbr"]]
    filled = [results.fills_modem(point, run, test) for point, run, test in results.tests if test.group == "bus-bbr"]
    flying = median(sum(test.of_flows("mean_in_flight_bytes")) for test in bus["bbr"])
    item(
        f"BBR starves a flow in {sum(unfair)} of {len(unfair)} tests. On the bus, a test retransmits at most",
        f"{max(test.retransmitted() for test in bus['bbr']):.1f} %, has {flying / 1e6:.2f} MB in flight in the median,",
        f"and {max(test.most_in_flight() for test in bus['bbr']) / 1e6:.1f} MB at most;",
        f"{sum(filled)} of {len(filled)} tests fill the modem",
    )
    goodputs = [test.sum("goodput_mbps") for tests in bus.values() for test in tests]
    item(f"bus: least goodput of a test {min(goodputs):.1f} Mbit/s")
    slow = [
        results.in_forest(point, run, test.start() + 30)
        for point, run, test in results.tests
        if test.group == "bus-cubic" and test.rtt() > 2500
    ]
    item(f"CUBIC, bus: {len(slow)} tests with a mean RTT above 2.5 s, {sum(slow)} of them in the forest")
    for cc in CCS:
        margins = sorted(
            ((row["rto_ms"] - row["srtt_ms"]) / 1e3, point, run, row["t_s"])
            for point, run, test in results.tests
            if test.group == f"bus-{cc}"
            for rows in test.samples
            for row in rows
            if row["rto_ms"] is not None and row["srtt_ms"] is not None
        )
        beyond = margins[-max(1, len(margins) // 100) :]
        forest = percent(results.in_forest(point, run, t_s) for _, point, run, t_s in beyond)
        item(
            f"{CCS[cc]}, bus: RTO less smoothed RTT {beyond[0][0]:.1f} s at the 99th percentile,",
            f"{forest:.0f} % of the samples beyond from the forest",
        )
    print()


def close_up(folder: Path) -> None:
    print("## Close-up (`uplink/close-up`)\n")
    results = Results(folder)
    begins = []
    for rows in results.of("node-bbr")[0].samples:
        drains = [b["t_s"] for a, b in pairwise(rows) if b["state"] == "probe-rtt" and a["state"] != "probe-rtt"]
        begins.append(drains)
    gaps = [b - a for times in begins for a, b in pairwise(times)]
    spread = max(max(at) - min(at) for at in zip(*begins, strict=False))
    item(f"BBR, still: drains {min(gaps):.2f} to {max(gaps):.2f} s apart, in all flows within {spread:.2f} s")
    mobility = pl.read_parquet(folder / "mobility.parquet").filter(pl.col("ue") == "bus", pl.col("event") == "left")
    acks = (
        pl.scan_parquet(folder / "events.parquet")
        .filter(pl.col("kind") == "receive", pl.col("towards") == "from")
        .select("flow", "t_ns")
        .collect()
    )
    for cc in CCS:
        test = results.of(f"bus-{cc}")[0]
        start, end = test.start(), test.start() + 12
        left = mobility.filter(pl.col("t_s").is_between(start, end))["t_s"].to_list()
        times = [t / 1e9 for t in acks.filter(pl.col("flow") == f"bus-{cc}")["t_ns"].sort().to_list()]
        times = [t for t in times if start + 0.5 <= t <= end]
        gaps = [(b - a, a) for a, b in pairwise(times)]
        near = [max(((gap, at) for gap, at in gaps if abs(at - t) <= 1), default=(0.0, t)) for t in left]
        item(
            f"{CCS[cc]}, bus: cells left after {', '.join(f'{t - start:.2f} s' for t in left)}; longest gap without an",
            f"acknowledgement {max(gaps)[0] * 1e3:.0f} ms from {max(gaps)[1] - start:.2f} s, within 1 s of leaving",
            ", ".join(f"{gap * 1e3:.0f} ms from {at - start:.2f} s" for gap, at in near) + "; smoothed RTT",
            ", ".join(f"{mean_srtt(test, t - 1, t):.0f} then {mean_srtt(test, t, t + 1):.0f} ms" for t in left),
            "in the seconds before and after",
        )
    print()


def mean_srtt(test: Test, since: float, until: float) -> float:
    inside = [
        row["srtt_ms"]
        for rows in test.samples
        for row in rows
        if since < row["t_s"] <= until and row["srtt_ms"] is not None
    ]
    return mean(inside)


def sampling(ranway: str) -> None:
    """Runs 24 minutes of the study with both intervals, and compares them."""
    print("## Sampling\n")
    rows: dict[str, list[dict]] = {}
    costs = []
    with tempfile.TemporaryDirectory() as scratch:
        for interval in ["200 ms", "10 ms"]:
            name = "each-" + interval.replace(" ", "-")
            folder = Path(scratch) / name
            shutil.copytree(HERE, folder)
            shorten(folder / "kernel-4-9.toml", interval)
            command = [ranway, "reproduce", f"{folder}/kernel-4-9", "--json", "--jobs", "1", "--out", f"{scratch}/out"]
            with (Path(scratch) / f"{name}.json").open("w+") as output:
                process = subprocess.Popen(command, stdout=output)
                _, status, usage = os.wait4(process.pid, 0)
                if status != 0:
                    raise SystemExit(f"{' '.join(command)}: exit status {os.waitstatus_to_exitcode(status)}")
                output.seek(0)
                rows[interval] = json.load(output)
            costs.append((f"{usage.ru_utime + usage.ru_stime:.0f} s", f"{usage.ru_maxrss / 1e6:.2f} GB"))
    heads = [f"each {interval}" for interval in rows]
    times, memory = zip(*costs, strict=True)
    table(["", *heads], [["processor time", *times], ["memory", *memory]])
    both = list(zip(*rows.values(), strict=True))
    differ = [(a, b) for a, b in both if figures(a) != figures(b)]
    alike = sum(figures(a)[:2] == figures(b)[:2] for a, b in differ)
    print(f"{len(differ)} of {len(both)} rows differ, {alike} of them in their intervals alone:\n")
    cells = [[a["variant"], a["parameter"], a["metric"], shown(a), shown(b)] for a, b in differ]
    table(["variant", "parameter", "metric", *heads], cells)


def figures(row: dict) -> tuple[object, str, float | None]:
    return row["measured"], row["verdict"], row["ci"]


def shown(row: dict) -> str:
    measured = row["measured"]
    return (f"{measured:.3f}" if isinstance(measured, float) else str(measured)) + f", {row['verdict']}"


def shorten(scenario: Path, interval: str) -> None:
    """Makes it one run of five tests of each congestion control at each node, sampled at this interval."""
    text = scenario.read_text()
    text = text.replace("\n[parameters]\n", '\nduration = "1440 s"\nruns = 1\n\n[parameters]\ntests = 5\n', 1)
    scenario.write_text(f'{text}\n[record]\nsamples = "{interval}"\n')


# The rows that the question of buffer and loss is about: variant, parameter, beginning of the metric; the head.
GRID_ROWS = {
    ("cubic", "mobile", "4: tests with"): "CUBIC: tests above 2.5 s, %",
    ("cubic", "mobile", "10: largest mean RTT"): "largest mean RTT of a flow, s",
    ("bbr", "both", "18: retransmitted"): "BBR: retransmitted, %",
    ("bbr - cubic", "mobile", "16: "): "BBR's less CUBIC's index on the bus",
    ("bbr", "mobile", "17: "): "BBR: tests with a starving flow on the bus, %",
}


def grid(out: Path) -> None:
    """Prints the table of `ranway reproduce uplink@loss --grid`, whose `grid.json` is in this directory."""
    source = out / "uplink@loss" / "grid.json"
    if not source.exists():
        raise SystemExit(f"{source}: no such file; run `ranway reproduce uplink@loss --grid --out {out}` first")
    cells = json.loads(source.read_text())
    rows = []
    for cell in cells:
        held = sum(row["verdict"] == "held" for row in cell["rows"])
        numbers = []
        for (variant, parameter, metric), head in GRID_ROWS.items():
            fits = [r for r in cell["rows"] if (r["variant"], r["parameter"]) == (variant, parameter)]
            [value] = [row["measured"] for row in fits if row["metric"].startswith(metric)]
            value = value / 1e3 if head.endswith(", s") else value
            numbers.append(f"{value:.2f}")
        rows.append([*(choice for _, choice in cell["setting"]), *numbers, f"{held} of {len(cell['rows'])}"])
    table([*(what for what, _ in cells[0]["setting"]), *GRID_ROWS.values(), "rows held"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path("ranway-out/reproduce")
    parser.add_argument("out", nargs="?", type=Path, default=default, help="where `ranway reproduce` wrote its results")
    parser.add_argument("--sampling", action="store_true", help="compare samples each 200 ms and each 10 ms instead")
    parser.add_argument("--grid", action="store_true", help="print the grid of buffers and losses instead")
    parser.add_argument("--ranway", default="ranway", help="the program, for --sampling")
    args = parser.parse_args()
    if args.grid:
        grid(args.out)
        return
    if args.sampling:
        sampling(args.ranway)
        return
    uplink = args.out / "uplink"
    there = [
        name for name in [*KERNELS, "modem", "pacing", "cache", "close-up"] if (uplink / name / "meta.json").exists()
    ]
    if not there:
        raise SystemExit(f"{uplink}: no results; run `ranway reproduce uplink --out {args.out}` first")
    if "modem" in there:
        modem(Results(uplink / "modem"))
    if "pacing" in there:
        print("## One switch at a time: BBR (`uplink/pacing`)\n")
        switches(Results(uplink / "pacing"), ["bbr"])
    if "cache" in there:
        print("## One switch at a time: cached thresholds (`uplink/cache`)\n")
        switches(Results(uplink / "cache"), ["new-reno", "cubic"])
    kernels = []
    for name in KERNELS:
        if name in there:
            results = Results(uplink / name)
            causes(name, results)
            kernels.append(both_nodes(name, results))
    if kernels:
        print("## Both kernels\n")
        table(
            ["node", "congestion control", "kernel", *HEADS],
            (row for rows in zip(*kernels, strict=True) for row in rows),
        )
    if "close-up" in there:
        close_up(uplink / "close-up")


if __name__ == "__main__":
    main()
