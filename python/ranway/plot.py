"""Figures of results, ready for papers.

Each function draws one set of axes and returns them. Without `ax` it creates a figure of one column's width (3.5 in) in
a plain style; with `ax` it draws there, in the current style. Colours are those of Okabe and Ito ("Color Universal
Design", 2008), which colour-blind readers can distinguish; lines also differ in their dashes or marks, for print in
black.

Further keywords select rows by column: a value or a list of values of `flow`, `link`, `ue`, `point`, or of a swept key
(`rtt(results, cc="bbr")`; a key with dots in `**{"dumbbell.queue": "codel"}`).

Plots over time show a single run, or with `run=None` the mean over the runs with a band, its 95 % confidence interval
(`throughput`, `rtt`, `cwnd`, `in_flight`, `delay`, `queue`); copies of a flow are one line then, their mean.

Plots over time mark where another cell began to serve a UE, with the cell's name, and in orange where a handover failed
or the link was lost. Plots of flows mark the UEs at which these flows end; plots of links and of measurements mark all
UEs and modems. Marks are left out if there are too many to distinguish.

Needs matplotlib: `pip install ranway[plot]`.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ranway import _ranway, _select
from ranway._axis import Axis
from ranway._cells import mark_cells, mark_commands
from ranway._figures import FIGURES
from ranway._results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "backlog",
    "bler",
    "completion_cdf",
    "cqi",
    "cwnd",
    "delay",
    "delay_cdf",
    "ellipse",
    "handovers",
    "in_flight",
    "in_flight_stacked",
    "latency",
    "limits",
    "loss",
    "mcs",
    "prbs",
    "queue",
    "rtt",
    "rtt_box",
    "rtt_cdf",
    "save",
    "signal",
    "sinr",
    "sweep",
    "throughput",
    "time_sequence",
    "waits",
]

Direction = Literal["downlink", "uplink"]

# Marks of points.
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
_WIDTH, _HEIGHT = 3.5, 2.4
_STYLE: dict[str, Any] = {
    "figure.dpi": 150,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}

# The limits of a sender, with colours and hatches that remain distinct in greyscale.
_LIMITS = {
    "app": ("application", "#BBBBBB", ""),
    "cwnd": ("congestion window", "#0072B2", ""),
    "rwnd": ("receive window", "#E69F00", "////"),
    "pacing": ("pacing", "#56B4E9", "...."),
    "sndbuf": ("send buffer", "#CC79A7", "xxxx"),
    "other": ("other", "#FFFFFF", ""),
}

# Where packets of a measurement wait: the columns of `waits`.
_PLACES = {
    "host_ms": "host",
    "modem_ms": "modem and radio",
    "network_ms": "network behind",
    "total_ms": "whole path",
}
_PROBES = {
    "echo": "ICMP echo",
    "hop": "router",
    "handshake": "TCP handshake",
    "request": "request to the server",
}
# The most moments of a stack; of more, every n-th is drawn.
_MOST_TIMES = 4000
# What a modem measures of its cell.
_SIGNALS = {
    "rsrp": ("rsrp_dbm", "dBm"),
    "rsrq": ("rsrq_db", "dB"),
    "rssi": ("rssi_dbm", "dBm"),
    "sinr": ("sinr_db", "dB"),
}


def throughput(
    r: Results, *, ax: "Axes | None" = None, run: int | None = 0, bin_s: float | None = None, **where: Any
) -> "Axes":
    """Goodput of each flow over time, averaged over bins of `bin_s` seconds (about 120 bins if it is not given)."""
    lines = _select.lines(r, "samples", "flow", _of_run(run, where))
    with _axes(ax) as ax:
        for line in lines:
            binned = []
            for part in line.rows.partition_by("run", maintain_order=True):
                of_all = r.samples.filter(
                    (pl.col("run") == part["run"][0]) & (pl.col("point") == line.rows["point"][0])
                )
                times, rates = _binned(of_all["t_s"], part, bin_s)
                binned.append(pl.DataFrame({"run": part["run"][0], "t_s": times, "rate": rates}))
            if run is None:
                _draw_band(ax, line, pl.concat(binned), "rate", 1)
            else:
                x, y = binned[0]["t_s"], binned[0]["rate"]
                ax.plot(x, y, color=line.colour, linestyle=line.dashes, label=line.label)
        _finish_time(ax, r, "flow", "Goodput (Mbit/s)", lines)
        ax.set_ylim(bottom=0)
        return ax


def rtt(r: Results, *, ax: "Axes | None" = None, run: int | None = 0, **where: Any) -> "Axes":
    """Round-trip time of each copy of a flow over time: the latest sample at each sampling time."""
    return _over_time(r, "flow", "rtt_ms", 1, "Round-trip time (ms)", ax, _of_run(run, where))


def cwnd(r: Results, *, ax: "Axes | None" = None, run: int | None = 0, **where: Any) -> "Axes":
    """Congestion window of each copy of a flow over time."""
    return _over_time(r, "flow", "cwnd_bytes", 1e-3, "Congestion window (kB)", ax, _of_run(run, where))


def in_flight(r: Results, *, ax: "Axes | None" = None, run: int | None = 0, **where: Any) -> "Axes":
    """Bytes in flight of each copy of a flow over time, as its sender estimates them."""
    return _over_time(r, "flow", "in_flight_bytes", 1e-3, "In flight (kB)", ax, _of_run(run, where))


def in_flight_stacked(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Bytes in flight of the copies of all flows over time, one on top of the other: their sum is the path's.

    Each copy is a layer in its flow's colour, interpolated between its samples. Copies of which nothing is known, such
    as downloads of a measurement by RMBT, are left out.
    Several points cannot be stacked: select one with `point`.
    """
    lines = _select.lines(r, "samples", "flow", {"run": run, **where})
    if len({line.rows["point"][0] for line in lines}) > 1:
        raise ValueError("several points cannot be stacked: select one, for example with point=0")
    # A measurement reads its flows one after the other: each copy has times of its own.
    copies = [
        (line.colour, "_" * (i > 0) + line.label, part.sort("t_s"))
        for line in lines
        for i, part in enumerate(line.rows.drop_nulls("in_flight_bytes").partition_by("conn", maintain_order=True))
    ]
    if not copies:
        raise ValueError("the bytes in flight of these flows are not known")
    times = pl.concat([part["t_s"] for _, _, part in copies]).unique().sort()
    times = times.gather_every(math.ceil(len(times) / _MOST_TIMES))
    layers = [_interpolated(part, times) * 1e-3 for _, _, part in copies]
    with _axes(ax) as ax:
        colours, labels = [colour for colour, _, _ in copies], [label for _, label, _ in copies]
        ax.stackplot(times, layers, colors=colours, labels=labels, edgecolor="white", linewidth=0.3)
        _finish_time(ax, r, "flow", "In flight (kB)", lines)
        ax.set_ylim(bottom=0)
        return ax


