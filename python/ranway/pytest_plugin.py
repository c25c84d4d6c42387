"""A pytest plugin for tests of applications over an emulated network.

Installing `ranway` registers it. A test takes the fixture `ranway_emulate`, which is `ranway.emulate`:

    def test_client_survives_a_handover(ranway_emulate):
        with ranway_emulate("lte-20mhz-vehicular") as cell:
            cell.ue.run(["my-client", "server"], check=True)

- Where emulation is impossible (no root, no /dev/net/tun, no `ip`), the test is skipped, and the reason names what is
  missing. With `--ranway-required` it fails instead: for runners that are meant to have everything.
- An emulation that missed its deadlines says more about the machine than about the application, whatever the test
  found. The test is run again, up to `--ranway-retries` times (2 unless given, or as the marker
  `@pytest.mark.ranway_emulate(retries=5)` says). If all its runs were late, it is *inconclusive*: skipped, or failed
  with `--ranway-required`.

An emulation that the test leaves running ends with the test. The results of a failed test's emulations are kept, with
their report page, in `ranway-out/failed` (`--ranway-keep DIR`); the failure names the page.
"""

import os
import re
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

_RETRIES = 2
_KEPT = "ranway-out/failed"
# CAP_NET_ADMIN and CAP_SYS_ADMIN, by capability(7).
_NEEDED = 1 << 12 | 1 << 21
_late = pytest.StashKey[list[str]]()
_failed = pytest.StashKey[bool]()
_pages = pytest.StashKey[list[str]]()


def missing() -> str | None:
    """Returns what this machine or user lacks for emulation; None if nothing."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    if effective & _NEEDED != _NEEDED:
        return "emulation needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN), or `ranway rootless -- pytest`"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "emulation needs /dev/net/tun"
    if shutil.which("ip") is None:
        return "emulation needs `ip` (iproute2)"
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("ranway", "emulated networks")
    group.addoption(
        "--ranway-retries",
        type=int,
        default=_RETRIES,
        metavar="N",
        help=f"run a test up to N times more while its emulation misses deadlines (default: {_RETRIES})",
    )
    group.addoption(
        "--ranway-required",
        action="store_true",
        help="fail tests that cannot be emulated, or whose emulations were all late, instead of skipping them",
    )
    group.addoption(
        "--ranway-keep",
        default=_KEPT,
        metavar="DIR",
        help=f"keep the results of failed tests' emulations, with their report pages, in DIR (default: {_KEPT})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers", "ranway_emulate(retries=N): how often the test is run again while its emulation misses deadlines"
    )


@pytest.fixture
def ranway_emulate(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`ranway.emulate`, in a test that is skipped where emulation is impossible, and repeated if packets were late."""
    what = missing()
    if what is not None:
        if request.config.getoption("--ranway-required"):
            pytest.fail(what, pytrace=False)
        pytest.skip(what)
    import ranway

    started: list[Any] = []

    def emulate(*args: Any, **options: Any) -> Any:
        emulation = ranway.emulate(*args, **options)
        started.append(emulation)
        return emulation

    yield emulate
    for emulation in started:
        try:
            results = emulation.results
        except RuntimeError:
            # The test has left it running.
            emulation.__exit__(None, None, None)
            results = emulation.results
        lateness = results.timing["lateness"]
        # What a late run found does not count.
        if lateness["valid"] and request.node.stash.get(_failed, False):
            _keep(request.node, results)
        if not lateness["valid"]:
            late = f"99 % of the packets within {lateness['p99_ms']:.3f} ms; the bound is {lateness['bound_ms']:.3f} ms"
            missed = f", {lateness['missed']} packets missed" if lateness["missed"] else ""
            request.node.stash.setdefault(_late, []).append(late + missed)


def _keep(item: pytest.Item, results: Any) -> None:
    """Writes the results of a failed test's emulation, and names their report page."""
    name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")
    kept = item.config.rootpath / item.config.getoption("--ranway-keep")
    number = len(item.stash.setdefault(_pages, [])) + 1
    directory = kept / (name if number == 1 else f"{name}-{number}")
    kept.mkdir(parents=True, exist_ok=True)
    results.write(directory)
    item.stash[_pages].append(str(directory / "report.html"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes whether the test itself failed, before its emulations end."""
    report = yield
    if call.when == "call":
        item.stash[_failed] = report.failed
    return report


def _retries(item: pytest.Item) -> int:
    marker = item.get_closest_marker("ranway_emulate")
    retries = marker.kwargs.get("retries") if marker is not None else None
    return int(item.config.getoption("--ranway-retries") if retries is None else retries)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test of an emulation until one of its runs is on time."""
    if "ranway_emulate" not in getattr(item, "fixturenames", ()):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    retries = _retries(item)
    for attempt in range(retries + 1):
        item.stash[_late], item.stash[_pages], item.stash[_failed] = [], [], False
        if attempt:
            # With a new request, so that fixtures are set up again.
            item._initrequest()  # type: ignore[attr-defined]
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        late = item.stash[_late]
        if not late:
            break
    if late:
        _inconclusive(item, reports, f"inconclusive: late in all {retries + 1} runs; {late[-1]}")
    for report in reports:
        if report.when == "call" and report.failed and item.stash[_pages]:
            report.sections.append(("Emulated network", "\n".join(f"report: {page}" for page in item.stash[_pages])))
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _inconclusive(item: pytest.Item, reports: list[pytest.TestReport], why: str) -> None:
    """Marks the report of a test's call as inconclusive."""
    required = item.config.getoption("--ranway-required")
    for report in reports:
        if report.when == "call":
            path, line, _ = item.location
            report.outcome = "failed" if required else "skipped"
            report.longrepr = why if required else (path, (line or 0) + 1, f"Skipped: {why}")
