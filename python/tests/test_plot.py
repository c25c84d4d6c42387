"""Plots: each draws what the tables hold, and files come out."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
import pyarrow
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from pyarrow import parquet

import ranway
from ranway import plot


@pytest.fixture(autouse=True)
def close() -> Iterator[None]:
    yield
    plt.close("all")


def labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.fixture(scope="session")
def radio() -> ranway.Results:
    """Two UEs that download and one that calls, and what was sent over the air."""
    return ranway.run(
        ranway.Scenario("lte-drive").set({"duration": "12 s", "runs": 1, "record.radio": True}), progress=None
    )


@pytest.fixture(scope="session")
def drive() -> ranway.Results:
    """A drive with a handover, with and without forwarding."""
    return ranway.run(ranway.Scenario("lte-drive").set({"duration": "20 s", "runs": 1}), progress=None)


def with_rows(results: ranway.Results, dir: Path, **tables: list[dict[str, object]]) -> ranway.Results:
    """Returns `results` with these rows in place of those of the tables; what a row leaves out is missing."""
    results.write(dir)
    for name, rows in tables.items():
        swept = {name for point in results.points for name in point}
        schema = {key: of for key, of in results.table(name).schema.items() if key not in swept}
        filled = [{"point": 0, "run": 0, **row} for row in rows]
        frame = pl.DataFrame(filled, {key: pl.String if of == pl.Categorical else of for key, of in schema.items()})
        table = frame.to_arrow()
        dictionary = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        fields = [
            pyarrow.field(key, dictionary if of == pl.Categorical else table.field(key).type, frame[key].has_nulls())
            for key, of in schema.items()
        ]
        parquet.write_table(table.cast(pyarrow.schema(fields)), dir / f"{name}.parquet", compression="zstd")
    return ranway.read(dir)


def marks(ax: Axes, name: str = "_cells") -> list[float]:
    """The moments of vertical lines for cells or, by their name, for failures."""
    return [stroke[0][0] for c in ax.collections if c.get_label() == name for stroke in c.get_segments()]  # type: ignore[attr-defined]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


RADIO = ["backlog", "bler", "cqi", "handovers", "mcs", "prbs", "sinr"]

# Those of captures and measurements are drawn in tests of their own, and stacks of one point.
OTHERS = {"save", "time_sequence", "in_flight_stacked", "latency", "waits", "signal"}

# What the axes say. Shares and names have no unit.
AXES = {
    "backlog": ("Time (s)", "Downlink backlog (kB)"),
    "bler": ("Time (s)", "Downlink BLER (%)"),
    "completion_cdf": ("Completion time (s)", "Share of transfers"),
    "cqi": ("Time (s)", "CQI (index)"),
    "cwnd": ("Time (s)", "Congestion window (kB)"),
    "delay": ("Time (s)", "One-way delay (ms)"),
    "delay_cdf": ("One-way delay (ms)", "Share of packets"),
    "ellipse": ("Round-trip time (ms)", "Goodput (Mbit/s)"),
    "handovers": ("Time (s)", "Serving cell"),
    "in_flight": ("Time (s)", "In flight (kB)"),
    "limits": ("Share of time (%)", ""),
    "loss": ("Time (s)", "Lost so far (packets)"),
    "mcs": ("Time (s)", "Downlink MCS (index)"),
    "prbs": ("Time (s)", "Downlink PRBs (%)"),
    "queue": ("Time (s)", "Queue (packets)"),
    "rtt": ("Time (s)", "Round-trip time (ms)"),
    "rtt_box": ("Round-trip time (ms)", ""),
    "rtt_cdf": ("Round-trip time (ms)", "Share of samples"),
    "sinr": ("Time (s)", "SINR (dB)"),
    "sweep": ("loss", "Goodput (Mbit/s)"),
    "throughput": ("Time (s)", "Goodput (Mbit/s)"),
}


def test_every_plot_is_tested() -> None:
    assert set(plot.__all__) == AXES.keys() | OTHERS


@pytest.mark.parametrize("name", AXES)
def test_every_plot_gives_a_file_and_has_units(
    name: str, swept: ranway.Results, radio: ranway.Results, tmp_path: Path
) -> None:
    draw = getattr(plot, name)
    if name == "completion_cdf":
        ax = draw(ranway.run(ranway.Scenario("page-load").set(duration="12 s"), progress=None))
    else:
        ax = draw(swept, "loss") if name == "sweep" else draw(radio if name in RADIO else swept)
    plot.save(ax, tmp_path / "a.pdf", tmp_path / "a.png", tmp_path / "a.svg")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<text" in (tmp_path / "a.svg").read_text()
    assert (ax.get_xlabel(), ax.get_ylabel()) == AXES[name]


def test_a_plot_draws_on_the_axes_that_it_is_given(swept: ranway.Results) -> None:
    _, ax = plt.subplots()
    assert plot.rtt(swept, ax=ax, point=0) is ax
    assert len(plt.get_fignums()) == 1


def test_a_line_is_what_the_table_holds(swept: ranway.Results) -> None:
    ax = plot.cwnd(swept, run=1, point=2, flow="first")
    rows = swept.samples.filter((pl.col("run") == 1) & (pl.col("point") == 2) & (pl.col("flow") == "first"))
    (line,) = ax.get_lines()
    assert list(line.get_ydata()) == pytest.approx((rows["cwnd_bytes"] / 1000).to_list())  # type: ignore[arg-type]
    assert list(line.get_xdata()) == rows["t_s"].to_list()  # type: ignore[arg-type]


def test_the_area_under_the_throughput_is_what_was_delivered(swept: ranway.Results) -> None:
    rows = swept.samples.filter((pl.col("run") == 0) & (pl.col("point") == 0) & (pl.col("flow") == "first"))
    for bin_s in (None, 0.3, 1.0):
        (line,) = plot.throughput(swept, point=0, flow="first", bin_s=bin_s).get_lines()
        x, y = line.get_data()
        widths = [bin_s or 0.1] * (len(x) - 1)
        widths.append(4.0 - sum(widths))
        area = sum(rate * width for rate, width in zip(y, widths, strict=True))
        assert area == pytest.approx(rows["goodput_mbps"].sum() * 0.1)


def test_udp_has_delay_and_loss(radio: ranway.Results) -> None:
    udp = radio.flows.filter(pl.col("transport") == "udp")
    name, lost = udp.item(0, "flow"), udp.item(0, "lost_packets")
    (line,) = plot.delay(radio, point=0, flow=name).get_lines()
    rows = radio.samples.filter((pl.col("point") == 0) & (pl.col("flow") == name)).drop_nulls("owd_ms")
    assert list(line.get_ydata()) == pytest.approx(rows["owd_ms"].to_list())  # type: ignore[arg-type]
    (line,) = plot.delay_cdf(radio, point=0, flow=name).get_lines()
    x, y = line.get_data()
    median = udp.item(0, "owd_p50_ms")
    assert max(share for at, share in zip(x, y, strict=True) if at < median * 0.99) <= 0.5
    assert (y[0], y[-1]) == (0, pytest.approx(1))
    (line,) = plot.loss(radio, point=0, flow=name).get_lines()
    assert line.get_ydata()[-1] >= lost  # type: ignore[index]


def test_the_radio_plots_show_the_table(radio: ranway.Results) -> None:
    ue = radio.radio.item(0, "ue")
    rows = radio.radio.filter((pl.col("point") == 0) & (pl.col("ue") == ue))
    (line,) = plot.prbs(radio, point=0, ue=ue, direction="uplink").get_lines()
    assert list(line.get_ydata()) == pytest.approx((rows["ul_prbs"] * 100).to_list())  # type: ignore[arg-type]
    (line,) = plot.bler(radio, point=0, ue=ue, bin_s=100.0).get_lines()
    row = radio.ues.filter((pl.col("point") == 0) & (pl.col("ue") == ue) & (pl.col("direction") == "downlink"))
    assert list(line.get_ydata()) == pytest.approx([100 * row.item(0, "block_error_rate")], abs=0.5)
    with pytest.raises(ValueError, match="direction='sideways': must be 'downlink' or 'uplink'"):
        plot.mcs(radio, direction="sideways")  # type: ignore[arg-type]


def test_a_block_error_rate_needs_its_table(swept: ranway.Results) -> None:
    with pytest.raises(ValueError, match=r"record\.radio"):
        plot.bler(swept)


def test_a_distribution_rises_from_nothing_to_one(swept: ranway.Results) -> None:
    for line in plot.rtt_cdf(swept).get_lines():
        y = list(line.get_ydata())  # type: ignore[arg-type]
        assert (y[0], y[-1]) == (0, pytest.approx(1))
        assert y == sorted(y)


def test_labels_say_what_differs_and_no_more(swept: ranway.Results) -> None:
    assert labels(plot.rtt(swept, point=[0, 1], flow="first")) == ["loss = 0.0001", "loss = 0.01"]
    assert labels(plot.rtt(swept, point=0)) == ["first", "second"]
    assert labels(plot.rtt(swept, point=0, flow="first")) == []


def test_a_sweep_draws_means_and_intervals(swept: ranway.Results) -> None:
    ax = plot.sweep(swept, "loss", "throughput_mbps", "flows.first.cc", flow="first")
    assert labels(ax) == ["cubic", "vegas"]
    assert ax.get_xscale() == "log"
    (container, _) = (c for c in ax.containers if isinstance(c, ErrorbarContainer))
    stats = [
        p["flows"][0]["throughput_mbps"] for p in swept.summary["points"] if p["values"]["flows.first.cc"] == "cubic"
    ]
    assert list(container.lines[0].get_ydata()) == [s["mean"] for s in stats]  # type: ignore[arg-type]
    bars = container.lines[2][0].get_segments()
    assert [bar[1][1] - bar[0][1] for bar in bars] == pytest.approx([2 * (s["ci95"] or 0) for s in stats])


@pytest.mark.parametrize("name", ["throughput", "rtt", "cwnd", "in_flight", "delay", "queue"])
def test_runs_are_a_mean_and_a_band(name: str, swept: ranway.Results) -> None:
    ax = getattr(plot, name)(swept, run=None, point=0)
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    assert len(lines) == len(ax.collections) > 0
    if name == "rtt":
        rows = swept.samples.filter((pl.col("point") == 0) & (pl.col("flow") == "first")).drop_nulls("rtt_ms")
        at = rows.filter(pl.col("run") == 0)["t_s"][20]
        values = rows.filter(pl.col("t_s") == at)["rtt_ms"]
        assert values.len() == 2
        x, y = lines[0].get_data()
        where = list(x).index(at)
        assert y[where] == pytest.approx(values.mean())
        band = ax.collections[0].get_paths()[0].vertices
        reached = [vertex[1] for vertex in band if vertex[0] == at]
        # Student's t of one degree of freedom, and two runs.
        half = 12.7062 * float(values.std() or 0) / 2**0.5  # type: ignore[arg-type]
        assert max(reached) - min(reached) == pytest.approx(2 * half)


def test_points_of_names_stand_beside_each_other_and_ticks_are_the_swept_numbers(swept: ranway.Results) -> None:
    ax = plot.sweep(swept, "flows.first.cc")
    bars = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    places = [float(bar.lines[0].get_xdata()[0]) for bar in bars]  # type: ignore[index,arg-type]
    assert len(set(places)) == len(places) > 1
    ax = plot.sweep(swept, "loss")
    assert [float(text.get_text()) for text in ax.get_xticklabels()] == sorted({p["loss"] for p in swept.points})


def test_names_and_amounts_stand_on_an_axis(scenario: ranway.Scenario) -> None:
    axes = {"dumbbell.rate": ["9 Mbit/s", "2 Mbit/s"], "dumbbell.queue": ["fq", {"kind": "drop-tail", "packets": 9}]}
    results = ranway.run(scenario.set(runs=1).sweep(axes), progress=None)
    ax = plot.sweep(results, "dumbbell.queue", "rtt_p50_ms")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["fq", "drop-tail packets=9"]
    ax = plot.sweep(results, "dumbbell.rate", "utilisation", link=results.links["link"][0])
    assert ax.get_xlabel() == "dumbbell.rate (Mbit/s)"
    assert list(ax.get_lines()[0].get_xdata()) == [2, 9]  # type: ignore[arg-type]


def test_shares_of_time_are_stacked_to_a_hundred(swept: ranway.Results) -> None:
    ax = plot.limits(swept, flow="first")
    ends = [patch.get_x() + patch.get_width() for patch in ax.patches]  # type: ignore[attr-defined]
    assert max(ends) == pytest.approx(100)
    # Application, congestion window, receive window, pacing, send buffer, and the rest.
    assert len(ax.patches) == 4 * 6


def test_what_cannot_be_drawn_is_said(swept: ranway.Results) -> None:
    for draw, message in (
        (lambda: plot.rtt(swept, flow="third"), "no samples for run=0, flow='third'"),
        (lambda: plot.rtt(swept, flwo="first"), "'flwo' is not a column of samples"),
        (lambda: plot.sweep(swept, "rate"), "x='rate' was not swept; swept keys: flows.first.cc, loss"),
        (lambda: plot.sweep(swept, "loss", "speed"), "y='speed' is not a summary value"),
        (lambda: plot.limits(swept, los=1), "'los' is unknown here"),
    ):
        with pytest.raises(ValueError, match=message):
            draw()
    assert plt.get_fignums() == []


def test_captures_are_drawn(swept: ranway.Results, tmp_path: Path) -> None:
    flow = "tcp a:1 > b:2"
    rows = [
        ("data", 0.1, 1, 1001),
        ("data", 0.2, 1001, 2001),
        ("ack", 0.3, 1001, 9001),
        ("sack", 0.3, 1001, 2001),
        ("retransmission", 0.4, 1, 1001),
        ("ack", 0.5, 2001, 9001),
    ]
    segments: list[dict[str, object]] = [
        {"flow": flow, "conn": 0, "t_s": t, "kind": kind, "start": start, "end": end} for kind, t, start, end in rows
    ]
    results = with_rows(swept, tmp_path / "out", segments=segments)
    ax = plot.time_sequence(results, flow=flow)
    assert labels(ax) == ["data", "retransmission", "SACK", "acknowledged", "window"]
    assert ax.get_ylabel() == "Sequence number (MB)"
    with pytest.raises(ValueError, match="no segments for"):
        plot.time_sequence(results, flow="x")


def test_stacks_add_up_and_are_of_one_point(swept: ranway.Results) -> None:
    with pytest.raises(ValueError, match="several points cannot be stacked"):
        plot.in_flight_stacked(swept)
    ax = plot.in_flight_stacked(swept, point=0)
    top = max(path.vertices[:, 1].max() for area in ax.collections for path in area.get_paths())
    rows = swept.samples.filter((pl.col("point") == 0) & (pl.col("run") == 0))
    most = rows.group_by("t_s").agg(pl.col("in_flight_bytes").sum())["in_flight_bytes"].max()
    assert isinstance(most, int)
    assert top == pytest.approx(most / 1e3)


def flying(flow: str, conn: int, at: dict[float, int | None]) -> list[dict[str, object]]:
    """The rows of `samples` of a connection that `ranway measure` sampled, with its bytes in flight."""
    row: dict[str, object] = {"flow": flow, "conn": conn, "goodput_mbps": 1.0, "limit": "cwnd", "state": "avoidance"}
    return [{**row, "t_s": t, "in_flight_bytes": count} for t, count in at.items()]


def layers(ax: Axes, at: float) -> list[tuple[float, float]]:
    """The lower and the upper edge of each layer of a stack near a moment, in the table's unit."""
    edges = []
    for area in ax.collections:
        ((x, y),) = (path.vertices.T for path in area.get_paths())
        nearest = min(abs(x - at))
        there = [1e3 * edge for t, edge in zip(x, y, strict=True) if abs(t - at) <= nearest]
        edges.append((min(there), max(there)))
    return edges


