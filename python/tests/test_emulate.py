"""Real hosts: they are behind the network, what happens to them is in the results, and they go away."""

import asyncio
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import ranway
from conftest import needs_root, realtime

NAMESPACES = Path("/run/netns")

# 20 ms there and back, 8 Mbit/s, and no flows: a network for real hosts.
LINK = {
    "title": "A link",
    "duration": "2 s",
    "links": [
        {"name": "wire", "from": "a", "to": "b", "rate": "8 Mbit/s", "delay": "10 ms", "queue": {"kind": "codel"}},
    ],
}

# Busy machines are late; only the test of lateness cares.
PATIENT = "200 ms"


@pytest.fixture
def link() -> ranway.Scenario:
    return ranway.Scenario.from_dict(LINK)


@pytest.fixture
def cell(link: ranway.Scenario) -> Iterator[ranway.Emulation]:
    """A test of an application takes such a fixture, and runs the application in `cell.ue`."""
    with ranway.emulate(link, max_lateness=PATIENT) as cell:
        yield cell


def is_there(host: ranway.Host) -> bool:
    return (NAMESPACES / host.netns).exists()


def goes_away(netns: str) -> bool:
    """Whether a namespace goes away within a few seconds, which is time for who cleans up after a death."""
    for _ in range(100):
        if not (NAMESPACES / netns).exists():
            return True
        time.sleep(0.05)
    return False


@needs_root
@realtime
def test_a_packet_takes_as_long_as_the_network_says(link: ranway.Scenario) -> None:
    with ranway.emulate(link, max_lateness=PATIENT) as cell:
        ping = cell.ue.run(["ping", "-c", "5", "-i", "0.1", "server"], capture_output=True, text=True, check=True)
    fastest = float(ping.stdout.split("rtt ")[1].split("= ")[1].split("/")[0])
    # What it takes the hosts comes on top, and on a busy machine much of it.
    assert 20 < fastest < 25


@needs_root
def test_hosts_have_names_addresses_and_namespaces(cell: ranway.Emulation) -> None:
    assert (cell.server.name, cell.ue.name, len(cell.ues)) == ("a", "b", 1)
    assert is_there(cell.server)
    assert is_there(cell.ue)
    for address in (cell.server.address, cell.server.address6):
        cell.ue.run(["ping", "-c", "1", address], stdout=subprocess.DEVNULL, check=True)
    with pytest.raises(TypeError, match="a list of words"):
        cell.ue.run("ping server")


@needs_root
@realtime
def test_the_web_server_answers_and_its_transfer_is_a_row_of_the_results(link: ranway.Scenario) -> None:
    with ranway.emulate(link, max_lateness=PATIENT) as cell:
        size = cell.ue.run(
            ["curl", "-so", "/dev/null", "-w", "%{size_download}", "http://server/500kB"],
            capture_output=True,
            text=True,
        ).stdout
        assert size == "500000"
        with pytest.raises(RuntimeError, match="still running"):
            _ = cell.results
    assert cell.valid
    (flow,) = cell.results.flows.filter(pl.col("transport") == "tcp").rows(named=True)
    assert flow["flow"].startswith("tcp a:80 > b:")
    assert flow["bytes"] > 500_000
    assert 3 < flow["goodput_mbps"] < 8
    assert cell.results.meta["runs"] == 1
    # Nobody asked the hosts what held them back.
    assert [one["limited"] for one in cell.results.summary["points"][0]["flows"]] == [None]
    with pytest.raises(ValueError, match="no TCP flow"):
        ranway.plot.limits(cell.results)


@needs_root
def test_programs_in_hosts_know_the_id_of_their_emulation(cell: ranway.Emulation) -> None:
    said = cell.ue.run(["sh", "-c", "echo $RANWAY_ID"], capture_output=True, text=True).stdout.strip()
    assert (Path("/run/ranway") / said / "control").exists()
    env = {**os.environ, "OTHER": "x"}
    other = cell.ue.run(["sh", "-c", "echo $OTHER$RANWAY_ID"], env=env, capture_output=True, text=True).stdout.strip()
    assert other == f"x{said}"


