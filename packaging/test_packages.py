"""Installs what `make package` has built in clean systems without toolchains, and runs it there.

The systems are Debian 12 without recommended packages, made by debootstrap once and kept in target/package-test.
Nothing of this machine is in them but the packages, and wheels of the libraries that ours needs. This needs root.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "target/package"
CACHE = ROOT / "target/package-test"
PROGRAMS = ["ca-certificates", "dbus", "iproute2", "man-db", "nftables", "python3", "python3-venv", "systemd-sysv"]
SERVICES = ["backlog", "mdcc", "measure", "pep", "proxy", "rnis"]
# The whole environment of programs in a clean system.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


def package(pattern: str) -> Path:
    found = list(PACKAGES.glob(pattern))
    assert len(found) == 1, f"{PACKAGES} has {len(found)} files {pattern}: run `make package` first"
    return found[0]


def run(*command: object, check: bool = True, **more: object) -> str:
    """Runs a program on this machine and returns what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **more,  # type: ignore[call-overload]
    )
    assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


class System:
    """A clean system, in which programs have namespaces of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, script: str, check: bool = True) -> str:
        """Runs a script of the shell, as root, without a network but loopback."""
        mounts = [
            f"mount -t {kind} {kind} {self.root}/{at}"
            for kind, at in [("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "run")]
        ]
        prepare = " && ".join([*mounts, "ip link set lo up", f'exec chroot {self.root} sh -euc "$1"'])
        own = ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child"]
        return run("unshare", *own, "sh", "-c", prepare, "sh", script, check=check, env=ENVIRONMENT)


@pytest.fixture(scope="session")
def base() -> Path:
    """An archive of a clean system."""
    if os.geteuid() != 0:
        pytest.fail("clean systems need root")
    CACHE.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(" ".join(PROGRAMS).encode()).hexdigest()[:12]
    archive = CACHE / f"bookworm-{name}.tar"
    if not archive.exists():
        folder = CACHE / "bookworm.new"
        shutil.rmtree(folder, ignore_errors=True)
        run("debootstrap", "--variant=minbase", f"--include={','.join(PROGRAMS)}", "bookworm", folder)
        run("tar", "-C", folder, "--numeric-owner", "--xattrs", "-cf", f"{archive}.new", ".")
        shutil.rmtree(folder)
        Path(f"{archive}.new").replace(archive)
    return archive


@pytest.fixture
def system(base: Path, request: pytest.FixtureRequest) -> Iterator[System]:
    root = CACHE / f"{request.node.name}-{os.getpid()}"
    root.mkdir()
    try:
        run("tar", "-C", root, "--numeric-owner", "--xattrs", "-xpf", base)
        new = System(root)
        for tool in ["cargo", "rustc", "cc", "gcc", "clang", "make"]:
            assert new.run(f"command -v {tool} || true") == "", f"{tool} is not to be in a clean system"
        yield new
    finally:
        # Nothing is mounted below it: what was, went away with its namespace.
        shutil.rmtree(root)


def install(system: System) -> None:
    shutil.copy(package("ranway_*.deb"), system.root / "ranway.deb")
    system.run("dpkg -i /ranway.deb")
    (system.root / "ranway.deb").unlink()


def forge() -> str:
    """The forge's address: the repository of the workspace's manifest."""
    address: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["repository"]
    return address


def newer(deb: Path, folder: Path) -> None:
    """Packs a newer version of the package, with other settings in its files."""
    run("dpkg-deb", "--raw-extract", package("ranway_*.deb"), folder)
    control = folder / "DEBIAN/control"
    lines = control.read_text().splitlines()
    lines = [f"{line}+newer" if line.startswith("Version: ") else line for line in lines]
    control.write_text("\n".join([*lines, ""]))
    for file in (folder / "etc/ranway").iterdir():
        file.write_text(f"{file.read_text()}# A newer version says more.\n")
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", folder, deb)
    shutil.rmtree(folder)


def measure(system: System, command: str) -> None:
    """Measures loopback, and captures it: the process that captures is the same program."""
    said = system.run(
        f"""
        cd /tmp
        {command} measure serve --quiet --open & server=$!
        sleep 1
        {command} measure 127.0.0.1:5231 --time "1 s" --pcap loopback.pcapng --out measured 2>&1
        kill $server; wait $server
        test -s measured/report.html && test -s loopback.pcapng
        """
    )
    assert "not captured" not in said, said


def test_the_checksums_are_those_of_all_packages() -> None:
    names = {path.name for path in PACKAGES.iterdir()} - {"SHA256SUMS"}
    assert {line.split()[1] for line in (PACKAGES / "SHA256SUMS").read_text().splitlines()} == names
    assert len(names) == 4
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=PACKAGES)


def test_no_package_tells_where_it_was_built(tmp_path: Path) -> None:
    run("dpkg-deb", "--extract", package("*.deb"), tmp_path / "deb")
    for name in ["*.whl", "*.tar.gz"]:
        shutil.unpack_archive(package(name), tmp_path / name[2:], "zip" if name == "*.whl" else "gztar")
    shutil.copy(package("*.cdx.json"), tmp_path)
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    places = [str(place).encode() for place in (ROOT, cargo)]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 1000
    assert [path for path in files if any(place in path.read_bytes() for place in places)] == []


def test_the_deb_has_command_manual_completions_units_and_settings() -> None:
    listed = run("dpkg-deb", "--contents", package("*.deb"))
    files = {line.split()[5].removeprefix("./"): line.split()[:2] for line in listed.splitlines()}
    units = next(path for path in files if path.endswith("/ranway-pep.service")).removesuffix("ranway-pep.service")
    expected = [
        "usr/bin/ranway",
        "usr/share/bash-completion/completions/ranway",
        "usr/share/zsh/vendor-completions/_ranway",
        "usr/share/fish/vendor_completions.d/ranway.fish",
        "usr/share/man/man1/ranway.1.gz",
        "usr/share/man/man1/ranway-measure-serve.1.gz",
        "usr/share/doc/ranway/copyright",
        "usr/share/doc/ranway/THIRD-PARTY.txt",
        "usr/share/doc/ranway/changelog.Debian.gz",
        "usr/share/ranway/grafana/ranway.json",
        "usr/share/ranway/grafana/ranway-services.json",
        "usr/share/ranway/prometheus/ranway.rules.yml",
        *(f"usr/share/doc/ranway/samples/{path.name}" for path in (ROOT / "docs/samples").iterdir()),
        *(f"{units}ranway-{service}.service" for service in SERVICES),
        *(f"etc/ranway/{service}.conf" for service in SERVICES if service != "proxy"),
        "etc/ranway/proxy.toml",
        "etc/ranway/dashboard.conf",
    ]
    assert [path for path in expected if path not in files] == []
    assert {owner for _, owner in files.values()} <= {"0/0", "root/root"}
    assert not any("w" in mode[5:6] + mode[8:9] for mode, _ in files.values() if not mode.startswith("l"))
    assert files["etc/ranway/dashboard.conf"][0] == "-rw-------"
    settings = [
        path for path in files if path.startswith("etc/ranway/") and path[-1] != "/" and "dashboard" not in path
    ]
    assert {files[path][0] for path in settings} == {"-rw-r-----"}
    # libelf and zlib are in the command.
    assert run("dpkg-deb", "--field", package("*.deb"), "Depends").strip() == "libc6 (>= 2.28)"
    assert run("dpkg-deb", "--field", package("*.deb"), "Homepage").strip() == forge()


def test_lintian_finds_no_error_in_the_deb() -> None:
    said = run("lintian", "--allow-root", "--tag-display-limit", "0", package("*.deb"), check=False)
    print(said)
    assert [line for line in said.splitlines() if line.startswith("E:")] == []


def test_the_deb_simulates_and_measures_in_a_clean_system_and_is_purged_without_a_trace(system: System) -> None:
    before = run("find", system.root / "etc", system.root / "var/lib", "-path", "*dpkg*", "-prune", "-o", "-print")
    install(system)
    assert "Simulate, emulate, measure" in system.run("ranway --help")
    said = system.run("cd /tmp && ranway run dumbbell && test -s ranway-out/dumbbell/report.html")
    assert "bulk  cubic" in said
    measure(system, "ranway")
    assert "ranway-backlog" in system.run("man --pager=cat ranway-backlog")
    # The samples of the book are at hand.
    assert system.run("cd /tmp && ranway run /usr/share/doc/ranway/samples/first.toml --quiet --out first") == ""
    assert system.run("stat -c '%a %G' /etc/ranway/proxy.toml").strip() == "640 ranway"
    # A mistake is one line and exit code 2, as everywhere.
    assert system.run("ranway run nothing.toml && exit 1; test $? = 2").count("error: ") == 1
    # Nothing is enabled.
    assert run("find", system.root / "etc/systemd", "-name", "*ranway*") == ""
    system.run("dpkg --remove ranway")
    assert (system.root / "etc/ranway/pep.conf").exists(), "settings stay until they are purged"
    (system.root / "var/lib/private/ranway-pep").mkdir(parents=True)
    (system.root / "var/lib/ranway-pep").symlink_to("private/ranway-pep")
    assert "ranway" in system.run("getent group ranway")
    system.run("dpkg --purge ranway && ! command -v ranway")
    after = run("find", system.root / "etc", system.root / "var/lib", "-path", "*dpkg*", "-prune", "-o", "-print")
    added = set(after.splitlines()) - set(before.splitlines())
    assert {path for path in added if "ranway" in path} == set(), added
    assert system.run("getent group ranway || true") == ""


# Runs in the system as a service of its own, and leaves its findings in /findings.
PROBE = r"""#!/bin/bash
set -u
exec > /findings 2>&1
fail() { echo "FAILED: $*"; journalctl --no-pager -n 100 -u 'ranway-*'; exit 1; }
expect() { # expect WHAT COMMAND...: within 10 s
    what=$1; shift
    for _ in $(seq 100); do "$@" && return 0; sleep 0.1; done
    fail "$what"
}
http() { # http PORT PATH TEXT: whether the answer has the text
    timeout 5 bash -c 'exec 3<> /dev/tcp/127.0.0.1/$0
        printf "GET $1 HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; cat <&3' "$1" "$2" 2> /dev/null | grep -q "$3"
}
interface() { # interface NAME ADDRESS
    ip link add $1 type veth peer name far-$1
    ip link set $1 up; ip link set far-$1 up
    ip addr add $2/24 dev $1
}
interfaces() {
    interface wan 10.7.1.1; interface ran 10.7.2.1; interface modem 10.7.3.1
}
network() { # what services change of it
    nft list ruleset; ls /sys/class/net; tc qdisc show | sort; ip rule; ip -6 rule
}
is() { # is SERVICE PROPERTY VALUE
    [ "$(systemctl show -p $2 --value ranway-$1)" = "$3" ]
}
chmod 666 /dev/net/tun # as udev does; this system has a node of its own
# Here, interfaces come back soon.
mkdir -p /run/systemd/system/ranway-.service.d
printf '[Service]\nRestartSec=3\n' > /run/systemd/system/ranway-.service.d/soon.conf
# A restarted PEP says that it has taken over.
mkdir -p /run/systemd/system/ranway-pep.service.d
loud=/run/systemd/system/ranway-pep.service.d/loud.conf
printf '[Service]\nExecStart=\nExecStart=/usr/bin/ranway pep $OPTIONS\n' > $loud
systemctl daemon-reload
token=0123456789abcdef

