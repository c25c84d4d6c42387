"""Prints the tables of `docs/src/remedies-findings.md`.

    for name in lte lte-uploads lte-quic lte-loss lte-fill lte-handover lte-handover-peps nr; do
        ranway run examples/remedies/$name.toml --out remedies/$name
    done
    python3 examples/remedies/findings.py remedies

It reads the results in that directory. Needs the Python package `polars`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean, median, stdev

import polars as pl

# When nine of ten downloads end in `lte-fill.toml`, and the end of the run, s.
EMPTY_S, END_S = 15, 35
# Student's t of a 95 % interval, by the number of runs.
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def table(heads: list[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table in Markdown."""
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * (len(heads) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def values(frame: pl.DataFrame, column: str) -> list[float]:
    """Returns the values of a column that are not missing."""
    return [float(value) for value in frame[column].drop_nulls()]


def mean(of: list[float]) -> float | None:
    """Returns the mean; `None` of nothing."""
    return fmean(of) if of else None


def shown(value: float | None, digits: int) -> str:
    """Formats a figure, or a dash if it is missing."""
    return "-" if value is None else f"{value:.{digits}f}"


def interval(runs: list[float | None], digits: int) -> str:
    """Formats the mean over runs with its 95 % interval, or a dash if a run has no value."""
    known = [run for run in runs if run is not None]
    if not known or len(known) < len(runs):
        return "-"
    if len(known) not in T95:
        return shown(fmean(known), digits)
    return f"{fmean(known):.{digits}f} ± {T95[len(known)] * stdev(known) / len(known) ** 0.5:.{digits}f}"


def middle(transfers: pl.DataFrame) -> float | None:
    """Returns the median completion time in seconds; `None` if it is longer than the run."""
    finished = values(transfers, "completion_s")
    times = finished + [float("inf")] * (len(transfers) - len(finished))
    found = median(times) if times else float("inf")
    return None if found == float("inf") else found


def jain(of: list[float]) -> float | None:
    """Returns Jain's index; `None` of fewer than two."""
    squares = sum(value**2 for value in of)
    return sum(of) ** 2 / (len(of) * squares) if len(of) > 1 and squares > 0 else None


class Results:
    """The tables of a run, with the swept values as columns."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.points = pl.DataFrame(json.loads((directory / "meta.json").read_text())["points"]).with_row_index("point")

    def read(self, name: str) -> pl.DataFrame:
        """Returns a table, joined with the points."""
        table = pl.read_parquet(self.directory / f"{name}.parquet").with_columns(pl.col("flow").cast(pl.String))
        return table.join(self.points, on="point")

    def swept(self, key: str) -> list[object]:
        """Returns the values of a swept key, in order."""
        return self.points[key].unique(maintain_order=True).to_list()


def row_of(flows: pl.DataFrame, transfers: pl.DataFrame, idle_ms: float, extra: list[str]) -> list[str]:
    """Returns the figures of a system at a point: means over UEs, and over runs with their 95 % intervals."""
    runs = flows.partition_by("run")

    def of(name: str, run: pl.DataFrame) -> pl.DataFrame:
        return run.filter(pl.col("flow").str.starts_with(name))

    def goodput(name: str) -> str:
        return interval([sum(values(of(name, run), "goodput_mbps")) for run in runs], 1)

    def queue_ms(name: str, column: str) -> str:
        delays = [mean(values(of(name, run), column)) for run in runs]
        return interval([None if delay is None else delay - idle_ms for delay in delays], 0)

    down = of("download", flows)
    shares = [jain(values(run, "goodput_mbps")) for run in down.partition_by("run")]
    sent, again = sum(values(down, "segments_sent")), sum(values(down, "retransmitted"))
    finished = len(values(transfers, "completion_s")) / len(transfers) if len(transfers) else None
    return [
        goodput("download"),
        shown(mean([share for share in shares if share is not None]), 2),
        queue_ms("download", "owd_p50_ms"),
        queue_ms("interactive", "owd_p50_ms"),
        queue_ms("interactive", "owd_p95_ms"),
        shown(middle(transfers), 2),
        shown(None if finished is None else 100 * finished, 0),
        shown(100 * again / sent if sent else None, 2),
        *(goodput(name) for name in extra),
    ]


def compare(results: Results, sweep: str, extra: list[str]) -> None:
    """Prints a row for each value of `sweep` and each system."""
    flows = results.read("flows")
    transfers = results.read("transfers").filter(pl.col("flow").str.starts_with("transfer"))
    delays = results.read("owds").filter(~pl.col("flow").str.starts_with("upload"))
    idle_ms = min(values(delays, "owd_ms"))
    rows = []
    for value in results.swept(sweep):
        for system in results.swept("system"):
            here = (pl.col("system") == system) & (pl.col(sweep) == value)
            rows.append([system, value, *row_of(flows.filter(here), transfers.filter(here), idle_ms, extra)])
    print(f"Delays are one-way, and above the idle path's {idle_ms:.0f} ms.\n")
    heads = ["downloads, Mbit/s", "Jain's index", "delay p50, ms", "interactive p50, ms", "p95, ms"]
    heads += ["500 kB, s", "finished, %", "retransmitted, %", *(f"{name}s, Mbit/s" for name in extra)]
    table(["system", sweep, *heads], rows)


def filled_s(run: pl.DataFrame) -> tuple[float | None, float]:
    """Returns the end of the first second in which a flow has 95 % of its mean in the last 5 s, from the moment when
    the others end, and that mean in Mbit/s.
    """
    full = fmean(values(run.filter(pl.col("t_s") > END_S - 5), "goodput_mbps"))
    for second in range(1, END_S - EMPTY_S + 1):
        end = EMPTY_S + second
        of = values(run.filter((pl.col("t_s") > end - 1) & (pl.col("t_s") <= end)), "goodput_mbps")
        if of and fmean(of) >= 0.95 * full:
            return second, full
    return None, full


def fill(results: Results) -> None:
    """Prints how long the remaining download takes to fill the cell, and what it then carries."""
    samples = results.read("samples").filter(pl.col("flow").str.starts_with("download"))
    rows = []
    for system in results.swept("system"):
        runs = samples.filter(pl.col("system") == system).partition_by("run")
        filled = [filled_s(run) for run in runs]
        rows.append([system, interval([time for time, _ in filled], 1), interval([full for _, full in filled], 1)])
    table(["system", "s until 95 % of the rest", "download in the last 5 s, Mbit/s"], rows)


def main() -> None:
    """Reads the results and prints a table of each experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where the results are")
    directory: Path = parser.parse_args().directory
    experiments: list[tuple[str, str, list[str]]] = [
        ("lte", "ues", []),
        ("lte-uploads", "ues", ["upload"]),
        ("lte-quic", "ues", ["quic"]),
        ("nr", "ues", []),
        ("lte-handover", "ues", []),
        ("lte-handover-peps", "pep_at", []),
        ("lte-loss", "loss", []),
    ]
    for name, sweep, extra in experiments:
        if (directory / name).exists():
            print(f"## {name}\n")
            compare(Results(directory / name), sweep, extra)
    if (directory / "lte-fill").exists():
        print("## lte-fill\n")
        fill(Results(directory / "lte-fill"))


if __name__ == "__main__":
    main()
