"""The summary as a tidy table, and its display in notebooks."""

import html
from typing import Any

import polars as pl

# Maximum number of rows of a table in a notebook.
_MOST_ROWS = 40
_KEYS = ("point", "run", "flow")
# Columns that are summed over the copies of a flow; a sum is missing if a copy's value is.
_SUMS = ("bytes", "segments_sent", "retransmitted", "rtos", "ce_marks", "lost_packets")
# Columns shown in a notebook.
_SHOWN = (
    "goodput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "owd_p50_ms",
    "owd_p95_ms",
    "loss",
    "retransmission_rate",
    "completion_p50_s",
    "completion_p95_s",
)
_QUANTILES = (("p5", 0.05), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def tidy(
    flows: pl.DataFrame,
    rtts: pl.DataFrame,
    owds: pl.DataFrame,
    transfers: pl.DataFrame,
    swept: list[str],
) -> pl.DataFrame:
    """Returns one row per point, run and flow, with the swept values; copies of a flow are combined.

    A swept key with the same name as a column here, such as `loss`, gets the column `sweep.loss`.
    """
    # Renamed until the names of the other columns are known.
    aside = {name: f"swept {name}" for name in swept}
    flows = flows.rename(aside)
    first = ("transport", "cc", "from", "to")
    span = pl.col("measured_to_s").max() - pl.col("measured_from_s").min()
    received = pl.col("throughput_mbps") * (pl.col("measured_to_s") - pl.col("measured_from_s"))
    frame = flows.group_by(*_KEYS, *aside.values(), maintain_order=True).agg(
        *(pl.col(name).first() for name in first),
        copies=pl.len(),
        goodput_mbps=pl.when(span > 0).then(pl.col("bytes").sum() * 8e-6 / span),
        throughput_mbps=pl.when(span > 0).then(received.sum() / span),
        # SYN and FIN are no data segments.
        retransmission_rate=_share_of(pl.col("retransmitted") - pl.col("retrans_control").fill_null(0)),
        # What was sent before the warm-up's end may be lost after it.
        loss=_share_of(pl.col("lost_packets")).clip(upper_bound=1.0),
        **{name: pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()) for name in _SUMS},
    )
    # For TCP, losses count packets of both directions; for UDP, only data.
    tcp = pl.col("transport") == "tcp"
    frame = frame.with_columns(
        retransmission_rate=pl.when(tcp & (pl.col("retransmission_rate") <= 1)).then("retransmission_rate"),
        loss=pl.when(~tcp).then("loss"),
    )
    for table, column, name in ((rtts, "rtt_ms", "rtt"), (owds, "owd_ms", "owd")):
        frame = frame.join(_quantiles(table, column, name), on=list(_KEYS), how="left", maintain_order="left")
    finished = transfers.group_by(_KEYS).agg(
        transfers=pl.len(),
        transfers_finished=pl.col("completion_s").is_not_null().mean(),
        completion_s=pl.col("completion_s").mean(),
        completion_p50_s=_quantile_of("completion_s", 0.5),
        completion_p95_s=_quantile_of("completion_s", 0.95),
    )
    frame = frame.join(finished, on=list(_KEYS), how="left", maintain_order="left")
    back = {other: f"sweep.{name}" if name in frame.columns else name for name, other in aside.items()}
    return frame.rename(back).sort("point", "run", maintain_order=True)


def _share_of(part: pl.Expr) -> pl.Expr:
    """Returns a count's share of the segments sent, of the copies that tell both."""
    known = part.is_not_null() & pl.col("segments_sent").is_not_null()
    whole = pl.col("segments_sent").filter(known).sum()
    return pl.when(whole > 0).then(part.filter(known).sum() / whole)


def _quantile_of(column: str, q: float) -> pl.Expr:
    """Returns the nearest rank: the smallest value that at least the share `q` of the values does not exceed."""
    values = pl.col(column).drop_nulls().sort()
    return values.filter(pl.int_range(1, values.len() + 1) >= values.len() * q - 1e-9).first()


def _quantiles(table: pl.DataFrame, column: str, name: str) -> pl.DataFrame:
    """Returns quantiles of a distribution's buckets by nearest rank."""
    buckets = table.group_by(*_KEYS, column).agg(pl.col("count").sum()).sort(*_KEYS, column)
    buckets = buckets.with_columns(share=pl.col("count").cum_sum().over(_KEYS) / pl.col("count").sum().over(_KEYS))
    return buckets.group_by(_KEYS, maintain_order=True).agg(
        **{
            f"{name}_{label}_ms": pl.col(column).filter(pl.col("share") >= q - 1e-12).first() for label, q in _QUANTILES
        },
        **{f"{name}_max_ms": pl.col(column).last()},
    )


def results_html(title: str, facts: list[tuple[str, str]], frame: pl.DataFrame) -> str:
    """Returns the notebook display of results: metadata and the tidy summary."""
    keys = frame.columns[: frame.columns.index("cc") + 1]
    measured = [name for name in _SHOWN if frame[name].null_count() < frame.height]
    return _section(title, facts) + _table(frame.select(*keys, *measured))


def scenario_html(title: str, source: str, facts: list[tuple[str, str]], points: list[dict[str, Any]]) -> str:
    """Returns the notebook display of a scenario: its source and the points of its sweep."""
    table = _table(pl.DataFrame(points, strict=False)) if points and points[0] else ""
    return _section(title, [("source", source), *facts]) + table


def _section(title: str, facts: list[tuple[str, str]]) -> str:
    said = " · ".join(f"{html.escape(name)} <b>{html.escape(value)}</b>" for name, value in facts)
    return f"<p><b>{html.escape(title)}</b><br><small>{said}</small></p>"


def _table(frame: pl.DataFrame) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in frame.columns)
    rows = [
        "".join(f"<td>{html.escape(_cell(value))}</td>" for value in row) for row in frame.head(_MOST_ROWS).iter_rows()
    ]
    more = frame.height - _MOST_ROWS
    note = f"<p><small>and {more} more rows</small></p>" if more > 0 else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