if [ -e /network ]; then
    # The second boot: what is enabled runs without an order, as soon as it has its interfaces.
    expect "ranway-measure starts with the system" systemctl is-active --quiet ranway-measure
    for s in backlog proxy; do
        expect "ranway-$s waits for its interfaces" is $s SubState auto-restart
    done
    for s in pep rnis; do
        systemctl is-active --quiet ranway-$s && fail "ranway-$s runs, and is not enabled"
    done
    interfaces
    expect "the backlog's interface" test -e /sys/class/net/backlog0
    expect "the proxy's metrics" http 9180 /metrics ranway_proxy
    systemctl start ranway-pep ranway-rnis || fail "start ranway-pep and ranway-rnis"
    expect "the PEP's page" http 8091 / 'HTTP/1.. 200'
    # The package is removed while all run.
    network > /changed
    cmp -s /network /changed && fail "services changed nothing: this test sees too little"
    for s in backlog measure pep proxy rnis; do
        systemctl is-active --quiet ranway-$s || fail "ranway-$s is not active"
    done
    dpkg --purge ranway || fail "purge"
    for s in backlog measure pep proxy rnis; do
        systemctl is-active --quiet ranway-$s && fail "ranway-$s is still active"
    done
    for exe in /proc/[0-9]*/exe; do
        case $(readlink $exe) in *ranway*) fail "a process is left: $exe" ;; esac
    done
    network | diff /network - || fail "the network is not as it was"
    systemctl list-unit-files --no-pager 'ranway-*' | grep -q '^0 unit' || fail "units are left"
    find /etc/systemd /var/lib/systemd -name '*ranway*' | grep . && fail "links to units are left"
    ls -d /etc/ranway /var/lib/private/ranway* /var/lib/ranway* 2> /dev/null && fail "folders are left"
    echo PASSED
    exit
