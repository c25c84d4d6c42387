"""What came out of some runs."""

import io
import json
import os
import tempfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import polars as pl

from ranway import _ranway, _summary
from ranway._jobs import Job

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Results:
    """The results of some runs: tables, a summary, a report. `run`, `merge` and `read` make them.

    The tables are Polars DataFrames. A row belongs to a `point` of the sweep and a `run` of that point, both numbered
    from 0; after these two come the values that were swept, a column for each, named by its key (`loss`,
    `dumbbell.queue`). Where the table has a column of that name, as `cc` in `flows`, the swept one is `sweep.cc`.

    Two results are equal if the same was run and the same came out, however long it took.
    """

    def __init__(self, inner: _ranway.Results) -> None:
        self._inner = inner
        self._tables: dict[str, pl.DataFrame] = {}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Means over the runs with 95 % confidence intervals (`ci95`: half its width), as `summary.json` has them."""
        summary: dict[str, Any] = json.loads(self._inner.summary())
        return summary

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What was run: title, version, scenario with every default, points, runs, seed."""
        meta: dict[str, Any] = json.loads(self._inner.meta())
        return meta

    @cached_property
    def timing(self) -> dict[str, Any]:
        """How long it took: wall-clock and processor seconds, simulated seconds, events, packets, threads."""
        timing: dict[str, Any] = json.loads(self._inner.timing())
        return timing

    @property
    def partial(self) -> dict[str, int] | None:
        """Of results of some jobs alone, or of an interrupted `ranway run`: how many runs `finished`, `of` how many.

        None if the results are complete.
        """
        partial = self.meta.get("partial")
        return None if partial is None else {key: partial[key] for key in ("finished", "of")}

    @property
    def jobs(self) -> list[Job]:
        """The jobs that these are the results of, ordered by point and run."""
        return [Job(point, run) for point, run in self._inner.jobs()]

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep: for each, what was swept and its value there. Without a sweep one that is empty."""
        points: list[dict[str, Any]] = self.meta["points"]
        return points

    @property
    def flows(self) -> pl.DataFrame:
        """One row a copy of a flow and run: what it achieved and what held it back."""
        return self.table("flows")

    @property
    def samples(self) -> pl.DataFrame:
        """One row a copy of a flow and sampling moment: windows, rates, round-trip times."""
        return self.table("samples")

    @property
    def rtts(self) -> pl.DataFrame:
        """The distribution of the round-trip time of each copy of a flow, a row a bucket."""
        return self.table("rtts")

    @property
    def owds(self) -> pl.DataFrame:
        """The distribution of the one-way delay of each copy of a flow over its data packets, a row a bucket."""
        return self.table("owds")

    @property
    def queues(self) -> pl.DataFrame:
        """One row a queue and sampling moment."""
        return self.table("queues")

    @property
    def links(self) -> pl.DataFrame:
        """One row a link and run: its totals."""
        return self.table("links")

    @property
    def events(self) -> pl.DataFrame:
        """One row for each thing that happened to a packet, if the scenario records them (`record.events`)."""
        return self.table("events")

    @property
    def transfers(self) -> pl.DataFrame:
        """One row a transfer within a flow: an object of a page, a page, a burst."""
        return self.table("transfers")

    @property
    def ues(self) -> pl.DataFrame:
        """One row a UE, direction and run of an LTE network: its share of the air, and where its packets' time went."""
        return self.table("ues")

    @property
    def radio(self) -> pl.DataFrame:
        """One row a UE and sampling moment: what it measures, what it was given, what waits."""
        return self.table("radio")

    @property
    def mobility(self) -> pl.DataFrame:
        """One row for each step of a handover and each lost link."""
        return self.table("mobility")

    @property
    def transmissions(self) -> pl.DataFrame:
        """One row for each transmission of a transport block, if the scenario records them (`record.radio`)."""
        return self.table("transmissions")

    @property
    def peps(self) -> pl.DataFrame:
        """One row a lightweight PEP: what passed it and what it reported."""
        return self.table("peps")

    @overload
    def table(self, name: str, as_: Literal["polars"] = "polars") -> pl.DataFrame: ...
    @overload
    def table(self, name: str, as_: Literal["pandas"]) -> "pandas.DataFrame": ...
    @overload
    def table(self, name: str, as_: Literal["arrow"]) -> "pyarrow.Table": ...
    def table(self, name: str, as_: str = "polars") -> Any:
        """A table by name as a Polars DataFrame, a pandas DataFrame or an Arrow table.

        The latter two need pandas and PyArrow: `pip install ranway[pandas]`.
        """
        if name not in _ranway.TABLES:
            raise ValueError(f"there is no table {name!r}; there are {', '.join(_ranway.TABLES)}")
        if name not in self._tables:
            frame = pl.read_parquet(io.BytesIO(self._inner.parquet(name)))
            self._tables[name] = _with_swept(frame, self.points)
        frame = self._tables[name]
        if as_ == "polars":
            return frame
        if as_ not in ("pandas", "arrow"):
            raise ValueError(f"as_={as_!r}: should be 'polars', 'pandas' or 'arrow'")
        try:
            return frame.to_pandas() if as_ == "pandas" else frame.to_arrow()
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{error.name} is missing: pip install ranway[pandas]", name=error.name) from None

    def summary_frame(self) -> pl.DataFrame:
        """The figures of each flow in each run: a row a point, run and flow, and a column a swept key.

        The copies of a flow count together, as in `summary`: rates are over the time in which any of them was measured,
        quantiles of round-trip times (`rtt_p50_ms`), one-way delays (`owd_p50_ms`) and completion times
        (`completion_p50_s`) over all their samples. `loss` is the share of the packets sent that were lost, of UDP;
        `retransmission_rate` that of segments sent again, of TCP. A swept key with the name of a figure, as `loss`,
        has the column `sweep.loss`.
        """
        keys = list(dict.fromkeys(key for point in self.points for key in point))
        swept = [f"sweep.{key}" if f"sweep.{key}" in self.flows.columns else key for key in keys]
        return _summary.tidy(self.flows, self.rtts, self.owds, self.transfers, swept)

    def write(self, dir: str | os.PathLike[str]) -> None:
        """Writes tables, summary and report to the directory `dir`, whole or not at all.

        Earlier results there are replaced; a directory with anything else in it is refused (`RanwayError`).
        """
        self._inner.write(dir)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report, one HTML page that opens without a network, to the file `path`, whole or not at all."""
        path = Path(path)
        page = self._inner.report()
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", encoding="utf-8", delete=False) as file:
            try:
                file.write(page)
                file.close()
                # Temporary files are for their owner alone; a report is as readable as any new file.
                umask = os.umask(0)
                os.umask(umask)
                os.chmod(file.name, 0o666 & ~umask)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._inner.files(),)

    def __eq__(self, other: object) -> bool:
        return self._inner == other._inner if isinstance(other, Results) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        meta = self.meta
        facts = [
            ("points", str(len(self.points))),
            ("runs each", str(meta["runs"])),
            ("seed", str(meta["seed"])),
            ("Ranway", meta["version"]),
        ]
        lateness = self.timing.get("lateness")
        if lateness is not None and not lateness["valid"]:
            facts.insert(0, ("NOT VALID", "this machine was too slow for the emulation"))
        return _summary.results_html(meta["title"] or "Results", facts, self.summary_frame())

    def __repr__(self) -> str:
        meta = self.meta
        whole = f"{len(self.points)} points x {meta['runs']} runs, seed {meta['seed']}"
        partial = "" if self.partial is None else f", {self.partial['finished']} of {self.partial['of']} jobs"
        return f"<Results of {meta['title']!r}: {whole}{partial}>"


def read(dir: str | os.PathLike[str]) -> Results:
    """Reads the results in the directory `dir`, which `ranway run`, `run(out=...)` or `Results.write` wrote."""
    return Results(_ranway.Results.read(dir))


def merge(results: Iterable[Results]) -> Results:
    """Puts the results of disjoint lists of jobs of a scenario together.

    The results may come in any order and from any processes. The merged ones are those of a single run of all jobs, and
    `Results.write` makes the same files of them, but for the timing, which is that of one part after the other.

    Raises `RanwayError` if jobs are missing or are in several of the results, which it names, or if the results are of
    different scenarios.
    """
    return Results(_ranway.merge([part._inner for part in results]))


def _restore(files: dict[str, bytes]) -> Results:
    """Results from another process."""
    return Results(_ranway.Results.from_files(files))


def _with_swept(frame: pl.DataFrame, points: list[dict[str, Any]]) -> pl.DataFrame:
    """The table with the values that were swept after `point` and `run`."""
    keys = list(dict.fromkeys(key for point in points for key in point))
    if not keys:
        return frame
    columns = [
        _column(f"sweep.{key}" if key in frame.columns else key, [point.get(key) for point in points]).gather(
            frame["point"]
        )
        for key in keys
    ]
    return pl.DataFrame([*frame[:, :2], *columns, *frame[:, 2:]])


def _column(name: str, values: list[Any]) -> pl.Series:
    """Integers, numbers or truth values if all are, else texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values])
    if len(kinds) > 1:
        return pl.Series(name, [None if value is None else str(value) for value in values])
    return pl.Series(name, values)
