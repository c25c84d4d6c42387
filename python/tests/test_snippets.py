"""Every command and program in the README and the book runs, or is listed here with the reason why not.

A page's snippets run in their order, in a folder that has the book's samples, the files that the page shows, and the
folders of the repository that commands name. Some run shorter than they stand, or beside what they need. A command may
fail only where the page shows its error, and an emulation may be late.

Of what does not run, the command line has to be valid, and the tests that stand in for it have to exist and use its
options.
"""

import os
import re
import shlex
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
OWN_NETWORK = ROOT / "tools" / "own-network"
TIMEOUT_S = 180
# Ends the script at the first failure, as `set -e` does, but not where an emulation was late (code 3): it did run.
UNLESS_LATE = """trap 'code=$?; [ "$code" = 3 ] || exit "$code"' ERR"""

# How some of them run here: what is replaced, and by what.
ADAPTED = {
    # Shorter.
    r"sweep loss-sweep --runs 100": "sweep loss-sweep --runs 2",
    r"ranway reproduce > /dev/null": "ranway reproduce mdcc-towards/wireless-loss --runs 1 > /dev/null",
    r"(run peers/scenarios/lte-cell.toml.*) --runs \d+": r"\1 --set 'duration=6 s' --runs 2",
    r'duration="30 s"': "duration='3 s' --set warmup='1 s'",
    r"sleep 6; for i in 1 2 3 4 5;": "sleep 1; for i in 1;",
    r"-c (50|85) server": "-c 10 server",
    r"(fast.toml.*) -t 4": r"\1 -t 1",
    r"(link.toml.*) -c 100": r"\1 -c 20",
    r"server/30MB": "server/3MB",
    # It reports the router, and fails.
    r"(ping -c 1 -t 1 server)\n": r"\1 | grep 'Time exceeded'\n",
    # What goes on until it is stopped, or is about something that does.
    r"^(ranway rnis .*replay:.*)\n": r"\1 &\nsleep 2; kill -0 $!\n",
    r"^(ranway control status)": r"ranway emulate -q lte-20mhz-vehicular -- sleep 6 &\nsleep 3\n\1",
    r"^(ranway control .*# meanwhile.*\n)": r"ranway emulate -q lte-20mhz-vehicular -- sleep 4 &\nsleep 3\n\1wait\n",
    r"^(ranway emulate .* --pcap)": r"wait\n\1",
    r"^(ranway measure serve --control)$": r"\1 --test-seconds 1 &\nsleep 2; kill -0 $!",
    # Both ends on this host.
    r"^(ranway measure serve .*) --listen '\[::\]:5231'": r"\1 --listen 127.0.0.1:5233 &\nsleep 1; kill -0 $!",
    r"^(ranway measure) 192\.168\.1\.2\n": r"\1 127.0.0.1:5233 -t 1s --idle 0s\nkill $!; wait $!\n",
    r"^(ranway measure) 192\.0\.2\.1 --control http://192\.0\.2\.1:5231\n": (
        r"\1 127.0.0.1:5233 --control http://127.0.0.1:5233 -t 1s --idle 0s\nkill $!; wait $!\n"
    ),
    r"^(ranway measure serve .*) 10.0.0.1:5231 (.*)": r"\1 127.0.0.1:5232 \2 &\nsleep 1; kill -0 $!",
    r"(--shell)": r"\1 <<< 'ping -c 1 server'",
    r"(-- sleep 100 &)\n": r"\1\nsleep 3\n",
    # The test is root already.
    r'^sudo (.*) --user "\$USER"': r"\1 --user nobody",
    # On a cluster of this host.
    r"^(ranway sweep study.toml .*--dask scheduler.json)": (
        "dask scheduler --no-dashboard --port 0 --scheduler-file scheduler.json &\n"
        "until [ -s scheduler.json ]; do sleep 0.1; done\n"
        "dask worker --no-dashboard --nthreads 1 --scheduler-file scheduler.json &\n"
        r"\1 --set 'duration=6 s'"
    ),
    # In a network of its own, where no firewall is yet.
    # One of this name is among the samples.
    r"^(ranway analyse .*--scenario drive.toml)": r"rm drive.toml\n\1",
}