def test_the_connections_of_a_measurement_are_stacked_although_their_moments_differ(
    swept: ranway.Results, tmp_path: Path
) -> None:
    # Flow by flow, of the same name, every 10 ms, one connection read after the other.
    def rows(flow: str, conn: int, start: float = 0.0, known: bool = True) -> list[dict[str, object]]:
        moments = (start + 0.01 * i + 0.0002 * conn for i in range(200))
        return flying(flow, conn, {t: 100_000 * (conn + 1) if known else None for t in moments})

    def stack(*flows: list[dict[str, object]]) -> Axes:
        rows = [row for flow in flows for row in flow]
        return plot.in_flight_stacked(with_rows(swept, tmp_path / "out", samples=rows), point=0)

    one = stack(*(rows("upload", conn) for conn in range(4)))
    edges = [(0, 100_000), (100_000, 300_000), (300_000, 600_000), (600_000, 1_000_000)]
    assert layers(one, 1.0) == [pytest.approx(edge) for edge in edges]
    assert (labels(one), len({tuple(area.get_facecolor()[0]) for area in one.collections})) == ([], 1)
    two = stack(*(rows(f"upload-{('cubic', 'bbr')[conn % 2]}", conn) for conn in range(4)))
    assert labels(two) == ["upload-cubic", "upload-bbr"]
    # The copies of a flow lie on one another.
    assert [top for _, top in layers(two, 1.0)] == pytest.approx([100_000, 400_000, 600_000, 1_000_000])
    # A download's sender is elsewhere; before and after its samples a connection has nothing in flight.
    unknown = rows("download", 0, known=False)
    late = stack(unknown, rows("upload", 0), rows("upload", 1, start=1.0))
    assert [[top for _, top in layers(late, t)] for t in (0.5, 1.5, 2.5)] == [
        pytest.approx(tops) for tops in ([100_000, 100_000], [100_000, 300_000], [0, 200_000])
    ]
    with pytest.raises(ValueError, match="the bytes in flight of these flows are not known"):
        stack(unknown)


