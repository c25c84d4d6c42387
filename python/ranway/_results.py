"""The results of runs."""

import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
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
    """The results of runs: tables, a summary, a report. `run` and `read` create them.

    The tables are Polars DataFrames. A row belongs to a `point` of the sweep and a `run` of that point, both numbered
    from 0; after these two come the values that were swept, a column for each, named by its key (`loss`,
    `dumbbell.queue`). If the table has a column of that name, such as `cc` in `flows`, the swept one is `sweep.cc`. If
    the values are amounts with units, a second column has them as numbers: `rate_mbps`, `delay_s`, `size_bytes`.

    Two results are equal if scenario and values are equal, regardless of the time taken.
    """

    def __init__(self, inner: _ranway.Results) -> None:
        self._inner = inner
        self._tables: dict[str, pl.DataFrame] = {}

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Means over the runs with 95 % confidence intervals (`ci95`: half its width), as in `summary.json`."""
        summary: dict[str, Any] = json.loads(self._inner.summary())
        return summary

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The metadata: title, version, scenario with every default, points, runs, seed."""
        meta: dict[str, Any] = json.loads(self._inner.meta())
        return meta

    @cached_property
    def timing(self) -> dict[str, Any]:
        """The cost of the runs: wall-clock and processor seconds, simulated seconds, events, packets, threads."""
        timing: dict[str, Any] = json.loads(self._inner.timing())
        return timing

    @property
    def partial(self) -> dict[str, int] | None:
        """The number of runs that `finished`, and `of` how many, if the results are partial; None if they are complete.

        Results of a list of jobs and of an interrupted `ranway run` are partial.
        """
        partial = self.meta.get("partial")
        return None if partial is None else {key: partial[key] for key in ("finished", "of")}

    @property
    def jobs(self) -> list[Job]:
        """The jobs that these results cover, ordered by point and run."""
        return [Job(point, run) for point, run in self._inner.jobs()]

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep: each maps swept keys to values. A single empty one without a sweep."""
        points: list[dict[str, Any]] = self.meta["points"]
        return points

    @property
    def flows(self) -> pl.DataFrame:
        """One row per copy of a flow and run: its performance and what limited it."""
        return self.table("flows")

    @property
    def samples(self) -> pl.DataFrame:
        """One row per copy of a flow and sampling time: windows, rates, round-trip times."""
        return self.table("samples")

    @property
    def rtts(self) -> pl.DataFrame:
        """The distribution of the round-trip time of each copy of a flow, one row per bucket."""
        return self.table("rtts")

    @property
    def owds(self) -> pl.DataFrame:
        """The distribution of the one-way delay of each copy of a flow over its data packets, one row per bucket."""
        return self.table("owds")

    @property
    def queues(self) -> pl.DataFrame:
        """One row per queue and sampling time."""
        return self.table("queues")

    @property
    def links(self) -> pl.DataFrame:
        """One row per link and run: its totals."""
        return self.table("links")

    @property
    def events(self) -> pl.DataFrame:
        """One row per packet event, if the scenario records them (`record.events`), and per change from outside."""
        return self.table("events")

    @property
    def transfers(self) -> pl.DataFrame:
        """One row per transfer within a flow: an object of a page, a page, a burst."""
        return self.table("transfers")

    @property
    def ues(self) -> pl.DataFrame:
        """One row per UE, direction and run of an LTE network: its share of resources and the parts of its delay."""
        return self.table("ues")

    @property
    def radio(self) -> pl.DataFrame:
        """One row per UE and sampling time: its measurements, resources and backlog."""
        return self.table("radio")

    @property
    def mobility(self) -> pl.DataFrame:
        """One row per step of a handover and per radio link failure."""
        return self.table("mobility")

    @property
    def commands(self) -> pl.DataFrame:
        """One row per change from outside while an emulation ran (`cell.control`, `ranway control`)."""
        return self.table("commands")

    @property
    def transmissions(self) -> pl.DataFrame:
        """One row per transmission of a transport block, if the scenario records them (`record.radio`)."""
        return self.table("transmissions")

    @property
    def peps(self) -> pl.DataFrame:
        """One row per lightweight PEP: the traffic that passed it and its reports."""
        return self.table("peps")

    @property
    def proxies(self) -> pl.DataFrame:
        """One row per split connection and sampling time: RAPID's decisions and the state of both legs."""
        return self.table("proxies")

    @overload
    def table(self, name: str, as_: Literal["polars"] = "polars") -> pl.DataFrame: ...
    @overload
    def table(self, name: str, as_: Literal["pandas"]) -> "pandas.DataFrame": ...
    @overload
    def table(self, name: str, as_: Literal["arrow"]) -> "pyarrow.Table": ...
    def table(self, name: str, as_: str = "polars") -> Any:
        """Returns a table by name as a Polars DataFrame, a pandas DataFrame or an Arrow table.

        The latter two need pandas and PyArrow: `pip install ranway[pandas]`.
        """
        if name not in _ranway.TABLES:
            raise ValueError(f"unknown table {name!r}; the tables are {', '.join(_ranway.TABLES)}")
        if name not in self._tables:
            frame = pl.read_parquet(io.BytesIO(self._inner.parquet(name)))
            self._tables[name] = _with_swept(frame, self.points, 2)
        return _as(self._tables[name], as_)

    @overload
    def summary_frame(self, as_: Literal["polars"] = "polars") -> pl.DataFrame: ...
    @overload
    def summary_frame(self, as_: Literal["pandas"]) -> "pandas.DataFrame": ...
    @overload
    def summary_frame(self, as_: Literal["arrow"]) -> "pyarrow.Table": ...
    def summary_frame(self, as_: str = "polars") -> Any:
        """Returns the summary values of each flow: one row per point, run and flow, and one column per swept key.

        The copies of a flow are combined, as in `summary`: rates cover the time in which any of them was measured,
        quantiles of round-trip times (`rtt_p50_ms`), one-way delays (`owd_p50_ms`) and completion times
        (`completion_p50_s`) cover all their samples. `loss` is the share of the packets sent that were lost, of UDP;
        `retransmission_rate` is the share of segments that were retransmissions, of TCP. A swept key with the name of
        another column, such as `loss`, has the column `sweep.loss`; one whose values are amounts with units has another
        column of numbers, such as `rate_mbps`. `as_` is as in `table`.
        """
        frame = pl.read_parquet(io.BytesIO(self._inner.summary_frame()))
        return _as(_with_swept(frame, self.points, 3), as_)

    @overload
    def means(
        self,
        figures: Sequence[str] = (),
        *,
        against: Mapping[str, Any] | None = None,
        as_: Literal["polars"] = "polars",
    ) -> pl.DataFrame: ...
    @overload
    def means(
        self, figures: Sequence[str] = (), *, against: Mapping[str, Any] | None = None, as_: Literal["pandas"]
    ) -> "pandas.DataFrame": ...
    @overload
    def means(
        self, figures: Sequence[str] = (), *, against: Mapping[str, Any] | None = None, as_: Literal["csv", "latex"]
    ) -> str: ...
    def means(
        self, figures: Sequence[str] = (), *, against: Mapping[str, Any] | None = None, as_: str = "polars"
    ) -> Any:
        """Returns the means of `figures` (names of `summary`) over the runs: one row per point and flow.

        `NAME_ci95` is half of the 95 % confidence interval (Student's t), and `NAME_n` the number of runs. Without
        names, the usual figures that have values are returned. With `against`, a swept key and one of its values, such
        as `{"flows.cc": "cubic"}`, a row has the differences to the point with that value: runs of the same number
        share their random numbers, so that intervals are those of paired differences.

        `as_` is `"polars"`, `"pandas"`, `"csv"` or `"latex"` (a `tabular` with the rules of booktabs).
        """
        if as_ not in ("polars", "pandas", "csv", "latex"):
            raise ValueError(f"as_={as_!r}: must be 'polars', 'pandas', 'csv' or 'latex'")
        if against is not None and len(against) != 1:
            raise ValueError("against: must be one swept key and its value")
        base = [(key, value if isinstance(value, str) else json.dumps(value)) for key, value in (against or {}).items()]
        text = self._inner.means(list(figures), base[0] if base else None, as_ == "latex")
        if as_ in ("csv", "latex"):
            return text
        types: dict[str, Any] = {"flow": pl.String, "cc": pl.String, "against": pl.String}
        columns = text.split("\n", 1)[0].split(",")
        # Without a value, or with whole numbers alone, a column would have another type.
        for figure in (name for name in columns if f"{name}_ci95" in columns):
            types |= {figure: pl.Float64, f"{figure}_ci95": pl.Float64, f"{figure}_n": pl.Int64}
        types = {name: of for name, of in types.items() if name in columns}
        return _as(pl.read_csv(io.StringIO(text), schema_overrides=types, infer_schema_length=None), as_)

    def write(self, dir: str | os.PathLike[str]) -> None:
        """Writes tables, summary and report to the directory `dir`, atomically.

        Earlier results there are replaced; a directory with other contents is rejected (`RanwayError`).
        """
        self._inner.write(dir)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report, one HTML page that opens without a network, to the file `path`, atomically."""
        path = Path(path)
        page = self._inner.report()
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", encoding="utf-8", delete=False) as file:
            try:
                file.write(page)
                file.close()
                # Temporary files are readable only by their owner; a report has the mode of any new file.
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
    """Reads the results in the directory `dir`, written by `ranway run`, `run(out=...)` or `Results.write`."""
    return Results(_ranway.Results.read(dir))


def merge(results: Iterable[Results]) -> Results:
    """Joins the results of disjoint lists of jobs of a scenario.

    The results may come in any order and from any processes. The merged results equal those of a single run of all
    jobs, and `Results.write` writes the same files, except for `timing.json`, which adds up the times of the parts, and
    the report, which quotes it.

    Raises `RanwayError` if jobs are missing or repeated, and names them, or if the results belong to different
    scenarios, seeds or versions.
    """
    return Results(_ranway.merge([part._inner for part in results]))


def _restore(files: dict[str, bytes]) -> Results:
    """Returns results that another process has pickled."""
    return Results(_ranway.Results.from_files(files))


def _with_swept(frame: pl.DataFrame, points: list[dict[str, Any]], after: int) -> pl.DataFrame:
    """Returns the table with the columns of swept keys after so many of its own."""
    columns = [column.gather(frame["point"]) for column in _swept(points, frame.columns)]
    return pl.DataFrame([*frame[:, :after], *columns, *frame[:, after:]]) if columns else frame


def _swept(points: list[dict[str, Any]], taken: Sequence[str]) -> list[pl.Series]:
    """Returns the values of each swept key by point, and their numbers if they are amounts with units."""
    columns = []
    for key in dict.fromkeys(key for point in points for key in point):
        values = [point.get(key) for point in points]
        name = f"sweep.{key}" if key in taken else key
        columns.append(_column(name, values))
        amounts = _ranway.amounts(json.dumps(values))
        if amounts is not None:
            suffix, numbers = amounts
            columns.append(pl.Series(f"{name}_{suffix}", numbers, dtype=pl.Float64))
    return columns


def _as(frame: pl.DataFrame, as_: str) -> Any:
    """Returns a table as a Polars DataFrame, a pandas DataFrame or an Arrow table."""
    if as_ == "polars":
        return frame
    if as_ not in ("pandas", "arrow"):
        raise ValueError(f"as_={as_!r}: must be 'polars', 'pandas' or 'arrow'")
    try:
        return frame.to_pandas() if as_ == "pandas" else frame.to_arrow()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is missing: pip install ranway[pandas]", name=error.name) from None


def _column(name: str, values: list[Any]) -> pl.Series:
    """Returns integers, numbers or booleans if all values are, otherwise strings."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values])
    if len(kinds) > 1:
        return pl.Series(name, [None if value is None else str(value) for value in values])
    return pl.Series(name, values)