@needs_root
def test_a_process_is_started_and_the_network_changed_beside_it(cell: ranway.Emulation) -> None:
    with cell.ue.popen(["ping", "-c", "3", "-i", "0.2", "server"], stdout=subprocess.PIPE, text=True) as ping:
        assert cell.control("rate wire 1 Mbit/s") == ""
        assert cell.outage(0.05, "wire") == pytest.approx(cell.status()["t_s"] + 0.05, abs=0.04)
        out, _ = ping.communicate(timeout=10)
    assert " 0% packet loss" in out
    assert set(cell.status()["links"]) == {"wire", "wire-reverse"}
    with pytest.raises(ranway.RanwayError, match="wire-reverse"):
        cell.control("rate wir 1 Mbit/s")


@needs_root
@realtime
def test_scenarios_flows_are_simulated_beside_or_sent_by_the_kernel(link: ranway.Scenario) -> None:
    link = link.set({"flows": [{"name": "download", "from": "a", "to": "b", "cc": "new-reno"}]})
    for kernel in (False, True):
        with ranway.emulate(link, kernel=kernel, max_lateness=PATIENT) as cell:
            time.sleep(2)
        (flow,) = cell.results.flows.rows(named=True)
        assert (flow["flow"], flow["cc"]) == ("download", "new-reno")
        assert flow["bytes"] > 500_000


@needs_root
def test_results_and_captures_are_written_at_the_end(tmp_path: Path, link: ranway.Scenario) -> None:
    with ranway.emulate(link, max_lateness=PATIENT, pcap=True, out=tmp_path / "out") as cell:
        cell.ue.run(["ping", "-c", "1", "server"], stdout=subprocess.DEVNULL, check=True)
    assert ranway.read(tmp_path / "out") == cell.results
    assert (tmp_path / "out" / "captures" / "hosts.pcapng").stat().st_size > 300
    assert (tmp_path / "out" / "report.html").exists()


@needs_root
@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nftables")
def test_hosts_behind_nat_ask_the_name_servers_given(link: ranway.Scenario) -> None:
    with ranway.emulate(link, max_lateness=PATIENT, nat=True, dns=["192.0.2.53"]) as cell:
        resolver = cell.ue.run(["cat", "/etc/resolv.conf"], capture_output=True, text=True, check=True).stdout
        routes = cell.server.run(["ip", "-4", "route"], capture_output=True, text=True, check=True).stdout
    assert "nameserver 192.0.2.53" in resolver
    assert "default via" in routes


@needs_root
def test_packets_pass_the_routers_kernel() -> None:
    wire = {"rate": "8 Mbit/s", "delay": "5 ms", "duplex": True}
    links = [{"name": "front", "from": "a", "to": "b", **wire}, {"name": "behind", "from": "b", "to": "c", **wire}]
    path = ranway.Scenario.from_dict({"title": "A path", "duration": "2 s", "links": links})
    with ranway.emulate(path, max_lateness=PATIENT, router="b") as network:
        assert network.router is not None
        assert [host.name for host in (network.server, *network.ues, network.router)] == ["a", "c", "b"]
        answer = network.ue.run(["ping", "-c", "1", "a"], capture_output=True, text=True, check=True).stdout
    assert "ttl=63" in answer
    with pytest.raises(ranway.ScenarioError, match="use b"):
        ranway.emulate(path, router="nowhere")


def test_name_servers_that_cannot_be_used_are_refused(link: ranway.Scenario) -> None:
    with pytest.raises(ValueError, match="nat=True"):
        ranway.emulate(link, dns=["192.0.2.53"])
    with pytest.raises(ValueError, match="dns: `resolver` is not an IPv4 address"):
        ranway.emulate(link, nat=True, dns=["resolver"])