def test_what_is_in_flight_between_samples_is_interpolated(swept: ranway.Results, tmp_path: Path) -> None:
    rows = flying("upload", 0, {0.0: 0, 2.0: 200_000}) + flying("upload", 1, {1.0: 100_000, 3.0: 300_000})
    ax = plot.in_flight_stacked(with_rows(swept, tmp_path / "out", samples=rows), point=0)
    _, top = (path.vertices for area in ax.collections for path in area.get_paths())
    assert {(float(t), float(y)) for t, y in top} >= {(0, 0), (1, 200), (2, 400), (3, 300)}


OVER_TIME = ["throughput", "rtt", "cwnd", "in_flight", "in_flight_stacked", "delay", "loss", "backlog", "sinr"]


@pytest.mark.parametrize("name", OVER_TIME)
def test_cells_are_marked_on_axes_of_time(name: str, drive: ranway.Results) -> None:
    ax = getattr(plot, name)(drive, point=0)
    (handover,) = drive.mobility.filter(pl.col("event") == "connected", pl.col("point") == 0)["t_s"]
    assert marks(ax) == [handover]
    assert texts(ax) == ["cell-1", "cell-2"]
    low, high = ax.get_xlim()
    assert 0 < handover < high < 21
    assert low > -1


def test_the_same_handover_of_several_points_is_marked_once(drive: ranway.Results) -> None:
    assert drive.mobility.filter(pl.col("event") == "connected").height == 2
    assert len(marks(plot.rtt(drive, flow="download"))) == 1


