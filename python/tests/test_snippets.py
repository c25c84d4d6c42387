"""Every command and program in the README and the book runs as it stands, or is listed here with the reason why not.

A page's snippets run in their order, in a folder that has the book's samples, and the folders of the repository that
commands name. A command may fail only where the page shows its error, and an emulation may be late.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT, needs_root, realtime

BOOK = ROOT / "docs" / "src"
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted(BOOK.rglob("*.md"))]
TIMEOUT_S = 180
# Ends the script at the first failure, as `set -e` does, but not where an emulation was late (code 3): it did run.
UNLESS_LATE = """trap 'code=$?; [ "$code" = 3 ] || exit "$code"' ERR"""

# Snippets that do not run here, and why: each pattern is found in one at least.
LEFT_OUT = {
    r"^make |^cargo build": "builds everything",
    r"^pip install|^apt install|^podman|^sha256sum|^man |^systemctl|^journalctl|/etc/ranway": "a package: packaging/",
    r"^docker": "needs containers",
    r"^def test_|^@pytest": "a part of a test: test_pytest_plugin.py",
    r"SLURM|^sbatch|part-\*": "needs a cluster; test_job_arrays.py runs the arrays, test_sweep.py the Dask example",
    r"analyse [a-z.]+(/|pcap)|analyse ss|^tcpdump|^while|run drive.toml": "the reader's own files",
    r"reproduce (backlog|mdcc-lte|mdcc-beyond|uplink)|^ranway oracle|lte-cell.toml|loss.py": "takes minutes or hours",
    r"reproduce ./my-paper": "a folder of the reader's own; crates/ranway/tests/reproduce.rs has one",
    r"^target/peers|valgrind": "ns-3 or valgrind, which tests do not install",
    r"sysctl|mdcc (load|status|unload)|/etc/ranway.key": "changes the host; crates/ranway/tests/mdcc.rs",
    r"^nft add|^iptables": "the host's firewall; crates/ranway/tests/proxy_faults.rs has nft's rule",
    r"figures/pages.py": "writes a figure of the book",
    r"sweep loss-sweep": "a minute; crates/ranway/tests/sweep.rs has it shorter",
    r"emulate-lossy-radio": "is about the two before and after it",
    r"--(wan|attach) |--modem wwan0|setcap|192\.0\.2\.1 -d": "has interfaces of the reader's own",
    r"measure serve --|^rmbt-client|^ranway rnis|^curl http|curl -s http://127": "runs until it is stopped",
    r"--reports unix|--dashboard": "runs until it is stopped, or serves one that does",
    r"emulate.*(street|pages).toml|^CUBIC|emulate-upload.toml": "a minute; crates/ranway/tests have the like",
    r"ping -c 1 -t 1": "ping reports the router, and ends with 1; crates/ranway/tests/router.rs",
    r"file = .ATT": "a recorded trace, which is not ours",
    r"control |--shell|ranway proxy status|^# At the UE": "belongs into another that runs",
    r"https://|sudo|^grep": "needs the internet or another user",
    r"sleep 100|^ip netns$|kill -KILL|fast.toml|link.toml|10 us|^echo": "crates/ranway/tests/emulate.rs",
    r"emulate dumbbell --kernel|run dumbbell --set duration": "30 s; the oracle compares the same",
}
# What a page takes for granted.
BEFORE = {"docs/src/results.md": "ranway run loss-sweep --quiet"}


@dataclass(frozen=True)
class Snippet:
    """A command with its continuation lines, or a program in Python."""

    page: str
    kind: str
    text: str
    # The page shows that it fails.
    fails: bool = False

    @property
    def is_for_root(self) -> bool:
        return self.kind == "#" or self.text.startswith("ranway emulate") or "ranway.emulate" in self.text


def commands(page: str, block: str) -> Iterator[Snippet]:
    """The commands of a console block: `$` is the prompt of any user, and `#` that of root."""
    for prompt, command, output in re.findall(r"^([$#]) ((?:.*\\\n)*.*\n)((?:(?![$#] ).*\n)*)", block, re.MULTILINE):
        yield Snippet(page, prompt, command, output.startswith("error:"))


def snippets(page: Path) -> Iterator[Snippet]:
    name = str(page.relative_to(ROOT))
    included = re.sub(r"\{\{#include (\S+)\}\}", lambda found: (page.parent / found[1]).read_text(), page.read_text())
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", included, re.MULTILINE | re.DOTALL):
        if kind == "console":
            yield from commands(name, block)
        elif kind in ("sh", "bash", "python"):
            yield Snippet(name, kind, block)


ALL = [snippet for page in PAGES for snippet in snippets(page)]


def why_not(snippet: Snippet) -> str | None:
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, snippet.text)), None)


def test_nothing_is_left_out_that_is_not_there() -> None:
    assert len(ALL) > 150
    unused = [pattern for pattern in LEFT_OUT if not any(re.search(pattern, snippet.text) for snippet in ALL)]
    assert unused == []


def script(page: str, of_root: bool, folder: Path) -> str:
    """A page's snippets as one script for bash."""
    lines = [UNLESS_LATE, BEFORE.get(page, "")]
    for number, snippet in enumerate(ALL):
        if snippet.page != page or snippet.is_for_root != of_root or why_not(snippet):
            continue
        text = snippet.text
        if snippet.kind == "python":
            (folder / f"snippet{number}.py").write_text(f"import ranway\n\n{text}")
            text = f"python snippet{number}.py\n"
        lines.append(f"if {text}then exit 99; fi\n" if snippet.fails else text)
    return "\n".join([*lines, "true"])


def run(page: str, of_root: bool, folder: Path, command: Path) -> None:
    shutil.copytree(ROOT / "docs" / "samples", folder)
    for name in ("crates", "docs", "papers", "peers"):
        (folder / name).symlink_to(ROOT / name)
    path = f"{command.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = folder / "said"
    with said.open("w") as output:
        running = subprocess.Popen(
            ["bash", "-Euxc", script(page, of_root, folder)],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = running.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = f"longer than {TIMEOUT_S} s"
        finally:
            # With what it has left in the background.
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    assert code == 0, f"{page}: {code}: {said.read_text()}"


@pytest.mark.parametrize("page", sorted({s.page for s in ALL if not s.is_for_root and not why_not(s)}))
def test_what_anybody_can_run_runs(page: str, tmp_path: Path, command: Path) -> None:
    run(page, False, tmp_path / "samples", command)


@needs_root
@pytest.mark.parametrize("page", sorted({s.page for s in ALL if s.is_for_root and not why_not(s)}))
def test_what_root_can_run_runs(page: str, tmp_path_factory: pytest.TempPathFactory, command: Path) -> None:
    @realtime
    def all_of_it() -> None:
        run(page, True, tmp_path_factory.mktemp("page") / "samples", command)

    all_of_it()
