"""The pytest plugin: it skips where emulation is impossible, and runs tests again whose emulation was late."""

from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

# Where the package is installed, pytest has found it; it takes a plugin under one name only.
PLUGIN = [] if entry_points(group="pytest11", name="ranway") else ["-p", "ranway.pytest_plugin"]

# Stands for `ranway.emulate`: an emulation that was late as often as LATE says.
FAKE = """
import os
import pytest
import ranway
from ranway import pytest_plugin

LATE = int(os.environ.get("LATE", "0"))
started = []

class Results:
    def write(self, directory):
        directory.mkdir(exist_ok=True)
        (directory / "report.html").write_text("a page")

    def __init__(self, valid):
        self.timing = {"lateness": {"valid": valid, "p99_ms": 7.0, "bound_ms": 0.5, "missed": 0}}

class Fake:
    def __init__(self):
        self.ended = False
        started.append(self)
        self.valid = len(started) > LATE

    @property
    def results(self):
        if not self.ended:
            raise RuntimeError("still running")
        return Results(self.valid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True

@pytest.fixture(autouse=True)
def fake(monkeypatch):
    monkeypatch.setattr(ranway, "emulate", lambda *args, **options: Fake())
    monkeypatch.setattr(pytest_plugin, "missing", lambda: os.environ.get("MISSING"))
"""

TEST = """
import conftest

def test_of_an_application(ranway_emulate):
    with ranway_emulate("dumbbell"):
        pass
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("LATE", "MISSING"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeconftest(FAKE)
    pytester.makepyfile(TEST)
    return pytester


def run(inner: pytest.Pytester, *options: str) -> pytest.RunResult:
    return inner.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "-rs", *options)


def test_an_emulation_in_time_runs_once_and_passes(inner: pytest.Pytester) -> None:
    run(inner).assert_outcomes(passed=1)


def test_where_emulation_is_impossible_the_test_is_skipped_and_the_reason_is_told(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISSING", "emulation needs root")
    result = run(inner)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*emulation needs root*"])
    run(inner, "--ranway-required").assert_outcomes(errors=1)


def test_a_late_emulation_is_run_again_until_it_is_in_time(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE", "2")
    inner.makepyfile(
        TEST
        + """
def teardown_module():
    assert len(conftest.started) == 3
    assert all(fake.ended for fake in conftest.started)
"""
    )
    run(inner).assert_outcomes(passed=1)


def test_what_a_late_run_found_does_not_count(inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATE", "1")
    fails_once = "\n\ndef test_fails_once(ranway_emulate):\n    with ranway_emulate() as e:\n        assert e.valid\n"
    inner.makepyfile("import conftest" + fails_once)
    run(inner).assert_outcomes(passed=1)
    # A failure in a run that was in time stays one.
    inner.makepyfile("def test_fails(ranway_emulate):\n    with ranway_emulate():\n        assert False\n")
    monkeypatch.setenv("LATE", "0")
    run(inner).assert_outcomes(failed=1)


def test_the_report_of_a_failed_test_is_kept_and_named(inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    tests = ["def test_fails(ranway_emulate):\n    with ranway_emulate():\n        assert False\n"]
    tests.append("def test_passes(ranway_emulate):\n    with ranway_emulate():\n        pass\n")
    inner.makepyfile(test_app="\n\n".join(tests))
    result = run(inner, "test_app.py")
    result.assert_outcomes(failed=1, passed=1)
    (page,) = inner.path.glob("ranway-out/failed/*/report.html")
    assert page.parent.name == "test_app.py-test_fails"
    result.stdout.fnmatch_lines([f"report: {page}"])
    run(inner, "test_app.py", "--ranway-keep=kept").assert_outcomes(failed=1, passed=1)
    assert (inner.path / "kept/test_app.py-test_fails/report.html").exists()
    # What a late run found does not count.
    monkeypatch.setenv("LATE", "100")
    run(inner, "test_app.py", "--ranway-keep=late").assert_outcomes(skipped=2)
    assert not (inner.path / "late").exists()


def test_one_that_is_always_late_is_inconclusive(inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATE", "100")
    result = run(inner, "--ranway-retries=1")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*inconclusive: late in all 2 runs; 99 % of the packets within 7.000 ms*"])
    run(inner, "--ranway-required").assert_outcomes(failed=1)


def test_a_marker_sets_the_retries_and_one_left_running_ends(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE", "3")
    inner.makepyfile(
        """
import conftest
import pytest

@pytest.mark.ranway_emulate(retries=3)
def test_leaves_it_running(ranway_emulate):
    ranway_emulate("dumbbell")

def teardown_module():
    assert [fake.ended for fake in conftest.started] == [True] * 4
"""
    )
    run(inner, "--strict-markers").assert_outcomes(passed=1)