def test_outages_are_shaded_and_other_changes_marked_on_axes_of_time(drive: ranway.Results, tmp_path: Path) -> None:
    given = [
        {"t_s": 2.0, "command": "outage", "subject": "", "value": "10 s", "until_s": 12.0},
        {"t_s": 14.0, "command": "rate", "subject": "s1", "value": "off"},
    ]
    ax = plot.throughput(with_rows(drive, tmp_path / "out", commands=given), point=0)
    assert {"outage 10 s", "rate s1 off"} <= set(texts(ax))
    spans = {str(patch.get_label()): patch.get_window_extent() for patch in ax.patches}
    seconds = [float(x) for x in ax.transData.inverted().transform(spans["_outages"])[:, 0]]
    assert seconds == pytest.approx([2, 12])
    assert "_commands" in spans
    assert "outage 10 s" not in texts(plot.throughput(drive, point=0))


def test_marks_are_of_the_ues_that_are_drawn(drive: ranway.Results, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"t_s": 3.0, "ue": "bus", "event": "connected", "cell": "cell-9", "interruption_ms": 30.0},
        {"t_s": 4.0, "ue": "car", "event": "triggered", "cell": "cell-2"},
        {"t_s": 6.0, "ue": "car", "event": "link-lost", "cell": "cell-1"},
        {"t_s": 8.0, "ue": "car", "event": "connected", "cell": "cell-2", "interruption_ms": 2000.0},
        {"t_s": 30.0, "ue": "car", "event": "connected", "cell": "cell-1", "interruption_ms": 30.0},
        {"run": 1, "t_s": 5.0, "ue": "car", "event": "connected", "cell": "cell-1", "interruption_ms": 30.0},
        {"point": 1, "t_s": 7.0, "ue": "car", "event": "connected", "cell": "cell-1", "interruption_ms": 30.0},
    ]
    results = with_rows(drive, tmp_path / "out", mobility=rows)
    for ax in (plot.rtt(results, point=0, flow="download"), plot.sinr(results, point=0)):
        assert (marks(ax), marks(ax, "_failures")) == ([8.0], [6.0])
        assert texts(ax) == ["cell-1", "link-lost", "cell-2"]
    assert marks(plot.rtt(results, point=1, flow="download")) == [7.0]
    # A link belongs to no UE.
    queue = plot.queue(results, point=0, link="s1")
    assert (marks(queue), marks(queue, "_failures")) == ([3.0, 8.0], [6.0])
    assert texts(queue) == ["bus: cell-9", "car: link-lost", "car: cell-2"]