@dataclass(frozen=True)
class LeftOut:
    """Why a snippet does not run here."""

    why: str
    # The tests that run the like, as `FILE::NAME`.
    tests: tuple[str, ...] = ()


TESTS = "crates/ranway/tests/all"
# Snippets that do not run here: each pattern is found in one at least.
LEFT_OUT = {
    r"^make |^cargo (build|bench)": LeftOut("builds everything"),
    r"^pip install|^apt install|^podman|^sha256sum|^man ": LeftOut(
        "needs packages that were built",
        (
            "packaging/test_packages.py::test_the_deb_simulates_and_measures_in_a_clean_system_and_is_purged_without_a_trace",
            "packaging/test_packages.py::test_the_wheel_gives_module_and_command_in_a_clean_system",
            "packaging/test_packages.py::test_the_container_file_makes_an_image_that_simulates_without_root",
        ),
    ),
    r"^systemctl|^journalctl|^echo .*/etc/ranway/": LeftOut(
        "changes the host's services",
        (
            "packaging/test_packages.py::test_systemd_runs_each_service_with_the_rights_of_its_unit_at_boot_and_until_it_is_purged",
            f"{TESTS}/packaging.rs::the_examples_of_settings_are_valid",
        ),
    ),
    r"^docker": LeftOut("needs containers"),
    r"^def test_|^@pytest": LeftOut(
        "a part of a test",
        ("python/tests/test_pytest_plugin.py::test_an_emulation_in_time_runs_once_and_passes",),
    ),
    r"SLURM|^sbatch|part-\*": LeftOut(
        "needs a cluster",
        (
            "python/tests/test_job_arrays.py::test_an_array_of_slurm_writes_what_a_run_writes",
            "python/tests/test_job_arrays.py::test_an_array_of_htcondor_gives_and_takes_all_files_that_a_job_needs",
            "python/tests/test_sweep.py::test_the_documented_cluster_replaces_jobs_that_end",
        ),
    ),
    r"analyse (client|nettest|ss)|^tcpdump|^while": LeftOut(
        "needs captures and logs of the reader's own",
        (f"{TESTS}/analyse.rs::the_amount_that_was_read_is_told_of_what_has_one",),
    ),
    r"reproduce (backlog|mdcc-lte|mdcc-beyond|uplink)": LeftOut(
        "takes minutes", (f"{TESTS}/reproduce.rs::a_variant_runs_in_its_first_setting_and_a_grid_in_all_of_them",)
    ),
    r"examples/remedies": LeftOut("takes minutes"),
    r"uplink/findings.py": LeftOut(
        "needs the results of minutes",
        ("python/tests/test_uplink_findings.py::test_tables_have_the_values_of_the_results",),
    ),
    r"^ranway oracle": LeftOut(
        "takes minutes or hours, or compares results of those",
        (
            f"{TESTS}/oracle.rs::results_of_an_earlier_run_are_compared_again",
            "crates/oracle/tests/kernel.rs::root_the_simulator_does_what_the_kernel_does",
        ),
    ),
    r"kernel/loss.py": LeftOut("takes half an hour"),
    r"^target/peers|valgrind": LeftOut("needs ns-3 or valgrind, which tests do not install"),
    r"sysctl|mdcc (load|status|unload)|/etc/ranway.key": LeftOut(
        "changes the host",
        (
            f"{TESTS}/mdcc.rs::root_mdcc_with_a_pep_is_faster_than_cubic_over_a_lossy_radio",
            f"{TESTS}/mdcc.rs::root_reports_of_a_restarted_pep_are_accepted_and_those_without_the_key_are_not",
        ),
    ),
    r"figures/pages.py": LeftOut("writes a figure of the book"),
    r"--modem wwan0": LeftOut(
        "needs a modem",
        (f"{TESTS}/backlog.rs::root_a_ping_beside_an_upload_is_short_and_the_upload_keeps_most_of_its_rate",),
    ),
    r"ranway pep --wan": LeftOut(
        "needs a router's interfaces",
        (
            f"{TESTS}/mdcc.rs::root_a_pep_that_takes_over_keeps_all_flows_and_the_old_one_ends",
            f"{TESTS}/mdcc.rs::root_reports_of_a_restarted_pep_are_accepted_and_those_without_the_key_are_not",
        ),
    ),
    r"ranway proxy --wan": LeftOut(
        "needs a router's interfaces", (f"{TESTS}/proxy_control.rs::root_reports_of_a_broker_count_until_it_ends",)
    ),
    r"--attach ": LeftOut(
        "needs two interfaces",
        (f"{TESTS}/attach.rs::root_hosts_behind_two_interfaces_find_each_other_and_take_as_long_as_the_links_say",),
    ),
    r"setcap|192\.0\.2\.1 -d": LeftOut(
        "changes the host, and needs a server elsewhere",
        (f"{TESTS}/capturing.rs::root_a_user_captures_with_the_capability_of_the_file",),
    ),
    r"^ranway rnis .*srsran:": LeftOut("needs a base station and a broker"),
    r"rnis --input recording:unix|--reports unix": LeftOut(
        "runs until it is stopped", (f"{TESTS}/reports.rs::root_an_emulation_streams_reports_to_a_live_service",)
    ),
    r"--dashboard|curl -s http://127": LeftOut(
        "runs until it is stopped",
        (
            f"{TESTS}/browser.rs::root_the_page_of_an_emulation_plots_its_values_takes_commands_and_stays_after_the_end",
            f"{TESTS}/dashboard.rs::prometheus_scrapes_what_the_dashboard_for_grafana_asks_for",
        ),
    ),
    r"emulate-street.toml|^CUBIC|proxy status|^# At the UE": LeftOut(
        "takes a minute and more", (f"{TESTS}/emulated_proxy.rs::root_the_walk_through_of_the_book_runs",)
    ),
    r"--nat ": LeftOut("needs the internet", (f"{TESTS}/nat.rs::root_hosts_reach_outside_through_the_network",)),
    r"^sudo apt": LeftOut(
        "installs a broker", (f"{TESTS}/proxy_control.rs::root_reports_of_a_broker_count_until_it_ends",)
    ),
    r"^grep -E": LeftOut(
        "is about one that runs", (f"{TESTS}/privileges.rs::root_threads_that_read_packets_have_no_rights",)
    ),
    r"file = .ATT": LeftOut("needs a recorded trace, which is not ours"),
}
# Two captures of a short run as the reader's own results.
CAPTURED = """ranway run first.toml --quiet --set duration='6 s' --set 'record.pcap=["*"]' --out simulated
cp -r simulated measured
cp simulated/captures/*.pcapng upload.pcapng
cp upload.pcapng upload.pcap"""
# What a page takes for granted.
BEFORE = {
    "docs/src/results.md": "ranway run loss-sweep --quiet",
    "docs/src/analyse.md": CAPTURED,
    "docs/src/measure.md": CAPTURED,
    "docs/src/sweeps.md": "cp first.toml study.toml",
}
LINK = """duration = "60 s"
[[links]]
name = "wire"
from = "server"
to = "ue"
"""
# Files that a page describes without showing them.
DESCRIBED = {
    "docs/src/emulation.md": {
        "fast.toml": LINK + 'rate = "2 Gbit/s"\ndelay = "2 ms"\nqueue = { kind = "drop-tail", packets = 2000 }\n',
        "link.toml": LINK + 'rate = "8 Mbit/s"\ndelay = "10 ms"\nqueue = { kind = "drop-tail", packets = 100 }\n',
    }
}


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
        return (
            self.kind == "#" or self.text.startswith(("ranway emulate", "sudo ranway")) or "ranway.emulate" in self.text
        )