fi

interfaces
network > /network
# A service without the settings that it needs fails, and is started again later.
for s in backlog pep proxy; do
    systemctl start ranway-$s
    expect "ranway-$s fails" is $s SubState auto-restart
    is $s ExecMainStatus 2 || fail "exit code of ranway-$s"
    systemctl stop ranway-$s
done
# One without interfaces gives up, and the journal has the reason.
for s in measure rnis; do
    echo 'OPTIONS=--mistake' > /etc/ranway/$s.conf
    systemctl start ranway-$s
    expect "ranway-$s gives up" is $s ActiveState failed
    is $s ExecMainStatus 2 && is $s NRestarts 0 || fail "how ranway-$s failed"
    journalctl --no-pager -o cat -u ranway-$s | grep -q "^error: .*--mistake" || fail "the reason of ranway-$s"
done

echo "RANWAY_DASHBOARD_TOKEN=$token" > /etc/ranway/dashboard.conf
echo 'OPTIONS=--wan wan --ran ran --dashboard 127.0.0.1:8091 --metrics 127.0.0.1:9183' > /etc/ranway/pep.conf
echo 'OPTIONS=--modem modem --dashboard 127.0.0.1:8092 --metrics 127.0.0.1:9184' > /etc/ranway/backlog.conf
echo 'OPTIONS=--default' > /etc/ranway/mdcc.conf
printf '%s = "%s"\n' wan wan ran ran metrics 127.0.0.1:9180 dashboard 127.0.0.1:8090 \
    reports recording:unix:/run/ranway-proxy/reports > /etc/ranway/proxy.toml
