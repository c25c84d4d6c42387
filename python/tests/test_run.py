"""Running: progress, threads, Ctrl-C, determinism, the disk."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import ranway

# Longer than any test waits.
ENDLESS = {"duration": "1000000 s", "record.samples": "off"}


def test_the_number_of_threads_changes_nothing(scenario: ranway.Scenario) -> None:
    one, many = (ranway.run(scenario, runs=4, threads=threads, progress=None) for threads in (1, 4))
    assert one == many
    assert (one.timing["threads"], many.timing["threads"]) == (1, 4)


def test_another_seed_gives_other_results(scenario: ranway.Scenario) -> None:
    one, other = (ranway.run(scenario, seed=seed, progress=None) for seed in (1, 2))
    assert one != other
    assert not one.flows.equals(other.flows)


def test_runs_and_seed_are_those_of_the_call(scenario: ranway.Scenario) -> None:
    results = ranway.run(scenario, runs=3, seed=2**40, progress=None)
    assert (results.meta["runs"], results.meta["seed"]) == (3, 2**40)
    assert sorted(set(results.flows["run"])) == [0, 1, 2]


def test_a_path_or_a_name_is_taken_for_a_scenario(tmp_path: Path) -> None:
    assert ranway.run("bufferbloat", progress=None).meta["title"] == "Bufferbloat"
    with pytest.raises(ranway.ScenarioError, match="no such file"):
        ranway.run(tmp_path / "none.toml")


def test_progress_is_told_in_the_calling_thread_and_rises_to_the_end(scenario: ranway.Scenario) -> None:
    told: list[tuple[int, ranway.Progress]] = []
    ranway.run(scenario, runs=6, progress=lambda p: told.append((threading.get_ident(), p)))
    assert {thread for thread, _ in told} == {threading.get_ident()}
    shares = [p.share for _, p in told]
    assert shares == sorted(shares)
    assert told[-1][1] == ranway.Progress(1.0, 6, 6)


def test_an_exception_of_the_progress_function_stops_the_run(tmp_path: Path, scenario: ranway.Scenario) -> None:
    def fail(_: ranway.Progress) -> None:
        raise RuntimeError("enough")

    start = time.monotonic()
    with pytest.raises(RuntimeError, match="enough"):
        ranway.run(scenario.set(ENDLESS), progress=fail, out=tmp_path / "out")
    assert time.monotonic() - start < 10
    assert list(tmp_path.iterdir()) == []


def test_a_bar_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, scenario: ranway.Scenario) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stderr, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stderr)
        ranway.run(scenario)
        assert ("Two flows [" in stderr.getvalue()) == shown
    monkeypatch.setattr(sys, "stderr", None)
    ranway.run(scenario)


def test_other_python_threads_run_meanwhile(scenario: ranway.Scenario) -> None:
    stop = threading.Event()

    def until_stopped(_: ranway.Progress) -> None:
        if stop.is_set():
            raise InterruptedError

    def simulate() -> None:
        with pytest.raises(InterruptedError):
            ranway.run(scenario.set(ENDLESS), threads=1, progress=until_stopped)

    thread = threading.Thread(target=simulate)
    thread.start()
    # Only a thread that gets the interpreter while the other one simulates comes to the end of this.
    ticks = 0
    while ticks < 20 and thread.is_alive():
        time.sleep(0.005)
        ticks += 1
    alive = thread.is_alive()
    stop.set()
    thread.join(10)
    assert (ticks, alive, thread.is_alive()) == (20, True, False)


def test_ctrl_c_stops_a_run_and_leaves_nothing(tmp_path: Path) -> None:
    script = f"""
import ranway
scenario = ranway.Scenario("dumbbell").set({ENDLESS})
try:
    ranway.run(scenario, progress=lambda p: print("running", flush=True), out={str(tmp_path / "out")!r})
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        try:
            out, _ = process.communicate(timeout=10)
        finally:
            process.kill()
    assert process.returncode == 0
    assert out.splitlines()[-1] == "interrupted"
    assert list(tmp_path.iterdir()) == []


def test_out_holds_results_and_the_captures_that_were_asked_for(tmp_path: Path, scenario: ranway.Scenario) -> None:
    captured = scenario.set({"record.pcap": ["*"], "duration": "2 s", "runs": 1})
    results = ranway.run(captured, progress=None, out=tmp_path / "deep" / "out")
    assert ranway.read(tmp_path / "deep" / "out") == results
    captures = list((tmp_path / "deep" / "out" / "captures").iterdir())
    assert [capture.name for capture in captures] == ["point-0-run-0.pcapng"]
    assert captures[0].stat().st_size > 10_000


def test_what_the_system_refuses_is_an_os_error(tmp_path: Path, scenario: ranway.Scenario) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=str(tmp_path)):
        ranway.run(scenario, progress=None, out=tmp_path / "file" / "out")
    with pytest.raises(FileNotFoundError):
        ranway.read(tmp_path / "none")


def test_a_directory_with_other_things_is_refused_before_the_run(tmp_path: Path, scenario: ranway.Scenario) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ranway.RanwayError, match=r'holds "thesis.tex", which is not part of results'):
        ranway.run(scenario.set(ENDLESS), progress=None, out=tmp_path)
    with pytest.raises(ranway.RanwayError, match="holds no results"):
        ranway.read(tmp_path)


def test_a_trace_that_is_none_is_a_scenario_error(tmp_path: Path, scenario: ranway.Scenario) -> None:
    trace = tmp_path / "t.trace"
    trace.write_text("5\n3\n")
    with pytest.raises(ranway.ScenarioError, match=r"t\.trace"):
        ranway.run(scenario.set({"dumbbell.rate": {"kind": "trace", "file": trace}}), progress=None)


def test_no_threads_are_no_number_of_threads(scenario: ranway.Scenario) -> None:
    with pytest.raises(ValueError, match="threads=0"):
        ranway.run(scenario, threads=0)


def test_a_report_is_one_page_as_readable_as_any_file(tmp_path: Path, swept: ranway.Results) -> None:
    swept.report(tmp_path / "r.html")
    (tmp_path / "plain").touch()
    assert (tmp_path / "r.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert os.stat(tmp_path / "r.html").st_mode == os.stat(tmp_path / "plain").st_mode
    with pytest.raises(FileNotFoundError):
        swept.report(tmp_path / "none" / "r.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain", "r.html"]
