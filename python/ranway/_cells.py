"""Marks of cells, handovers and changes from outside on the axes of time of `ranway.plot`."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from ranway._results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The events of `mobility` that are marked on axes of time: a cell serves the UE, or none does.
_SERVED = ["connected", "changed"]
_UNSERVED = ["failed", "link-lost"]
_MARK_COLOUR, _FAILURE_COLOUR, _COMMAND_COLOUR = "#777777", "#D55E00", "#AA4499"
# Smallest mean distance between marks, and the size of their texts, in points.
_MARK_DISTANCE, _MARK_SIZE = 4, 5.5


def mark_cells(ax: "Axes", r: Results, by: str, rows: Sequence[pl.DataFrame], points: float) -> None:
    """Draws a thin vertical line where another cell began to serve a UE, or where none did any more.

    `rows` are those of the lines drawn on the axes, told apart by the column `by`; `points` is the width of the axes.
    """
    from matplotlib.collections import LineCollection

    moments = _cell_changes(r, by, rows)
    low, high = ax.get_xlim()
    shown = moments.filter(pl.col("t_s").is_between(low, high))
    if shown.height * _MARK_DISTANCE > points:
        return
    across = ax.get_xaxis_transform()
    for name, events, colour in (("_cells", _SERVED, _MARK_COLOUR), ("_failures", _UNSERVED, _FAILURE_COLOUR)):
        times = shown.filter(pl.col("event").is_in(events))["t_s"].unique().to_list()
        if not times:
            continue
        # A collection, so that `ax.get_lines()` remain the data. It lies below them and above stacked areas.
        marks = LineCollection([[(t, 0.0), (t, 1.0)] for t in times], colors=colour, linewidths=0.5, zorder=1.5)
        marks.set(linestyle=(0, (4, 3)), transform=across, label=name)
        ax.add_collection(marks, autolim=False)
    several = moments["ue"].n_unique() > 1
    # At the left edge stands the cell that serves a single UE there.
    before = moments.filter(pl.col("t_s") < low).tail(0 if several else 1).with_columns(t_s=pl.lit(low))
    room, end = 1.4 * _MARK_SIZE * (high - low) / points, -math.inf
    for t, ue, event, cell in pl.concat([before, shown]).select("t_s", "ue", "event", "cell").iter_rows():
        if t < end:
            continue
        end = t + room
        text = event if event in _UNSERVED else cell
        ax.annotate(
            f"{ue}: {text}" if several else text,
            (t, 1),
            xycoords=across,
            xytext=(1, -1),
            textcoords="offset points",
            rotation=90,
            ha="left",
            va="top",
            size=_MARK_SIZE,
            color=_FAILURE_COLOUR if event in _UNSERVED else _MARK_COLOUR,
            annotation_clip=True,
        )


def mark_commands(ax: "Axes", r: Results, rows: Sequence[pl.DataFrame]) -> None:
    """Shades outages, and draws a thin vertical line where something else was changed from outside."""
    if not rows or r.commands.is_empty():
        return
    drawn = pl.concat([line.select("point", "run") for line in rows]).unique()
    low, high = ax.get_xlim()
    given = r.commands.join(drawn, on=["point", "run"], how="semi").filter(pl.col("t_s").is_between(low, high))
    words = [pl.col(name).cast(pl.String) for name in ("command", "subject", "value")]
    texts = given.select("t_s", "until_s", text=pl.concat_str(words, separator=" ").str.replace_all("  ", " "))
    across = ax.get_xaxis_transform()
    for t, until, text in texts.unique(maintain_order=True).iter_rows():
        if until is not None:
            ax.axvspan(t, min(until, high), color=_COMMAND_COLOUR, alpha=0.12, lw=0, label="_outages", zorder=0.5)
        else:
            ax.axvspan(t, t, color=_COMMAND_COLOUR, linewidth=0.5, label="_commands", zorder=1.5)
        ax.annotate(
            text,
            (t, 0),
            xycoords=across,
            xytext=(1, 1),
            textcoords="offset points",
            rotation=90,
            ha="left",
            va="bottom",
            size=_MARK_SIZE,
            color=_COMMAND_COLOUR,
            annotation_clip=True,
        )
    ax.set_xlim(low, high)


def _cell_changes(r: Results, by: str, rows: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Returns the rows of `mobility` to mark for what is drawn, after the cell that served each UE at the start."""
    drawn = pl.concat([line.select("point", "run", pl.col(by).cast(pl.String)) for line in rows]).unique()
    names = [pl.col(name).cast(pl.String) for name in ("ue", "event", "cell")]
    events = r.mobility.select("point", "run", "t_s", *names).filter(pl.col("event").is_in(_SERVED + _UNSERVED))
    moments = pl.concat([_cells_at_start(r), events]).join(drawn, on=["point", "run"], how="semi")
    ends = set(drawn["ue"]) if by == "ue" else set()
    if by == "flow":
        flows = r.flows.select("point", "run", pl.col("flow", "from", "to").cast(pl.String))
        flows = flows.join(drawn, on=["point", "run", "flow"], how="semi")
        ends = {*flows["from"], *flows["to"]}
    # UEs at rest have no events.
    known = {*r.ues["ue"].cast(pl.String), *moments["ue"]}
    own = moments.filter(pl.col("ue").is_in(list(known & ends or known))).sort("t_s", maintain_order=True)
    return own.unique(["t_s", "ue", "event", "cell"], maintain_order=True)


def _cells_at_start(r: Results) -> pl.DataFrame:
    """Returns the first known cell of each UE and real modem, as rows of `mobility` before all others."""
    radio = r.radio.select("point", "run", "t_s", "ue", "cell")
    modem = r.table("modem").select("point", "run", "t_s", ue="modem", cell=pl.coalesce("cell", "pci"))
    cells = pl.concat([table.with_columns(pl.col("ue", "cell").cast(pl.String)) for table in (radio, modem)])
    first = cells.filter(pl.col("cell") != "").sort("t_s").unique(["point", "run", "ue"], keep="first")
    return first.sort("point", "run", "ue").select(
        "point", "run", pl.lit(-math.inf).alias("t_s"), "ue", pl.lit("connected").alias("event"), "cell"
    )