def commands(page: str, block: str) -> Iterator[Snippet]:
    """The commands of a console block: `$` is the prompt of any user, and `#` that of root."""
    for prompt, command, output in re.findall(r"^([$#]) ((?:.*\\\n)*.*\n)((?:(?![$#] ).*\n)*)", block, re.MULTILINE):
        yield Snippet(page, prompt, command, output.startswith("error:"))


def snippets(page: Path) -> Iterator[Snippet]:
    name = str(page.relative_to(ROOT))
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if kind == "console":
            yield from commands(name, block)
        elif kind in ("sh", "bash", "python"):
            yield Snippet(name, kind, block)


ALL = [snippet for page in PAGES for snippet in snippets(page)]


def left_out(snippet: Snippet) -> LeftOut | None:
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, snippet.text)), None)


def adapted(snippet: Snippet) -> str:
    """The text of a snippet as it runs here."""
    text = snippet.text
    for pattern, replacement in ADAPTED.items():
        text = re.sub(pattern, replacement, text)
    return text


def invocations(text: str) -> Iterator[list[str]]:
    """The arguments of each `ranway` in a command, also in strings for another shell, and of settings of a service."""
    for options, service in re.findall(r"'OPTIONS=(.*)' > /etc/ranway/(\w+)\.conf", text):
        yield [service, *options.split()]
    text = re.sub(r"\$\w+", "1", re.sub(r"\\\n", "", text))
    for line in text.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] = []
        for word in [*words, ";"]:
            if not set(word) <= set(";&|()<>"):
                command.append(word)
                if "ranway " in word:
                    yield from invocations(word)
                continue
            # It may be another command's argument, too.
            if "ranway" in command[:2] and command[-1] != "ranway":
                yield command[command.index("ranway") + 1 :]
            command = []