def test_cells_of_a_real_modem_are_marked(swept: ranway.Results, tmp_path: Path) -> None:
    modem: dict[str, object] = {"source": "modemmanager", "modem": "wwan0", "technology": "lte"}
    results = with_rows(
        swept,
        tmp_path / "out",
        modem=[{**modem, "t_s": 0.0}, {**modem, "t_s": 1.0, "pci": 7}, {**modem, "t_s": 2.0, "cell": 52200194}],
        mobility=[{"t_s": 2.0, "ue": "wwan0", "event": "changed", "cell": "52200194"}],
        segments=[
            {"flow": "tcp a:1 > b:2", "conn": 0, "t_s": t, "kind": "data", "start": 1, "end": 9} for t in (1.0, 3.0)
        ],
    )
    for ax in (plot.cwnd(results, point=0), plot.in_flight_stacked(results, point=0), plot.time_sequence(results)):
        assert marks(ax) == [2.0]
        assert texts(ax) == ["7", "52200194"]
    assert marks(plot.cwnd(results, point=1)) == []


def test_names_that_do_not_fit_are_left_out_and_so_are_marks_in_a_crowd(drive: ranway.Results, tmp_path: Path) -> None:
    def moving(step: float) -> ranway.Results:
        event = {"ue": "car", "event": "connected", "interruption_ms": 30.0}
        rows: list[dict[str, object]] = [
            {**event, "t_s": step * i, "cell": f"cell-{i % 2}"} for i in range(1, int(19 / step))
        ]
        return with_rows(drive, tmp_path / "out", mobility=rows)

    some = plot.rtt(moving(0.5), point=0, flow="download")
    assert len(marks(some)) == 37
    assert 10 < len(texts(some)) < 30
    crowd = plot.rtt(moving(0.25), point=0, flow="download")
    assert (marks(crowd), texts(crowd)) == ([], [])


