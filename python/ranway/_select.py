"""What of the results a plot of `ranway.plot` draws: rows, as lines with labels and styles, and summary values."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from ranway._results import Results

# Okabe and Ito's colours without yellow, which is hard to see on paper.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5)))
# More lines than this cannot be distinguished.
_MAX_LINES = len(COLOURS) * 2


class Line(NamedTuple):
    """A line of a plot and its rows."""

    label: str
    number: int
    rows: pl.DataFrame

    @property
    def colour(self) -> str:
        return COLOURS[self.number % len(COLOURS)]

    @property
    def dashes(self) -> Any:
        """Uses dashes only when colours run out: they hide fast changes."""
        return DASHES[self.number // len(COLOURS)]

    @property
    def print_dashes(self) -> Any:
        """Uses dashes that distinguish lines without colour."""
        return DASHES[self.number % len(DASHES)]


class Entry(NamedTuple):
    """A summary value of a flow, a link, or the whole point (no name)."""

    point: int
    name: str
    figure: Any


def lines(r: Results, table: str, by: str, where: dict[str, Any]) -> list[Line]:
    """Selects rows of a table with `where`; one line per point and flow (or link)."""
    return lines_of(r, rows(r, table, where), by)


def rows(r: Results, table: str, where: dict[str, Any]) -> pl.DataFrame:
    """Selects rows of a table with `where`, at least one."""
    rows = r.table(table)
    for key, value in where.items():
        if key not in rows.columns:
            raise ValueError(f"{key!r} is not a column of {table}; choose one of {', '.join(rows.columns)}")
        rows = rows.filter(pl.col(key).is_in(_list(value)))
    if rows.is_empty():
        chosen = ", ".join(f"{key}={value!r}" for key, value in where.items())
        raise ValueError(f"no {table} for {chosen or 'these results'}")
    return rows


def lines_of(r: Results, rows: pl.DataFrame, by: str) -> list[Line]:
    """Returns one line per point and value of the column `by`."""
    parts = rows.partition_by("point", by, maintain_order=True, as_dict=True)
    check_number(len(parts))
    names = labels(r, [(point, str(name)) for point, name in parts])
    return [Line(label, i, part) for i, (label, part) in enumerate(zip(names, parts.values(), strict=True))]


def entries(r: Results, kind: str, figure: str, where: dict[str, Any]) -> list[Entry]:
    """Selects a summary value with `where`, for flows or links (or whole points)."""
    name_key = {"flows": "flow", "links": "link", "points": ""}[kind]
    for key in where:
        if key not in ("point", name_key) and key not in r.points[0]:
            known = [key for key in ("point", name_key, *r.points[0]) if key]
            raise ValueError(f"{key!r} is unknown here; choose one of {', '.join(known)}")
    entries = []
    for point in r.summary["points"]:
        for entry in point[kind] if name_key else [point]:
            facts = {**point["values"], "point": point["point"]}
            if name_key:
                facts[name_key] = entry[name_key]
            if all(facts[key] in _list(value) for key, value in where.items()):
                entries.append(Entry(point["point"], facts.get(name_key, ""), entry.get(figure)))
    return entries


def labels(r: Results, lines: Sequence[tuple[int, str]], without: str | None = None) -> list[str]:
    """Returns a label for each (point, name) with the differences between them."""
    points = [{key: value for key, value in r.points[point].items() if key != without} for point, _ in lines]
    differ = [key for key in points[0] if len({str(point.get(key)) for point in points}) > 1]
    names = len({name for _, name in lines}) > 1 or not differ
    labels = []
    for point, (_, name) in zip(points, lines, strict=True):
        values = [text(point[key]) if isinstance(point[key], str) else f"{key} = {text(point[key])}" for key in differ]
        labels.append(", ".join([name] * names + values))
    return labels


def text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def check_number(lines: int) -> None:
    if lines > _MAX_LINES:
        raise ValueError(
            f"{lines} lines cannot be distinguished: select some, for example with flow='bulk' or a swept value"
        )