echo 'OPTIONS=--listen 127.0.0.1:443 --open --metrics 127.0.0.1:9181' > /etc/ranway/measure.conf
echo 'OPTIONS=--input recording:unix:/run/ranway-rnis/reports --dashboard 127.0.0.1:8093' > /etc/ranway/rnis.conf
for s in backlog measure pep proxy rnis; do
    systemctl start ranway-$s || fail "start ranway-$s"
done
expect "the backlog's interface" test -e /sys/class/net/backlog0
[ "$(cat /proc/sys/net/ipv6/conf/backlog0/disable_ipv6)" = 1 ] || fail "IPv6 is on at backlog0"
expect "the proxy's metrics" http 9180 /metrics ranway_proxy
nft list tables | grep -q ranway_proxy || fail "the proxy has no table"
expect "the server's metrics" http 9181 /metrics ranway_
expect "network information" http 8085 /rni/v2/queries/layer2_meas 'HTTP/1.. 200'
expect "the PEP's page" http 8091 / 'HTTP/1.. 200'
expect "the backlog's page" http 8092 / 'HTTP/1.. 200'
expect "the PEP's metrics" http 9183 /metrics ranway_pep
expect "the backlog's metrics" http 9184 /metrics ranway_backlog
for port in 8090 8093; do
    expect "the page at $port needs the token" http $port / 'HTTP/1.. 401'
    expect "the token opens the page at $port" http $port "/?token=$token" "ranway-$port=$token"
