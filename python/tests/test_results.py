"""Tables and summary: what they hold, and that every reader finds the same in them."""

import builtins
import io
import subprocess
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import pandas
import polars as pl
import pyarrow
import pytest
from pyarrow import parquet

import ranway
from conftest import TOML

ROOT = Path(__file__).parents[2]
TABLES = ["flows", "samples", "rtts", "owds", "queues", "links", "events", "transfers"]
RADIO = ["ues", "radio", "mobility", "transmissions"]
TABLES += [*RADIO, "peps", "proxies"]
CAPTURES = ["tcp_flows", "tcp_samples", "segments", "clocks"]


def test_the_command_and_the_package_give_the_same(tmp_path: Path, command: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TOML + "[sweep]\nloss = [1e-4, 1e-2]\n")
    line = [command, "run", path, "--seed", "9", "--runs", "3", "--quiet", "--out", tmp_path / "command"]
    subprocess.run(line, check=True)
    results = ranway.run(path, seed=9, runs=3, progress=None)
    results.write(tmp_path / "package")
    assert ranway.read(tmp_path / "command") == results
    for name in [*(f"{table}.parquet" for table in TABLES), "meta.json", "summary.json"]:
        assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "package" / name).read_bytes(), name


def test_what_is_written_is_what_is_read(tmp_path: Path, swept: ranway.Results) -> None:
    swept.write(tmp_path / "out")
    swept.write(tmp_path / "out")
    again = ranway.read(tmp_path / "out")
    assert again == swept
    assert (again.summary, again.meta, again.timing) == (swept.summary, swept.meta, swept.timing)
    assert all(again.table(table).equals(swept.table(table)) for table in TABLES)


def test_a_row_has_the_values_that_were_swept_at_its_point(swept: ranway.Results) -> None:
    for table in ("flows", "samples", "rtts", "queues", "links"):
        frame = swept.table(table)
        assert frame.columns[:4] == ["point", "run", "flows.first.cc", "loss"]
        assert frame.schema["loss"] == pl.Float64
        for point, cc, loss in frame.select("point", "flows.first.cc", "loss").unique().iter_rows():
            assert swept.points[point] == {"flows.first.cc": cc, "loss": loss}
    first = swept.flows.filter(pl.col("flow") == "first")
    assert first["cc"].cast(pl.String).to_list() == first["flows.first.cc"].to_list()


def test_a_swept_key_that_is_a_column_already_gets_a_name_of_its_own() -> None:
    scenario = ranway.Scenario("dumbbell").set(duration="11 s").sweep(cc=["cubic", "bbr"])
    results = ranway.run(scenario, progress=None)
    assert results.flows["sweep.cc"].to_list() == results.flows["cc"].cast(pl.String).to_list() == ["cubic", "bbr"]
    assert results.samples.columns[:3] == ["point", "run", "cc"]


def test_values_of_different_kinds_are_texts_or_floats(scenario: ranway.Scenario) -> None:
    short = scenario.set(duration="1100 ms", runs=1)
    queues = ["codel", {"kind": "drop-tail", "packets": 9}]
    flows = ranway.run(short.sweep({"dumbbell.queue": queues}, loss=[0, 0.5]), progress=None).flows
    assert flows.schema["dumbbell.queue"] == pl.String
    assert flows.schema["loss"] == pl.Float64


def test_an_empty_table_has_its_columns(swept: ranway.Results) -> None:
    assert (swept.events.height, swept.transfers.height) == (0, 0)
    assert {"t_ns", "kind", "loss"} <= set(swept.events.columns)
    assert [swept.table(table).height for table in [*RADIO, "peps", "proxies"]] == [0] * 6
    assert {"ue", "direction", "queue_ms", "loss"} <= set(swept.ues.columns)
    assert [swept.table(table).height for table in CAPTURES] == [0] * 4
    assert {"flow", "kind", "start", "end"} <= set(swept.table("segments").columns)


