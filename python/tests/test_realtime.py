"""Tests in real time: a failure on a busy machine proves nothing, and on a quiet machine the second one counts."""

import itertools
from pathlib import Path

import pytest

import conftest
from conftest import ATTEMPTS, realtime


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(conftest, "PAUSE_S", 0)
    monkeypatch.setattr(conftest, "INCONCLUSIVE", tmp_path / "inconclusive.txt")


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks a task has waited for an hour."""
    hours = itertools.count()
    monkeypatch.setattr(conftest, "waiting", lambda: next(hours) * 3_600_000_000)


def failing(times: int, attempts: list[int]) -> None:
    attempts.append(len(attempts) + 1)
    assert len(attempts) > times, "late"


@pytest.mark.usefixtures("busy")
def test_a_failure_on_a_busy_machine_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    attempts: list[int] = []
    realtime(failing)(2, attempts)
    assert attempts == [1, 2, 3]
    assert capsys.readouterr().err.count("inconclusive: failing: attempt") == 2


@pytest.mark.usefixtures("busy")
def test_what_fails_in_every_attempt_has_failed_however_busy_the_machine() -> None:
    attempts: list[int] = []
    with pytest.raises(AssertionError, match="late"):
        realtime(failing)(100, attempts)
    assert len(attempts) == ATTEMPTS


def test_the_second_failure_on_a_quiet_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "waiting", lambda: 0)
    attempts: list[int] = []
    with pytest.raises(AssertionError, match="late"):
        realtime(failing)(2, attempts)
    assert attempts == [1, 2]


def test_a_failure_on_a_quiet_machine_is_repeated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "waiting", lambda: 0)
    attempts: list[int] = []
    realtime(failing)(1, attempts)
    assert attempts == [1, 2]
    assert "FAILED ONCE: failing" in conftest.INCONCLUSIVE.read_text()