done
journalctl --no-pager -o cat -u 'ranway-*' | grep $token && fail "the token is in the journal"
expect "the socket for reports" test -S /run/ranway-rnis/reports
expect "the proxy's socket for reports" test -S /run/ranway-proxy/reports
is pep NFileDescriptorStore 11 || fail "what is kept of the PEP"
systemctl start ranway-mdcc || fail "start ranway-mdcc"
default() { [ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = mdcc ]; }
default || fail "mdcc is not the default"
systemctl reload ranway-proxy ranway-measure || fail "reload"
sleep 2
for s in backlog measure pep proxy rnis; do
    systemctl is-active --quiet ranway-$s || fail "ranway-$s is not active"
    is $s NRestarts 0 || fail "ranway-$s was started again"
    pid=$(systemctl show -p MainPID --value ranway-$s)
    [ "$(awk '/^Uid:/ { print $2 }' /proc/$pid/status)" != 0 ] || fail "ranway-$s is root"
    echo "$s: $(grep CapEff /proc/$pid/status | tr -d '\t')"
    # After a crash it is there again.
    kill -KILL $pid
    expect "ranway-$s is started again" is $s NRestarts 1
    expect "ranway-$s is active again" systemctl is-active --quiet ranway-$s
done
# A proxy without its interface tries again until that comes back.
ip link del ran
expect "the proxy ends" is proxy SubState auto-restart
expect "there is no interface" is proxy ExecMainStatus 2
interface ran 10.7.2.1
expect "the proxy is back" sh -c "nft list tables | grep -q ranway_proxy"
expect "the PEP is back" systemctl is-active --quiet ranway-pep
sleep 1
# An upgrade keeps settings and tokens, restarts what runs, and starts nothing else.
systemctl stop ranway-backlog
declare -A old
for s in measure pep proxy rnis; do old[$s]=$(systemctl show -p MainPID --value ranway-$s); done
differs() { [ "$(systemctl show -p MainPID --value ranway-$1)" != "$2" ]; }
taken() { journalctl --no-pager -o cat -u ranway-pep | grep -cE 'taken over from the previous one(;|, metrics)'; }
before=$(taken)
dpkg -i --force-confold /newer.deb || fail "upgrade"
expect "the upgrade leaves the PEP's programs attached" [ "$(taken)" = $((before + 1)) ]
default && systemctl is-active --quiet ranway-mdcc || fail "the upgrade unloaded mdcc"
systemctl stop ranway-mdcc || fail "stop ranway-mdcc"
default && fail "mdcc is still the default"
[ "$(dpkg-query -W -f '${Version}' ranway)" = "$(dpkg-deb --field /newer.deb Version)" ] || fail "not upgraded"
for s in measure pep proxy rnis; do
    expect "ranway-$s is active after the upgrade" systemctl is-active --quiet ranway-$s
    # The proxy hands over its connections first.
    expect "ranway-$s is a new process" differs $s "${old[$s]}"
done
expect "the proxy works after the upgrade" http 9180 /metrics ranway_proxy
expect "the token still opens the page" http 8090 "/?token=$token" "ranway-8090=$token"
systemctl is-active --quiet ranway-backlog && fail "the upgrade started ranway-backlog"
grep -q 'wan wan --ran ran' /etc/ranway/pep.conf || fail "the upgrade changed the settings"
[ "$(stat -c %a /etc/ranway/dashboard.conf)" = 600 ] || fail "the upgrade lets others read the token"
systemctl is-enabled --quiet ranway-proxy && fail "the upgrade enabled ranway-proxy"
systemctl start ranway-backlog || fail "start ranway-backlog"
sleep 1
for s in backlog measure pep proxy rnis; do
    systemctl stop ranway-$s || fail "stop ranway-$s"
    is $s Result success || fail "how ranway-$s ended"