def test_the_tables_of_ues_are_frames_like_the_others(tmp_path: Path, swept: ranway.Results) -> None:
    swept.write(tmp_path / "out")
    for table in RADIO:
        path = tmp_path / "out" / f"{table}.parquet"
        schema = parquet.read_schema(path)
        texts = [field.name for field in schema if pyarrow.types.is_dictionary(field.type)]
        truths = [field.name for field in schema if pyarrow.types.is_boolean(field.type)]
        values = {name: f"{name}-{table}" if name in texts else name in truths or 1 for name in schema.names}
        rows = [{**values, "point": point, "run": run} for point in (0, 3) for run in (0, 1)]
        parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), path, compression="zstd")
    again = ranway.read(tmp_path / "out")
    for table, frame in zip(RADIO, [again.ues, again.radio, again.mobility, again.transmissions], strict=True):
        assert frame.columns[:4] == ["point", "run", "flows.first.cc", "loss"]
        assert frame["ue"].cast(pl.String).to_list() == [f"ue-{table}"] * 4
        assert frame["loss"].to_list() == [swept.points[point]["loss"] for point in (0, 0, 3, 3)]
        assert again.table(table).equals(frame)
    assert again.radio["sinr_db"].to_list() == [1.0] * 4
    assert again.transmissions["decoded"].to_list() == [True] * 4


def test_every_reader_opens_the_files_as_they_are(tmp_path: Path, swept: ranway.Results) -> None:
    swept.write(tmp_path / "out")
    for table in TABLES:
        path = tmp_path / "out" / f"{table}.parquet"
        rows = swept.table(table).height
        assert pl.read_parquet(path).height == rows
        assert len(pandas.read_parquet(path)) == rows
        assert duckdb.sql(f"select count(*) from '{path}'").fetchall() == [(rows,)]
    path = tmp_path / "out" / "flows.parquet"
    by_duckdb = duckdb.sql(f"select flow, sum(bytes)::bigint from '{path}' group by flow order by flow").fetchall()
    by_pandas = pandas.read_parquet(path).groupby("flow", observed=True)["bytes"].sum()
    by_polars = swept.flows.group_by(pl.col("flow").cast(pl.String)).agg(pl.col("bytes").sum()).sort("flow").rows()
    assert by_duckdb == by_polars == list(by_pandas.astype(int).items())


def test_a_table_comes_as_polars_pandas_or_arrow(swept: ranway.Results) -> None:
    polars, frame, arrow = swept.flows, swept.table("flows", as_="pandas"), swept.table("flows", as_="arrow")
    assert polars.columns == list(frame.columns) == arrow.column_names
    assert frame["bytes"].tolist() == arrow["bytes"].to_pylist() == polars["bytes"].to_list()
    assert frame["flow"].tolist() == polars["flow"].to_list()
    assert swept.table("flows") is swept.flows


SIZES = """
title = "Transfers of a size"
duration = "5 s"
runs = 5
[sweep]
size = ["1 MB", "100 kB"]
"flows.page.cc" = ["cubic", "bbr"]
[parameters]
size = "1 MB"
[dumbbell]
rate = "20 Mbit/s"
rtt = "40 ms"
loss = { kind = "random", probability = 0.002 }
[[flows]]
name = "page"
start_jitter = "50 ms"
traffic = { kind = "transfer", size = "${size}" }
"""


@pytest.fixture(scope="module")
def sizes() -> ranway.Results:
    return ranway.run(ranway.Scenario.from_toml(SIZES))


def test_swept_amounts_have_a_column_of_numbers(sizes: ranway.Results) -> None:
    for frame in (sizes.flows, sizes.table("links"), sizes.summary_frame()):
        pairs = set(frame.select("size", "size_bytes").rows())
        assert pairs == {("1 MB", 1e6), ("100 kB", 1e5)}
    frame = sizes.summary_frame("pandas").sort_values("size_bytes")
    assert list(frame["size"].unique()) == ["100 kB", "1 MB"]


