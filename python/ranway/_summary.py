"""The display of results and scenarios in notebooks."""

import html
from typing import Any

import polars as pl

# Maximum number of rows of a table in a notebook.
_MOST_ROWS = 40
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