@needs_root
def test_one_that_is_late_is_not_valid(link: ranway.Scenario) -> None:
    with ranway.emulate(link, max_lateness="1 ns") as cell:
        cell.ue.run(["ping", "-c", "1", "server"], stdout=subprocess.DEVNULL, check=True)
    assert not cell.valid
    assert cell.results.timing["lateness"]["bound_ms"] == 1e-6


@needs_root
def test_what_a_reader_should_know_is_a_warning_at_the_end(link: ranway.Scenario) -> None:
    with pytest.warns(UserWarning, match="packets with an unknown destination: 1"):  # noqa: SIM117
        with ranway.emulate(link, max_lateness=PATIENT) as cell:
            cell.ue.run(["ping", "-c", "1", "-W", "0.1", "10.9.9.9"], stdout=subprocess.DEVNULL)


@needs_root
def test_an_exception_in_the_block_is_raised_and_nothing_is_left(link: ranway.Scenario) -> None:
    with pytest.raises(ZeroDivisionError), ranway.emulate(link) as cell:
        sleep = cell.ue.popen(["sleep", "100"])
        raise ZeroDivisionError
    assert sleep.returncode == -signal.SIGKILL
    assert not is_there(cell.ue)
    assert not is_there(cell.server)
    # And there are results of what happened until then.
    assert cell.results.timing["lateness"] is not None


@needs_root
def test_one_that_is_dropped_goes_away(link: ranway.Scenario) -> None:
    cell = ranway.emulate(link)
    ue = cell.ue
    assert is_there(ue)
    del cell
    gc.collect()
    assert not is_there(ue)


@needs_root
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_interrupted_or_killed_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    script = f"""
import ranway
try:
    with ranway.emulate(ranway.Scenario.from_dict({LINK!r}), out={str(tmp_path / "out")!r}) as cell:
        cell.ue.run(["sh", "-c", "sleep 0.5; echo $0; sleep 100", cell.ue.netns])
except KeyboardInterrupt:
    print("interrupted", cell.results.meta["title"])
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        netns = process.stdout.readline().strip()
        assert (NAMESPACES / netns).exists()
        process.send_signal(how)
        out, _ = process.communicate(timeout=10)
    assert goes_away(netns)
    if how == signal.SIGINT:
        assert out == "interrupted A link\n"
        assert (tmp_path / "out" / "summary.json").exists()
    else:
        assert process.returncode == -how
        assert not (tmp_path / "out").exists()


def test_a_sweep_is_refused_and_told_what_to_choose(link: ranway.Scenario) -> None:
    with pytest.raises(
        ranway.ScenarioError, match=r"sweep over links\.wire\.delay, .* set\(\{'links\.wire\.delay': VALUE"
    ):
        ranway.emulate(link.sweep({"links.wire.delay": ["1 ms", "2 ms"]}))
    with pytest.raises(ValueError, match="pcap=True needs out="):
        ranway.emulate(link, pcap=True)
    with pytest.raises(ValueError, match="max_lateness: `soon` is not a time"):
        ranway.emulate(link, max_lateness="soon")


def test_a_network_without_flows_is_a_scenario_that_cannot_be_simulated(link: ranway.Scenario) -> None:
    assert ranway.Scenario("lte-20mhz-vehicular").points == [{}]
    for scenario in (link, "lte-20mhz-vehicular"):
        with pytest.raises(ranway.ScenarioError, match=r"^flows: the scenario has no flows; add \[\[flows\]\]$"):
            ranway.run(scenario)


@needs_root
def test_code_in_a_block_is_in_the_host(link: ranway.Scenario) -> None:
    own = os.readlink("/proc/thread-self/ns/net")
    with ranway.emulate(link, max_lateness=PATIENT, names={"api.example.com": "server"}) as cell:
        with cell.ue:
            assert os.readlink("/proc/thread-self/ns/net") != own
            for name in ("server", "a", "API.example.com", cell.server.address, f"[{cell.server.address6}]"):
                with urllib.request.urlopen(f"http://{name}/5kB", timeout=20) as answer:
                    assert len(answer.read()) == 5000
            # A thread that is started in the block, as that of a new event loop, is in the host.
            with ThreadPoolExecutor(1) as pool:
                connected = pool.submit(socket.create_connection, ("server", 80), 20).result()
                connected.close()

            async def fetch() -> bytes:
                reader, writer = await asyncio.open_connection("server", 80)
                writer.write(b"GET /3kB HTTP/1.0\r\n\r\n")
                answer = await reader.read()
                writer.close()
                return answer

            assert len(asyncio.run(fetch()).split(b"\r\n\r\n", 1)[1]) == 3000
            with cell.server:
                assert socket.getaddrinfo("ue", None)[0][4][0] == cell.ue.address
            assert os.readlink("/proc/thread-self/ns/net") != own
        assert os.readlink("/proc/thread-self/ns/net") == own
        with pytest.raises(ZeroDivisionError), cell.ue:
            _ = 1 // 0
        assert os.readlink("/proc/thread-self/ns/net") == own
    assert cell.results.flows["bytes"].sum() >= 5 * 5000 + 3000


@needs_root
def test_code_outside_that_connects_to_a_host_is_refused(cell: ranway.Emulation) -> None:
    refused = r"10.0.0.1 is a of an emulated network, .* `with cell.ue:`"
    with socket.socket() as tcp, pytest.raises(ranway.RanwayError, match=refused):
        tcp.connect(("10.0.0.1", 80))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        with pytest.raises(ranway.RanwayError, match="is b of an emulated network"):
            udp.sendto(b"x", (cell.ue.address, 9))
        # Others are none of ours.
        udp.sendto(b"x", ("127.0.0.1", 9))


@needs_root
def test_programs_find_hosts_by_asking_a_name_server(link: ranway.Scenario) -> None:
    ask = """