def time_sequence(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Sequence numbers of one flow of a capture over time, as tcptrace draws them.

    Data in black, retransmissions in orange and segments out of order in blue, each from its first to its last byte;
    the acknowledged sequence number and the end of the receive window as lines below and above; SACK blocks in green,
    D-SACKs in pink. Needs results of `ranway analyse`, and one connection: select with `flow`, `point` and `conn`.
    """
    lines = _select.lines(r, "segments", "flow", {"run": run, **where})
    rows = lines[0].rows
    if len(lines) > 1 or rows["conn"].n_unique() > 1:
        names = sorted({str(line.rows["flow"][0]) for line in lines})
        raise ValueError(f"a time-sequence plot is of one connection: select flow, point and conn; flows: {names[:8]}")
    scale = 1e-6
    kinds = {
        "data": ("data", "#000000"),
        "retransmission": ("retransmission", "#D55E00"),
        "out-of-order": ("out of order", "#0072B2"),
        "sack": ("SACK", "#009E73"),
        "dsack": ("D-SACK", "#CC79A7"),
    }
    with _axes(ax) as ax:
        labels = []
        for kind, (label, colour) in kinds.items():
            part = rows.filter(pl.col("kind") == kind)
            if part.is_empty():
                continue
            labels.append(label)
            times, start, end = part["t_s"].to_numpy(), part["start"].to_numpy() * scale, part["end"].to_numpy() * scale
            ax.vlines(times, start, end, color=colour, linewidth=1.0, label=label)
            ax.plot(times, end, color=colour, linestyle="none", marker=".", markersize=1.5)
        acks = rows.filter(pl.col("kind") == "ack")
        if not acks.is_empty():
            labels += ["acknowledged", "window"]
            style: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 0.7}
            ax.plot(acks["t_s"], acks["start"] * scale, color="#56B4E9", label="acknowledged", **style)
            ax.plot(acks["t_s"], acks["end"] * scale, color="#E69F00", label="window", **style)
        ax.set(xlabel="Time (s)", ylabel="Sequence number (MB)")
        ax.margins(x=0.01)
        _mark_cells(ax, r, "flow", lines)
        _legend(ax, labels)
        return ax


def ellipse(r: Results, *, ax: "Axes | None" = None, delay: str = "rtt_ms", **where: Any) -> "Axes":
    """Goodput against delay of each flow: its samples' means, and the ellipse that holds 95 % of a normal distribution.

    `delay` is a column of `samples`: `rtt_ms`, `srtt_ms` or `owd_ms`. Delay grows to the left, so that better is up and
    to the right, as in the plots of flent and Sprout.
    """
    if delay not in ("rtt_ms", "srtt_ms", "owd_ms"):
        raise ValueError(f"delay={delay!r}: must be 'rtt_ms', 'srtt_ms' or 'owd_ms'")
    from matplotlib.patches import Ellipse

    lines = _select.lines(r, "samples", "flow", where)
    with _axes(ax) as ax:
        for i, line in enumerate(lines):
            part = line.rows.drop_nulls(delay)
            if part.height < 3:
                continue
            x, y = part[delay].to_numpy(), part["goodput_mbps"].to_numpy()
            (mean_x, mean_y), (var_x, var_y) = (x.mean(), y.mean()), (x.var(ddof=1), y.var(ddof=1))
            covariance = ((x - mean_x) * (y - mean_y)).sum() / (len(x) - 1)
            # The eigenvalues of the covariance matrix, scaled by the 95 % quantile of chi squared of two dimensions.
            middle, spread = (var_x + var_y) / 2, math.hypot((var_x - var_y) / 2, covariance)
            widths = [2 * math.sqrt(5.991 * max(value, 0.0)) for value in (middle + spread, middle - spread)]
            angle = math.degrees(math.atan2(2 * covariance, var_x - var_y) / 2)
            shape = Ellipse((mean_x, mean_y), *widths, angle=angle, fill=False, edgecolor=line.colour)
            shape.set_linestyle(line.dashes)
            ax.add_patch(shape)
            mark = _MARKS[i % len(_MARKS)]
            ax.plot([mean_x], [mean_y], marker=mark, color=line.colour, linestyle="none", label=line.label)
        ax.autoscale_view()
        _finish(ax, f"{'One-way delay' if delay == 'owd_ms' else 'Round-trip time'} (ms)", "Goodput (Mbit/s)", lines)
        ax.set_ylim(bottom=0)
        ax.set_xlim(left=0)
        ax.invert_xaxis()
        return ax


def rtt_box(r: Results, *, ax: "Axes | None" = None, **where: Any) -> "Axes":
    """Round-trip times of each flow over all copies and runs: quartiles, whiskers at the 5th and 95th percentiles."""
    lines = _select.lines(r, "rtts", "flow", where)
    with _axes(ax, 0.85 + 0.25 * len(lines)) as ax:
        boxes = []
        for line in lines:
            rows = line.rows.group_by("rtt_ms").agg(pl.col("count").sum()).sort("rtt_ms")
            shares = rows["count"].cum_sum() / rows["count"].sum()
            at = [float(rows["rtt_ms"][int((shares < q).sum())]) for q in (0.05, 0.25, 0.5, 0.75, 0.95)]
            boxes.append(dict(zip(("whislo", "q1", "med", "q3", "whishi"), at, strict=True), label=line.label))
        ax.bxp(boxes, orientation="horizontal", showfliers=False, widths=0.5)
        ax.invert_yaxis()
        ax.set(xlabel="Round-trip time (ms)")
        ax.set_xlim(left=0)
        return ax


def queue(r: Results, *, ax: "Axes | None" = None, run: int | None = 0, **where: Any) -> "Axes":
    """Length of each link's queue over time; links that never queue are omitted unless selected by `link`."""
    if "link" not in where:
        longest = r.queues.group_by("link").agg(pl.col("packets").max()).filter(pl.col("packets") > 1)
        where["link"] = longest["link"].cast(pl.String).to_list()
    return _over_time(r, "link", "packets", 1, "Queue (packets)", ax, _of_run(run, where))


def rtt_cdf(r: Results, *, ax: "Axes | None" = None, **where: Any) -> "Axes":
    """Distribution of each flow's round-trip time over all its samples of all runs."""
    return _cdf(r, "rtts", "rtt_ms", "Round-trip time (ms)", "Share of samples", ax, where)


def delay_cdf(r: Results, *, ax: "Axes | None" = None, **where: Any) -> "Axes":
    """Distribution of each flow's one-way delay over all its data packets of all runs; also for UDP flows."""
    return _cdf(r, "owds", "owd_ms", "One-way delay (ms)", "Share of packets", ax, where)


def completion_cdf(r: Results, *, ax: "Axes | None" = None, **where: Any) -> "Axes":
    """Distribution of the completion times of each flow's transfers of all runs.

    Unfinished transfers count as longer than all others: the line stays below 1 by their share.
    """
    return _cdf(r, "transfers", "completion_s", "Completion time (s)", "Share of transfers", ax, where)


def delay(r: Results, *, ax: "Axes | None" = None, run: int | None = 0, **where: Any) -> "Axes":
    """One-way delay of each copy of a flow over time: means of the data packets since the previous sample."""
    return _over_time(r, "flow", "owd_ms", 1, "One-way delay (ms)", ax, _of_run(run, where))


def loss(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Cumulative number of lost packets of each copy of a flow, in both directions."""
    lines = _select.lines(r, "samples", "flow", {"run": run, **where})
    with _axes(ax) as ax:
        for line in lines:
            for i, part in enumerate(line.rows.partition_by("conn", maintain_order=True)):
                x, y = part["t_s"].to_numpy(), part["lost"].cum_sum().to_numpy()
                label = "_" * (i > 0) + line.label
                ax.plot(x, y, drawstyle="steps-post", color=line.colour, linestyle=line.dashes, label=label)
        _finish_time(ax, r, "flow", "Lost so far (packets)", lines)
        ax.set_ylim(bottom=0)
        return ax


def sinr(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Downlink signal to interference and noise of each UE of an LTE network over time."""
    return _over_time(r, "ue", "sinr_db", 1, "SINR (dB)", ax, {"run": run, **where})


def cqi(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """The latest channel quality indicator of each UE known to the cell, over time."""
    return _over_time(r, "ue", "cqi", 1, "CQI (index)", ax, {"run": run, **where})


def mcs(
    r: Results, *, ax: "Axes | None" = None, run: int = 0, direction: Direction = "downlink", **where: Any
) -> "Axes":
    """Mean modulation and coding scheme of each UE's transmissions over time."""
    column = f"{_short(direction)}_mcs"
    return _over_time(r, "ue", column, 1, f"{direction.capitalize()} MCS (index)", ax, {"run": run, **where})


def prbs(
    r: Results, *, ax: "Axes | None" = None, run: int = 0, direction: Direction = "downlink", **where: Any
) -> "Axes":
    """Share of the carrier's resource blocks assigned to each UE over time."""
    column = f"{_short(direction)}_prbs"
    return _over_time(r, "ue", column, 100, f"{direction.capitalize()} PRBs (%)", ax, {"run": run, **where})


def backlog(
    r: Results, *, ax: "Axes | None" = None, run: int = 0, direction: Direction = "downlink", **where: Any
) -> "Axes":
    """Backlog of each UE in bytes over time: in the base station (downlink), or in its modem (uplink)."""
    column = f"{_short(direction)}_queue_bytes"
    return _over_time(r, "ue", column, 1e-3, f"{direction.capitalize()} backlog (kB)", ax, {"run": run, **where})


def bler(
    r: Results,
    *,
    ax: "Axes | None" = None,
    run: int = 0,
    direction: Direction = "downlink",
    bin_s: float = 1.0,
    **where: Any,
) -> "Axes":
    """Share of each UE's transport blocks whose first transmission was not decoded, in bins of `bin_s` seconds.

    Needs the table `transmissions`, which is recorded with `record.radio = true`.
    """
    _short(direction)
    if not bin_s > 0:
        raise ValueError(f"bin_s={bin_s!r}: must be greater than 0")
    if r.transmissions.is_empty():
        raise ValueError("no transmissions were recorded: set record.radio = true in the scenario")
    lines = _select.lines(r, "transmissions", "ue", {"run": run, "direction": direction, "attempt": 1, **where})
    with _axes(ax) as ax:
        for line in lines:
            at = (pl.col("t_ns") / (bin_s * 1e9)).floor().alias("bin")
            bins = line.rows.group_by(at).agg(errors=(~pl.col("decoded")).mean() * 100).sort("bin")
            x = ((bins["bin"] + 0.5) * bin_s).to_numpy()
            ax.plot(x, bins["errors"].to_numpy(), color=line.colour, linestyle=line.dashes, label=line.label)
        _finish_time(ax, r, "ue", f"{direction.capitalize()} BLER (%)", lines)
        ax.set_ylim(bottom=0)
        return ax


def handovers(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """The cell that serves each UE over time, with a cross where a handover or the radio link failed."""
    lines = _select.lines(r, "radio", "ue", {"run": run, **where})
    # Each UE has its own height within the cell's row, so that lines do not cover each other.
    cells = sorted({str(cell) for line in lines for cell in line.rows["cell"].cast(pl.String).unique()} - {""})
    events = r.mobility.filter((pl.col("run") == run) & pl.col("event").cast(pl.String).is_in(["failed", "link-lost"]))
    with _axes(ax) as ax:
        for i, line in enumerate(lines):
            shift = 0.5 * ((i + 0.5) / len(lines) - 0.5)
            place = {cell: at + shift for at, cell in enumerate(cells)}
            heights = [place.get(str(cell), math.nan) for cell in line.rows["cell"]]
            times = line.rows["t_s"].to_list()
            ax.plot(times, heights, drawstyle="steps-post", color=line.colour, linestyle=line.dashes, label=line.label)
            own = events.filter((pl.col("point") == line.rows["point"][0]) & (pl.col("ue") == line.rows["ue"][0]))
            for moment in own["t_s"]:
                served = zip(times, heights, strict=True)
                before = [height for at, height in served if at <= moment and not math.isnan(height)]
                ax.plot([moment], before[-1:] or [shift], marker="x", color=line.colour, linestyle="none")
        ax.set_yticks(range(len(cells)), cells)
        _finish(ax, "Time (s)", "Serving cell", lines)
        ax.set_ylim(-0.5, max(len(cells), 1) - 0.5)
        return ax


def latency(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Round-trip times of the probes of a measurement over time, before, during and after the load."""
    rows = _select.rows(r, "latencies", {"run": run, **where})
    name = pl.concat_str(
        pl.col("probe").cast(pl.String).replace(_PROBES), pl.col("hop"), separator=" ", ignore_nulls=True
    )
    lines = _select.lines_of(r, rows.with_columns(name=name), "name")
    lines = [line._replace(rows=_with_parts(line.rows)) for line in lines]
    return _draw_over_time(r, "name", lines, "rtt_ms", 1, "Round-trip time (ms)", ax, parts="part")


def _with_parts(rows: pl.DataFrame) -> pl.DataFrame:
    """Numbers the parts of a line of probes, which pause while a load's flows are warmed up.

    A part begins where the load's first probe comes more than twice the median interval after the one before it. The
    median is over the intervals before the load, or over all if there are none.
    """
    phase, step = pl.col("phase").cast(pl.String), pl.col("t_s").diff()
    usual = pl.coalesce(step.filter(phase == "before").median(), step.median())
    pauses = (phase == "during") & (phase.shift() == "before") & (step > 2 * usual)
    return rows.with_columns(part=pauses.fill_null(value=False).cum_sum())


def waits(r: Results, *, ax: "Axes | None" = None, run: int = 0, **where: Any) -> "Axes":
    """Where packets of a measurement waited: how much longer than before the load, in each second.

    Waits that are not longer than their uncertainty (`error_ms` of the table `waits`) are unknown: gaps in the lines.
    """
    rows = _select.rows(r, "waits", {"run": run, **where})
    parts = [rows.with_columns(place=pl.lit(name), wait_ms=column) for column, name in _PLACES.items()]
    lines = _select.lines_of(r, pl.concat(parts), "place")
    return _draw_over_time(r, "place", lines, "wait_ms", 1, "Waiting time (ms)", ax, drawstyle="steps-post")


def signal(
    r: Results,
    *,
    ax: "Axes | None" = None,
    run: int = 0,
    quantity: Literal["rsrp", "rsrq", "rssi", "sinr"] = "rsrp",
    **where: Any,
) -> "Axes":
    """What each real modem measured of its serving cell over time."""
    if quantity not in _SIGNALS:
        raise ValueError(f"quantity={quantity!r}: must be one of {', '.join(_SIGNALS)}")
    column, unit = _SIGNALS[quantity]
    rows = _select.rows(r, "modem", {"run": run, **where})
    name = pl.concat_str(pl.col("modem"), pl.col("technology").cast(pl.String).str.to_uppercase(), separator=" ")
    lines = _select.lines_of(r, rows.with_columns(name=name.str.strip_chars()), "name")
    label = f"{quantity.upper()} ({unit})"
    return _draw_over_time(r, "name", lines, column, 1, label, ax, drawstyle="steps-post")


def limits(r: Results, *, ax: "Axes | None" = None, **where: Any) -> "Axes":
    """What limited each TCP flow: shares of its time, means over the runs."""
    entries = [e for e in _select.entries(r, "flows", "limited", where) if e.figure is not None]
    if not entries:
        raise ValueError("no TCP flow to draw")
    labels = _select.labels(r, [(e.point, e.name) for e in entries])
    with _axes(ax, 0.85 + 0.2 * len(entries)) as ax:
        left = [0.0] * len(entries)
        for key, (label, colour, hatch) in _LIMITS.items():
            # Results of earlier versions have no share of the send buffer.
            shares = [100 * (e.figure.get(key) or {"mean": 0.0})["mean"] for e in entries]
            ax.barh(
                range(len(labels)),
                shares,
                0.7,
                left,
                color=colour,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.4,
                label=label,
            )
            left = [a + b for a, b in zip(left, shares, strict=True)]
        ax.set(xlabel="Share of time (%)", xlim=(0, 100))
        ax.set_yticks(range(len(labels)), labels)
        ax.grid(False)
        ax.invert_yaxis()
        _legend(ax, [label for label, _, _ in _LIMITS.values()])
        return ax


def sweep(
    r: Results, x: str, y: str = "goodput_mbps", hue: str | None = None, *, ax: "Axes | None" = None, **where: Any
) -> "Axes":
    """A summary value against a swept key: means over the runs with 95 % confidence intervals.

    `y` is a figure of a flow (`goodput_mbps`, `throughput_mbps`, `rtt_p50_ms`, `rtt_p95_ms`, `owd_p50_ms`,
    `owd_p95_ms`, `loss`, `retransmission_rate`, `transfers_finished`, `completion_s`, `completion_p50_s`,
    `completion_p95_s`), of all flows (`jain`), or of a link (`utilisation`, `drop_rate`, `mark_rate`,
    `sojourn_p50_ms`, `sojourn_p95_ms`, `sojourn_p99_ms`). Lines of the same value of the swept key `hue` have the same
    colour; without it each line has its own.
    """
    keys = [key for point in r.points[:1] for key in point]
    for name, key in (("x", x), ("hue", hue)):
        if key is not None and key not in keys:
            raise ValueError(f"{name}={key!r} was not swept; swept keys: {', '.join(keys) or 'nothing'}")
    if y not in FIGURES:
        raise ValueError(f"y={y!r} is not a summary value; choose one of {', '.join(FIGURES)}")
    kind, label_of_y = FIGURES[y]
    entries = [e for e in _select.entries(r, kind, y, where) if e.figure is not None]
    if not entries:
        raise ValueError(f"no flow or link has a value of {y}")
    lines: dict[tuple[Any, ...], list[_select.Entry]] = {}
    for e in entries:
        rest = tuple(value for key, value in r.points[e.point].items() if key != x)
        lines.setdefault((rest, e.name), []).append(e)
    _select.check_number(len(lines))
    labels = _select.labels(r, [(line[0].point, line[0].name) for line in lines.values()], without=x)
    hues = list(dict.fromkeys(r.points[line[0].point].get(hue) if hue else i for i, line in enumerate(lines.values())))
    axis = Axis.of(x, [r.points[e.point][x] for e in entries])
    with _axes(ax) as ax:
        for i, (line, label) in enumerate(zip(lines.values(), labels, strict=True)):
            line.sort(key=lambda e: axis.place(r.points[e.point][x]))
            aside = axis.dodge(i, len(lines))
            colour = hues.index(r.points[line[0].point].get(hue) if hue else i)
            ax.errorbar(
                [axis.place(r.points[e.point][x]) + aside for e in line],
                [e.figure["mean"] for e in line],
                yerr=[e.figure["ci95"] or 0 for e in line],
                color=_select.COLOURS[colour % len(_select.COLOURS)],
                marker=_MARKS[i % len(_MARKS)],
                # Names are not interpolated.
                linestyle="none" if axis.scale == "names" else _select.DASHES[i % len(_select.DASHES)],
                elinewidth=0.8,
                capsize=2,
                label=label,
            )
        axis.apply(ax, _characters(ax))
        ax.set_ylabel(label_of_y)
        ax.set_ylim(bottom=0)
        if len(lines) > 1:
            _legend(ax, labels)
        return ax


def save(ax: "Axes", *paths: str | os.PathLike[str]) -> None:
    """Writes the figure of `ax` to each path; the extension determines the format (`.pdf`, `.svg`, `.png`).

    Text stays text: TrueType fonts in PDF, as publishers require, and `<text>` in SVG. A PNG has 300 dpi.
    """
    plt = _pyplot()
    with plt.rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
        for path in paths:
            _figure(ax).savefig(path, dpi=300, bbox_inches="tight", pad_inches=0.02)


def _short(direction: str) -> str:
    if direction not in ("downlink", "uplink"):
        raise ValueError(f"direction={direction!r}: must be 'downlink' or 'uplink'")
    return "dl" if direction == "downlink" else "ul"


def _cdf(
    r: Results, table: str, column: str, xlabel: str, ylabel: str, ax: "Axes | None", where: dict[str, Any]
) -> "Axes":
    """The distribution of a column of each flow: of buckets with counts, or of single values, some perhaps missing."""
    lines = _select.lines(r, table, "flow", where)
    with _axes(ax) as ax:
        for line in lines:
            count = pl.col("count").sum() if "count" in line.rows.columns else pl.len()
            buckets = line.rows.group_by(column).agg(count=count).sort(column)
            total = buckets["count"].sum()
            buckets = buckets.drop_nulls(column)
            if buckets.is_empty():
                continue
            share = buckets["count"].cum_sum() / total
            x, y = [buckets.item(0, column), *buckets[column]], [0.0, *share]
            ax.plot(x, y, drawstyle="steps-post", color=line.colour, linestyle=line.print_dashes, label=line.label)
        _finish(ax, xlabel, ylabel, lines)
        ax.set_ylim(0, 1)
        return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error.name} is missing: pip install ranway[plot]", name=error.name) from None
    return plt


@contextmanager
def _axes(ax: "Axes | None", height: float = _HEIGHT) -> Iterator["Axes"]:
    """Returns the axes to draw on: those given, or new ones in our style."""
    plt = _pyplot()
    if ax is not None:
        yield ax
        return
    with plt.rc_context(_STYLE):
        figure, ax = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
        try:
            yield ax
        except BaseException:
            plt.close(figure)
            raise


def _binned(times: pl.Series, rows: pl.DataFrame, bin_s: float | None) -> tuple[pl.Series, pl.Series]:
    """The middle of each bin and the mean rate in it of a flow with these samples; `times` are those of all flows."""
    times = times.unique().sort()
    step = times.diff().min() if len(times) > 1 else None
    if not isinstance(step, float):
        raise ValueError("too few samples to draw a rate over time")
    size = max(1, round((bin_s or (times[-1] - times[0]) / 120) / step))
    # A sample is the amount delivered since the previous one: bin k holds the ticks k * size + 1 to (k + 1) * size.
    tick = (pl.col("t_s") / step).round().cast(pl.Int64)
    number = ((tick - 1).clip(0) // size).alias("bin")
    # The last bin may be shorter. Without a sample the flow has no connection, and delivers nothing.
    bins = pl.DataFrame({"t_s": times}).group_by(number).agg(ticks=pl.len(), middle=pl.col("t_s").mean() - step / 2)
    rates = rows.group_by(number).agg(pl.col("goodput_mbps").sum())
    bins = bins.filter(pl.col("bin").is_between(rates["bin"].min(), rates["bin"].max()))
    bins = bins.join(rates, on="bin", how="left").sort("bin")
    return bins["middle"], bins["goodput_mbps"].fill_null(0) / bins["ticks"]


def _interpolated(rows: pl.DataFrame, times: pl.Series) -> Any:
    """Bytes in flight at `times`: interpolated between the samples, zero before the first and after the last one."""
    import numpy as np

    return np.interp(times, rows["t_s"], rows["in_flight_bytes"], left=0, right=0)


def _over_time(
    r: Results, by: str, column: str, factor: float, label: str, ax: "Axes | None", where: dict[str, Any]
) -> "Axes":
    """A column of the samples of flows, queues or UEs over time: one line per copy, one colour per flow."""
    table = {"flow": "samples", "link": "queues", "ue": "radio"}[by]
    return _draw_over_time(r, by, _select.lines(r, table, by, where), column, factor, label, ax)


def _draw_over_time(
    r: Results,
    by: str,
    lines: list[_select.Line],
    column: str,
    factor: float,
    label: str,
    ax: "Axes | None",
    drawstyle: Literal["default", "steps-post"] = "default",
    parts: str | None = None,
) -> "Axes":
    """Lines through their values, or steps with gaps where a value is missing.

    `parts` is a column whose values tell apart parts of a line that are not connected; of flows, these are the copies.
    """
    parts = "conn" if by == "flow" else parts
    lines = [line for line in lines if line.rows[column].count() > 0] or lines
    with _axes(ax) as ax:
        for line in lines:
            if line.rows["run"].n_unique() > 1:
                _draw_band(ax, line, line.rows, column, factor)
                continue
            apart = [line.rows] if parts is None else line.rows.partition_by(parts, maintain_order=True)
            for i, part in enumerate(apart):
                part = part.drop_nulls(column) if drawstyle == "default" else part
                x, y = part["t_s"].to_numpy(), part[column].to_numpy() * factor
                label_here = "_" * (i > 0) + line.label
                ax.plot(x, y, color=line.colour, linestyle=line.dashes, label=label_here, drawstyle=drawstyle)
        _finish_time(ax, r, by, label, lines)
        if not column.endswith(("_db", "_dbm")):
            ax.set_ylim(bottom=0)
        return ax


def _of_run(run: int | None, where: dict[str, Any]) -> dict[str, Any]:
    """Selects a run, or all of them."""
    return where if run is None else {"run": run, **where}


def _draw_band(ax: "Axes", line: _select.Line, rows: pl.DataFrame, column: str, factor: float) -> None:
    """The mean over the runs of a column at each time, and its 95 % confidence interval (Student's t) as a band."""
    each = rows.drop_nulls(column).group_by("run", "t_s").agg(pl.col(column).mean() * factor)
    over = each.group_by("t_s").agg(mean=pl.col(column).mean(), std=pl.col(column).std(), n=pl.len()).sort("t_s")
    t = {n: _ranway.student_t(n - 1) / math.sqrt(n) if n > 1 else None for n in over["n"].unique()}
    half = over["std"] * over["n"].replace_strict(t, return_dtype=pl.Float64)
    ax.plot(over["t_s"], over["mean"], color=line.colour, linestyle=line.dashes, label=line.label)
    low, high = over["mean"] - half, over["mean"] + half
    ax.fill_between(over["t_s"], low.to_numpy(), high.to_numpy(), color=line.colour, alpha=0.25, linewidth=0)


def _finish(ax: "Axes", xlabel: str, ylabel: str, lines: list[_select.Line]) -> None:
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.margins(x=0.01)
    if len(lines) > 1:
        _legend(ax, [line.label for line in lines])


def _finish_time(ax: "Axes", r: Results, by: str, ylabel: str, lines: list[_select.Line]) -> None:
    _finish(ax, "Time (s)", ylabel, lines)
    _mark_cells(ax, r, by, lines)
    mark_commands(ax, r, [line.rows for line in lines])


def _mark_cells(ax: "Axes", r: Results, by: str, lines: list[_select.Line]) -> None:
    mark_cells(ax, r, by, [line.rows for line in lines], _points(ax))


def _legend(ax: "Axes", labels: Sequence[str]) -> None:
    """Draws a legend above the axes, outside the data, in as many columns as fit."""
    columns = max(1, min(len(labels), _characters(ax) // (max(map(len, labels)) + 6)))
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, frameon=False, borderaxespad=0.3, columnspacing=1.2
    )


def _figure(ax: "Axes") -> "Figure":
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("these axes do not belong to a figure")
    return figure


def _characters(ax: "Axes") -> int:
    """Returns the number of characters of the legend that fit on a line."""
    return math.floor(_points(ax) / 3.6)


def _points(ax: "Axes") -> float:
    """Returns the width of the axes in points."""
    inches: float = ax.get_position().width * _figure(ax).get_size_inches()[0]
    return inches * 72
