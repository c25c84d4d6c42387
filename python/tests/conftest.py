"""What the tests share."""

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import matplotlib
import pytest

import ranway

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]


def files(dir: Path) -> dict[str, bytes]:
    """What results are on the disk, but for the timing and the report, which quotes it."""
    return {file.name: file.read_bytes() for file in dir.iterdir() if file.name not in ("timing.json", "report.html")}


needs_root = pytest.mark.usefixtures("root")


@pytest.fixture
def root() -> None:
    """Skip the test without root; fail it if root is required. `crates/testkit/src/root.rs` has the same rule."""
    if os.geteuid() == 0 and Path("/dev/net/tun").exists():
        return
    why = "real hosts need root and /dev/net/tun"
    if os.environ.get("RANWAY_REQUIRE_ROOT") == "1":
        pytest.fail(f"{why}, and RANWAY_REQUIRE_ROOT=1 forbids to skip the test", pytrace=False)
    pytest.skip(why)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those with real hosts run first and one after the other; all others run beside them, with `pytest -n 3`."""
    for item in items:
        if "root" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("root"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)


PRESSURE = Path("/proc/pressure/cpu")
ATTEMPTS = 4
PAUSE_S = 0.5
# `cargo xtask ci` prints it at its end.
INCONCLUSIVE = ROOT / "target" / "inconclusive.txt"


def waiting() -> int:
    """Microseconds in which a task waited for a processor, since the start of the machine."""
    return int(PRESSURE.read_text().split("total=")[1].split()[0]) if PRESSURE.exists() else 0


def remember(line: str) -> None:
    INCONCLUSIVE.parent.mkdir(exist_ok=True)
    with INCONCLUSIVE.open("a") as file:
        print(line, file=file)


P = ParamSpec("P")


def realtime(test: Callable[P, None]) -> Callable[P, None]:
    """Repeat a test that fails once, or while the machine is busy, by the rules of `crates/testkit/src/realtime.rs`.
    One that fails in every attempt has failed.

    The test gets no new fixtures, so it must start its emulation itself.
    """

    @functools.wraps(test)
    def conclusive(*args: P.args, **kwargs: P.kwargs) -> None:
        failure: AssertionError | None = None
        on_time = 0
        for attempt in range(1, ATTEMPTS + 1):
            start, before = time.monotonic(), waiting()
            try:
                test(*args, **kwargs)
                if on_time:
                    remember(f"FAILED ONCE: {test.__name__}: attempt {attempt} passed")
                return
            except AssertionError as failed:
                failure = failed
                share = (waiting() - before) / 1e6 / (time.monotonic() - start)
                on_time += share <= 0.30
                if on_time > 1:
                    raise
                print(
                    f"inconclusive: {test.__name__}: attempt {attempt} of {ATTEMPTS}: tasks waited for a processor "
                    f"{share:.0%} of the time: {failed}",
                    file=sys.stderr,
                )
                if attempt < ATTEMPTS:
                    time.sleep(PAUSE_S * 2 ** (attempt - 1))
        assert failure
        raise failure

    return conclusive


# Short, with losses, so that another seed gives other results.
TOML = """
title = "Two flows"
duration = "4 s"
warmup = "1 s"
runs = 2

[parameters]
loss = 1e-3

[dumbbell]
rate = "10 Mbit/s"
rtt = "30 ms"
loss = "${loss}"
queue = { kind = "drop-tail", packets = 50 }

[[flows]]
name = "first"
cc = "cubic"

[[flows]]
name = "second"
cc = "bbr"
start = "1 s"
"""


@pytest.fixture(scope="session")
def command() -> Path:
    """The command `ranway`, built from this checkout, as the Rust tests build it."""
    if shutil.which("cargo") is None or not (ROOT / "crates" / "ranway").exists():
        pytest.skip("there is no checkout with cargo to build the command from")
    build = ["cargo", "test", "--quiet", "--locked", "--workspace", "--no-run", "--message-format", "json"]
    lines = subprocess.run(build, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    built = [artifact for line in lines if (artifact := json.loads(line)).get("executable")]
    return Path(next(b["executable"] for b in built if b["target"]["name"] == "ranway" and not b["profile"]["test"]))


@pytest.fixture(scope="session")
def scenario() -> ranway.Scenario:
    return ranway.Scenario.from_toml(TOML)


@pytest.fixture(scope="session")
def swept(scenario: ranway.Scenario) -> ranway.Results:
    """Two losses by two controls of the first flow, twice each."""
    axes = {"flows.first.cc": ["cubic", "vegas"], "loss": [1e-4, 1e-2]}
    return ranway.run(scenario.sweep(axes), seed=7, progress=None)