def own(arguments: list[str]) -> list[str]:
    """The arguments up to the command that `ranway` is to run."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


NOT_RUN = [(snippet, why) for snippet in ALL if (why := left_out(snippet))]


def test_nothing_is_left_out_or_adapted_that_is_not_there() -> None:
    assert len(ALL) > 150 and len(NOT_RUN) < 91
    for patterns in (LEFT_OUT, ADAPTED):
        unused = [pattern for pattern in patterns if not any(re.search(pattern, snippet.text) for snippet in ALL)]
        assert unused == []
    unused = [pattern for pattern in ADAPTED if all(left_out(s) for s in ALL if re.search(pattern, s.text))]
    assert unused == []


def test_the_command_lines_of_what_does_not_run_are_valid(command: Path) -> None:
    # What precedes --help is parsed; nothing is run.
    def parse(arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *arguments, "--help"], capture_output=True, text=True)

    assert parse(["sweep", "loss-sweep", "--shards", "1/2"]).returncode == 2
    assert parse(["sweep", "loss-sweep", "--shard", "3/2"]).returncode == 2
    papers = subprocess.run([command, "list"], check=True, capture_output=True, text=True).stdout
    seen = 0
    for snippet, _ in NOT_RUN:
        if snippet.kind == "python":
            compile(snippet.text, snippet.page, "exec")
            continue
        for arguments in invocations(snippet.text):
            done = parse(own(arguments))
            assert done.returncode == 0, f"{snippet.page}: {snippet.text}{done.stderr}"
            names = (
                [word for word in arguments[1:] if not word.startswith("-")] if arguments[:1] == ["reproduce"] else []
            )
            assert all(name.split("@")[0] in papers for name in names), f"{snippet.page}: {snippet.text}"
            seen += 1
    assert seen > 40


def test_the_targets_and_scripts_of_what_does_not_run_are_there() -> None:
    seen = set()
    for snippet, _ in NOT_RUN:
        for target in re.findall(r"^make ([a-z-]+)", snippet.text, re.MULTILINE):
            subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)
            seen.add(target)
        for bench in re.findall(r"--bench (\w+)", snippet.text):
            assert (ROOT / "benches" / f"{bench}.rs").is_file(), snippet.text
            seen.add(bench)
        for script in re.findall(r"^python3? (\S+)", snippet.text, re.MULTILINE):
            compile((ROOT / script).read_text(), script, "exec")
            seen.add(script)
    scripts = {
        "peers/kernel/loss.py",
        "docs/figures/pages.py",
        "papers/uplink/findings.py",
        "examples/remedies/findings.py",
    }
    assert seen == {"build", "demo", "package", "packets"} | scripts


def test_what_does_not_run_has_tests_that_are_there_and_use_its_options() -> None:
    for snippet, why in NOT_RUN:
        texts = []
        for test in why.tests:
            file, name = test.split("::")
            texts.append((ROOT / file).read_text())
            assert re.search(rf"\b(fn|def) {name}\(", texts[-1]), f"{test} is not there"
        # Some take the snippet from its page.
        if not texts or snippet.kind == "python" or any(snippet.page in text for text in texts):
            continue
        for arguments in invocations(snippet.text):
            used = [arguments[0], *(word.split("=")[0] for word in own(arguments) if word.startswith("--"))]
            missing = [word for word in used if not any(word in text for text in texts)]
            assert missing == [], f"{snippet.page}: {snippet.text}{why.tests}"


def shown(page: str) -> dict[str, str]:
    """The files that a page shows whole, by the name in their first line."""
    block = re.compile(r"^```(?:toml|text)\n# ([\w./-]+\.(?:toml|csv))\b[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return {name: text for name, text in block.findall((ROOT / page).read_text())} | DESCRIBED.get(page, {})


def script(page: str, of_root: bool, folder: Path) -> str:
    """A page's snippets as one script for bash."""
    lines = [UNLESS_LATE, BEFORE.get(page, "")]
    for number, snippet in enumerate(ALL):
        if snippet.page != page or snippet.is_for_root != of_root or left_out(snippet):
            continue
        text = adapted(snippet)
        if snippet.kind == "python":
            (folder / f"snippet{number}.py").write_text(f"import ranway\n\n{text}")
            text = f"python snippet{number}.py\n"
        lines.append(f"if {text}then exit 99; fi\n" if snippet.fails else text)
    return "\n".join([*lines, "true"])


def run(page: str, of_root: bool, folder: Path, command: Path) -> None:
    shutil.copytree(ROOT / "docs" / "samples", folder)
    for name in ("crates", "docs", "papers", "peers"):
        (folder / name).symlink_to(ROOT / name)
    for name, text in shown(page).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    path = f"{command.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = folder / "said"
    with said.open("w") as output:
        running = subprocess.Popen(
            # Other tests may run emulations meanwhile, and commands have to choose if there are several.
            [*([OWN_NETWORK] if of_root else []), "bash", "-Euxc", script(page, of_root, folder)],
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


@pytest.mark.parametrize("page", sorted({s.page for s in ALL if not s.is_for_root and not left_out(s)}))
def test_what_anybody_can_run_runs(page: str, tmp_path: Path, command: Path) -> None:
    run(page, False, tmp_path / "samples", command)


@needs_root
@pytest.mark.parametrize("page", sorted({s.page for s in ALL if s.is_for_root and not left_out(s)}))
def test_what_root_can_run_runs(page: str, tmp_path_factory: pytest.TempPathFactory, command: Path) -> None:
    @realtime
    def all_of_it() -> None:
        run(page, True, tmp_path_factory.mktemp("page") / "samples", command)

    all_of_it()