done
network | diff /network - || fail "the network is not as it was"
journalctl --no-pager -o cat -u 'ranway-*' | grep -iE 'denied|not permitted|panick' && fail "something was refused"
systemctl enable --quiet ranway-backlog ranway-measure ranway-proxy || fail "enable"
echo PASSED
"""
PROBING = """[Unit]
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/usr/local/bin/probe
TimeoutStartSec=240
[Install]
WantedBy=multi-user.target
"""


def booted(system: System) -> str:
    """Boots a system with systemd, and returns what its probe has found."""
    container = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--resolv-conf=off"]
    container += [
        "--capability=CAP_BPF,CAP_PERFMON,CAP_NET_ADMIN,CAP_SYS_RESOURCE",
        "--system-call-filter=bpf perf_event_open",
    ]
    container += ["--link-journal=no", "--boot", "--directory", str(system.root)]
    shown = run(*container, check=False, stdin=subprocess.DEVNULL, timeout=300)
    findings = system.root / "findings"
    said = findings.read_text() if findings.exists() else f"systemd did not get there:\n{shown}"
    findings.unlink(missing_ok=True)
    print(said)
    return said


def test_systemd_runs_each_service_with_the_rights_of_its_unit_at_boot_and_until_it_is_purged(system: System) -> None:
    install(system)
    probe = system.root / "usr/local/bin/probe"
    probe.write_text(PROBE)
    probe.chmod(0o755)
    (system.root / "etc/systemd/system/probe.service").write_text(PROBING)
    newer(system.root / "newer.deb", system.root / "newer")
    system.run("systemctl enable probe")
    for boot in ["first", "second"]:
        said = booted(system)
        assert said.endswith("PASSED\n"), f"{boot} boot: {said}"


@pytest.fixture(scope="session")
def libraries() -> Path:
    """The libraries that the wheel needs, as wheels."""
    folder = CACHE / "wheels"
    needed = [line for line in metadata().splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]
    names = [line.removeprefix("Requires-Dist: ") for line in needed]
    common = ["--quiet", "--only-binary", ":all:", "--python-version", "3.11", "--dest", folder]
    run(sys.executable, "-m", "pip", "download", *common, *names)
    return folder


def metadata() -> str:
    with zipfile.ZipFile(package("*.whl")) as wheel:
        return wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))).decode()


def test_the_wheel_has_a_stable_interface_for_old_systems() -> None:
    name = package("*.whl").name
    assert name.split("-")[2:4] == ["cp311", "abi3"]
    assert "manylinux_2_28" in name


def test_the_wheel_has_the_licences_of_what_is_in_it() -> None:
    with zipfile.ZipFile(package("*.whl")) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/licenses/THIRD-PARTY.txt"))
        texts = wheel.read(name).decode()
    assert all(library in texts for library in ["\nelfutils 0.", "\nzlib 1", "uPlot 1.", "tokio 1.", "libbpf-sys 1."])


def test_the_list_of_libraries_is_that_of_command_and_module_with_what_is_no_crate() -> None:
    published = json.loads(package("*.cdx.json").read_text())
    with zipfile.ZipFile(package("*.whl")) as wheel:
        lists = [json.loads(wheel.read(name)) for name in wheel.namelist() if "/sboms/" in name]
    assert lists == [published]
    required = {one["name"]: one for one in published["components"] if one.get("scope") == "required"}
    for name in ["tokio", "libbpf-sys", "pyo3", "elfutils", "zlib", "uPlot"]:
        assert required[name]["version"] and required[name]["licenses"], name
        assert required[name]["purl"].startswith("pkg:"), name
    # Tests and builds alone need these.
    assert not {"bolero", "libbpf-cargo"} & set(required)
    program = published["metadata"]["component"]["bom-ref"]
    [depends] = [one["dependsOn"] for one in published["dependencies"] if one["ref"] == program]
    assert {required[name]["bom-ref"] for name in ["elfutils", "zlib", "uPlot"]} <= set(depends)


def test_the_wheel_tells_who_made_it_for_which_python_and_its_page_has_no_dead_links() -> None:
    head, page = metadata().split("\n\n", 1)
    fields = head.splitlines()
    for field in [
        "Author: The Ranway authors",
        f"Project-URL: Homepage, {forge()}",
        f"Project-URL: Issues, {forge()}/issues",
        "Requires-Python: >=3.11",
        "Classifier: Programming Language :: Python :: 3.11",
    ]:
        assert field in fields, head
    assert f"]({forge()}/blob/main/docs/src/python.md)" in page and "](.." not in page


def test_the_wheel_gives_module_and_command_in_a_clean_system(system: System, libraries: Path) -> None:
    wheels = system.root / "wheels"
    shutil.copytree(libraries, wheels)
    shutil.copy(package("*.whl"), wheels)
    system.run("python3 -m venv /venv && /venv/bin/pip install --no-index --find-links /wheels ranway")
    script = """