import socket, struct, sys
query = struct.pack("!6H", 7, 0x100, 1, 0, 0, 0)
query += b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[1].split("."))
query += struct.pack("!B2H", 0, 1, 1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.settimeout(10)
    udp.sendto(query, ("127.0.0.1", 53))
    answer = udp.recv(512)
print(answer[3] & 15, ".".join(map(str, answer[-4:])) if struct.unpack("!H", answer[6:8])[0] else "-")
"""
    with ranway.emulate(link, max_lateness=PATIENT, names={"api.example.com": "server"}) as cell:
        for host in (cell.ue, cell.server):
            for name, answer in (("api.example.com", "0 10.0.0.1"), ("ue", "0 10.0.1.1"), ("example.org", "3 -")):
                said = host.run([sys.executable, "-c", ask, name], capture_output=True, text=True, check=True)
                assert said.stdout.strip() == answer
    with pytest.raises(ranway.ScenarioError, match="there is no host `phone`; the hosts are a, server, b, ue1, ue"):
        ranway.emulate(link, names={"x": "phone"})
    with pytest.raises(ValueError, match=r"names: expected a name and a host, such as api.example.com=server"):
        ranway.emulate(link, names={"x y": "server"})


@needs_root
def test_a_network_stands_between_two_interfaces(link: ranway.Scenario, tmp_path: Path) -> None:
    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    names = [f"rwpy{end}{os.getpid() % 10000}" for end in "wr"]
    try:
        for n, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", name, "up")
            ip("-n", name, "address", "add", f"192.0.2.{n + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        with ranway.attach(link, *names, max_lateness=PATIENT, out=tmp_path / "out") as cell:
            line = ["ip", "netns", "exec", names[1], "ping", "-c", "5", "-i", "0.2", "192.0.2.1"]
            said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
            assert cell.status()
        assert 20 < float(said.split("rtt ")[1].split("= ")[1].split("/")[0]) < 30
        assert cell.results.flows.height > 0
        assert (tmp_path / "out/flows.parquet").exists()
        with pytest.raises(ranway.ScenarioError, match="the scenario has no host 7"):
            ranway.attach(link, *names, ue=7)
    finally:
        for name in names:
            subprocess.run(["ip", "link", "delete", name], check=False)
            subprocess.run(["ip", "netns", "delete", name], check=False)