def test_lines_of_probes_break_where_they_pause_before_the_load(swept: ranway.Results, tmp_path: Path) -> None:
    def drawn(load_begins: float) -> list[list[float]]:
        before: list[dict[str, object]] = [
            {"t_s": t, "probe": "echo", "phase": "before", "rtt_ms": 20.0} for t in (0.0, 0.1, 0.2)
        ]
        during = [{"t_s": load_begins + t, "probe": "echo", "phase": "during", "rtt_ms": 90.0} for t in (0.0, 0.5)]
        lines = plot.latency(with_rows(swept, tmp_path / str(load_begins), latencies=before + during)).get_lines()
        return [[float(y) for y in line.get_ydata()] for line in lines]  # type: ignore[union-attr]

    assert drawn(2.3) == [[20, 20, 20], [90, 90]]
    assert drawn(0.35) == [[20, 20, 20, 90, 90]]


def test_measurements_are_drawn(swept: ranway.Results, tmp_path: Path) -> None:
    modem: dict[str, object] = {"source": "modemmanager", "modem": "wwan0", "technology": "lte", "cell": 8}
    results = with_rows(
        swept,
        tmp_path / "out",
        latencies=[
            {"t_s": 0.5, "probe": "echo", "phase": "before", "rtt_ms": 20.0},
            {"t_s": 1.0, "probe": "hop", "hop": 2, "phase": "during", "rtt_ms": 30.0},
            {"t_s": 1.5, "probe": "echo", "phase": "during"},
            {"t_s": 2.5, "probe": "echo", "phase": "after", "rtt_ms": 40.0},
        ],
        waits=[
            {"t_s": 1.0, "modem_ms": 5.0, "total_ms": 7.0, "worst": "modem"},
            {"t_s": 2.0, "total_ms": 8.0, "worst": ""},
        ],
        modem=[
            {**modem, "t_s": 0.0, "rsrp_dbm": -90.0},
            {**modem, "t_s": 1.0},
            {**modem, "t_s": 2.0, "cell": None, "rsrp_dbm": -80.0},
        ],
        mobility=[{"t_s": 2.0, "ue": "wwan0", "event": "changed", "cell": "9"}],
    )
    latency, waits, signal = plot.latency(results), plot.waits(results), plot.signal(results)
    assert labels(latency) == ["ICMP echo", "router 2"]
    assert list(latency.get_lines()[0].get_ydata()) == [20, 40]  # type: ignore[arg-type]
    assert labels(waits) == ["modem and radio", "whole path"]
    assert list(waits.get_lines()[1].get_ydata()) == [7, 8]  # type: ignore[arg-type]
    (line,) = signal.get_lines()
    assert [str(y) for y in line.get_ydata()] == ["-90.0", "nan", "-80.0"]  # type: ignore[union-attr]
    assert (signal.get_ylabel(), labels(signal)) == ("RSRP (dBm)", [])
    for ax in (latency, waits, signal):
        assert (marks(ax), texts(ax)) == ([2.0], ["8", "9"])
    with pytest.raises(ValueError, match="quantity='power': must be one of rsrp, rsrq, rssi, sinr"):
        plot.signal(results, quantity="power")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no waits for run=0"):
        plot.waits(swept)