import importlib.metadata, ranway
print(importlib.metadata.version("ranway"))
results = ranway.run(ranway.Scenario("dumbbell"), seed=1, progress=False)
assert results.flows["goodput_mbps"][0] > 30
results.write("/tmp/module")
"""
    (system.root / "script.py").write_text(script)
    version = system.run("cd /tmp && /venv/bin/python /script.py").strip()
    assert system.run("/venv/bin/ranway --version").strip() == f"ranway {version}"
    # Module and command are one version of one program.
    system.run("cd /tmp && /venv/bin/ranway run dumbbell --seed 1 --quiet --out command")
    system.run("cmp /tmp/module/flows.parquet /tmp/command/flows.parquet")
    measure(system, "/venv/bin/ranway")
    system.run("/venv/bin/pip uninstall --yes ranway && test ! -e /venv/bin/ranway")


def test_the_source_distribution_has_the_repository_and_the_metadata_of_the_wheel() -> None:
    with tarfile.open(package("*.tar.gz")) as archive:
        names = archive.getnames()
        top = names[0].split("/")[0]
        assert {name.split("/")[0] for name in names} == {top}
        info = archive.extractfile(f"{top}/PKG-INFO")
        assert info is not None
        assert info.read().decode() == metadata()
    for name in ["pyproject.toml", "Cargo.lock", "crates/ranway/src/main.rs", "packaging/ranway_build.py"]:
        assert f"{top}/{name}" in names
    assert not any("target/" in name or ".venv" in name for name in names)


def test_programs_and_metadata_are_built_from_the_source_distribution_alone(tmp_path: Path) -> None:
    """Compiles all but for machine code (`cargo check`): the build scripts, the eBPF programs and included files, too.

    Libraries are those that this machine has checked before: a minute or two, or five where it has checked none. The
    release workflow builds a wheel, as pip does.
    """
    # The same folder each time: what cargo has made of the last one is replaced.
    folder = CACHE / "source"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # Dates of today: cargo takes files for unchanged that are older than what it has made of them.
    run("tar", "-C", folder, "--strip-components=1", "--touch", "-xzf", package("*.tar.gz"))
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target")),
        "CARGO_INCREMENTAL": "0",
        "PYTHONPATH": "packaging",
    }
    crates = ["--package", "ranway", "--package", "ranway-python"]
    run("cargo", "check", "--locked", "--offline", *crates, cwd=folder, env=environment)
    script = "import ranway_build, sys; ranway_build.prepare_metadata_for_build_wheel(sys.argv[1])"
    run(sys.executable, "-c", script, tmp_path, cwd=folder, env=environment)
    [info] = tmp_path.glob("*.dist-info")
    assert (info / "METADATA").read_text() == metadata()


def test_the_container_file_makes_an_image_that_simulates_without_root(base: Path) -> None:
    if shutil.which("buildah") is None:
        pytest.skip("buildah is not installed")
    image = "localhost/ranway-clean"
    options = ["--storage-driver", "vfs", "--root", str(CACHE / "images"), "--runroot", str(CACHE / "images-run")]
    container = run("buildah", *options, "from", "scratch").strip()
    try:
        run("buildah", *options, "add", container, base, "/")
        run("buildah", *options, "commit", container, image)
        file = ROOT / "packaging/Containerfile"
        build = ["--isolation", "chroot", "--build-arg", f"BASE={image}", "--pull-never"]
        run("buildah", *options, "build", *build, "-t", "localhost/ranway", "-f", file, PACKAGES)
        inspect = ["inspect", "--type", "image", "--format", "{{.OCIv1.Config.Labels}}"]
        labels = run("buildah", *options, *inspect, "localhost/ranway")
        for label in [f"source:{forge()}", "licenses:Apache-2.0 OR MIT", "title:ranway"]:
            assert f"org.opencontainers.image.{label}" in labels
        run("buildah", *options, "rm", container)
        container = run("buildah", *options, "from", "--pull-never", "localhost/ranway").strip()
        command = ["sh", "-c", "id -u; ranway run dumbbell"]
        said = run("buildah", *options, "run", "--isolation", "chroot", container, *command)
        assert said.startswith("1000\n") and "bulk  cubic" in said
    finally:
        run("buildah", *options, "rm", "--all", check=False)
        run("buildah", *options, "rmi", "--all", "--force", check=False)