def test_means_are_those_of_the_summary_in_each_form(sizes: ranway.Results) -> None:
    means = sizes.means()
    assert means.height == 4
    for point, row in zip(sizes.summary["points"], means.iter_rows(named=True), strict=True):
        flow = point["flows"][0]
        assert {key: row[key] for key in point["values"]} == point["values"] and row["flow"] == "page"
        assert row["goodput_mbps"] == flow["goodput_mbps"]["mean"]
        assert row["completion_p50_s_ci95"] == flow["completion_p50_s"]["ci95"]
        assert row["completion_p50_s_n"] == 5
    assert sizes.means(["rtt_p95_ms"]).columns[-3:] == ["rtt_p95_ms", "rtt_p95_ms_ci95", "rtt_p95_ms_n"]
    assert list(sizes.means(as_="pandas")["size_bytes"]) == means["size_bytes"].to_list()
    # The types are the same where nothing has an interval, as with one run.
    for frame in (means, ranway.run(ranway.Scenario("dumbbell").set(duration="12 s"), runs=1, progress=None).means()):
        schema = frame.schema
        types = {
            suffix: {schema[name] for name in schema if name.endswith(suffix)} for suffix in ("_mbps", "_ci95", "_n")
        }
        assert types == {"_mbps": {pl.Float64}, "_ci95": {pl.Float64}, "_n": {pl.Int64}}
    assert pl.read_csv(io.StringIO(sizes.means(as_="csv"))).height == 4
    tex = sizes.means(["goodput_mbps", "completion_p50_s"], as_="latex")
    assert tex.count(r" \\") == 5 and "$\\pm$" in tex and r"\begin{tabular}{lllrr}" in tex


def test_differences_are_paired_by_run(sizes: ranway.Results) -> None:
    paired = sizes.means(["completion_s"], against={"flows.page.cc": "cubic"})
    frame = sizes.summary_frame()
    assert paired["cc"].to_list() == ["bbr", "bbr"]
    for row in paired.iter_rows(named=True):
        rows = frame.filter(pl.col("size") == row["size"]).sort("run")
        bbr, cubic = (rows.filter(pl.col("flows.page.cc") == cc)["completion_s"] for cc in ("bbr", "cubic"))
        differences = bbr - cubic
        assert row["completion_s"] == pytest.approx(differences.mean())
        half = 2.7764 * float(differences.std() or 0) / 5**0.5
        assert row["completion_s_ci95"] == pytest.approx(half)
    with pytest.raises(ValueError, match=r"`flows.page.cc` is never reno: it is cubic, bbr"):
        sizes.means(against={"cc": "reno"})
    with pytest.raises(ValueError, match=r"`loss` is not one of the swept keys: flows.page.cc, size"):
        sizes.means(against={"loss": 1})
    with pytest.raises(ValueError, match=r"there is no figure `goodput`: there are goodput_mbps, "):
        sizes.means(["goodput"])


def test_a_wrong_table_or_kind_is_named(swept: ranway.Results) -> None:
    with pytest.raises(ValueError, match="unknown table 'flow'; the tables are flows, samples"):
        swept.table("flow")
    with pytest.raises(ValueError, match="as_='numpy'"):
        swept.table("flows", as_="numpy")  # type: ignore[call-overload]


def test_what_is_not_installed_is_named(swept: ranway.Results, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.split(".")[0] in ("matplotlib", "pyarrow", "pandas"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install ranway\[plot\]"):
        ranway.plot.rtt(swept)
    with pytest.raises(ModuleNotFoundError, match=r"pip install ranway\[pandas\]"):
        swept.table("links", as_="pandas")


def test_the_summary_is_that_of_the_tables(swept: ranway.Results) -> None:
    for point in swept.summary["points"]:
        for flow in point["flows"]:
            rows = swept.flows.filter((pl.col("point") == point["point"]) & (pl.col("flow") == flow["flow"]))
            # Runs that are identical count as one.
            assert (rows.height, flow["goodput_mbps"]["n"]) == (2, rows["goodput_mbps"].n_unique())
            assert flow["goodput_mbps"]["mean"] == pytest.approx(fmean(rows["goodput_mbps"]))
            shares = [pl.col(f"limited_{by}") for by in ("app", "cwnd", "rwnd", "pacing", "sndbuf", "other")]
            assert rows.select(pl.sum_horizontal(shares)).to_series().to_list() == pytest.approx([1, 1])


def test_results_say_what_they_are(swept: ranway.Results) -> None:
    assert repr(swept) == "<Results of 'Two flows': 4 points x 2 runs, seed 7>"
    assert swept != 1


def test_the_summary_frame_has_a_row_for_each_point_run_and_flow(swept: ranway.Results) -> None:
    frame = swept.summary_frame()
    assert frame.height == 4 * 2 * 2
    assert frame["point", "run", "flow"].unique().height == frame.height
    for point in swept.summary["points"]:
        for flow in point["flows"]:
            own = frame.filter((pl.col("point") == point["point"]) & (pl.col("flow") == flow["flow"]))
            for name in ("goodput_mbps", "throughput_mbps", "rtt_p50_ms", "rtt_p95_ms", "retransmission_rate"):
                assert own[name].mean() == pytest.approx(flow[name]["mean"], rel=1e-9), name


def test_a_column_of_the_summary_frame_is_what_the_summary_says() -> None:
    text = """
duration = "4 s"
runs = 3
[dumbbell]
rate = "4 Mbit/s"
rtt = "40 ms"
queue = { kind = "drop-tail", packets = 20 }
loss = 0.01
[[flows]]
name = "pages"
count = 2
traffic = { kind = "short-flows", count = 21, interval = "150 ms", size = "20 kB" }
[[flows]]
name = "bulk"
[[flows]]
name = "call"
count = 2
traffic = { kind = "cbr", rate = "1 Mbit/s", packet = "500 B" }
"""
    results = ranway.run(ranway.Scenario.from_toml(text), progress=None)
    frame = results.summary_frame()
    compared = set()
    for flow in results.summary["points"][0]["flows"]:
        own = frame.filter(pl.col("flow") == flow["flow"])
        for name in set(flow) & set(frame.columns):
            if not isinstance(flow[name], dict) or "mean" not in flow[name]:
                assert not isinstance(flow[name], dict), name
                continue
            compared.add(name)
            assert own[name].mean() == pytest.approx(flow[name]["mean"], rel=1e-9), (flow["flow"], name)
        missing = {name for name in _FIGURES if name in frame.columns and flow.get(name) is None}
        assert all(own[name].null_count() == own.height for name in missing), (flow["flow"], missing)
    assert compared >= set(_FIGURES), set(_FIGURES) - compared


_FIGURES = (
    "goodput_mbps",
    "throughput_mbps",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "owd_p50_ms",
    "owd_p95_ms",
    "loss",
    "transfers",
    "transfers_finished",
    "completion_s",
    "completion_p50_s",
    "completion_p95_s",
    "retransmission_rate",
)


def test_the_summary_frame_tells_delay_and_loss_of_udp() -> None:
    text = """
duration = "5 s"
[dumbbell]
rate = "1 Mbit/s"
rtt = "20 ms"
queue = { kind = "drop-tail", packets = 10 }
[[flows]]
name = "call"
count = 2
traffic = { kind = "cbr", rate = "1 Mbit/s", packet = "500 B" }
"""
    results = ranway.run(ranway.Scenario.from_toml(text), progress=None)
    (row,) = results.summary_frame().to_dicts()
    assert (row["copies"], row["retransmission_rate"], row["rtt_p50_ms"]) == (2, None, None)
    # Half of it does not fit, and what fits has waited for ten packets of 4 ms.
    assert row["loss"] == pytest.approx(0.5, abs=0.03)
    assert row["owd_p50_ms"] == pytest.approx(10 + 4 * 11, rel=0.1)


def test_a_notebook_shows_results_and_scenarios(swept: ranway.Results, scenario: ranway.Scenario) -> None:
    page = swept._repr_html_()
    assert "<b>Two flows</b>" in page and page.count("<tr>") == 1 + 16
    assert "goodput_mbps" in page and "completion_p50_s" not in page
    page = scenario.sweep(loss=[1e-4, 1e-2])._repr_html_()
    assert "<th>loss</th>" in page and "<td>0.0001</td>" in page
    hostile = ranway.Scenario.from_toml('title = "<script>"\n' + scenario._text.replace('title = "Two flows"', ""))
    assert "<script>" not in hostile._repr_html_()
