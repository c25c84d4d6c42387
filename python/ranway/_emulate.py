"""Real hosts behind a scenario's network, in real time."""

import json
import os
import signal
import subprocess
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ranway import _inside, _ranway
from ranway._errors import ScenarioError
from ranway._results import Results
from ranway._scenario import Scenario


class Host:
    """A network namespace of a running emulation. Its interface `cell0` leads into the network.

    In a `with` block, code of this process is in the host:

        with cell.ue:
            requests.get("http://server/10MB")

    That holds for the thread that enters the block, and for threads that it starts there, such as those of a new event
    loop. Sockets stay in the host in which they were made. The hosts' names are known to `socket.getaddrinfo`; files
    and other settings are those of this process. Code outside that connects to a host's address gets a `RanwayError`:
    on this machine, the address belongs to nobody, or to another.
    """

    __slots__ = ("_before", "_id", "_started", "address", "address6", "name", "netns")

    def __init__(self, name: str, netns: str, address: str, address6: str, id: str = "") -> None:
        self.name = name
        """The scenario's name of the node."""
        self.netns = netns
        """The name of the namespace, for `ip netns exec`."""
        self.address = address
        """Its IPv4 address. Other hosts can also reach it by its name."""
        self.address6 = address6
        """Its IPv6 address."""
        self._id = id
        self._started: list[subprocess.Popen[Any]] = []
        # By thread, as blocks may be nested.
        self._before = threading.local()

    def __enter__(self) -> Self:
        stack: list[int] = self._before.__dict__.setdefault("stack", [])
        stack.append(_inside.enter(self._place))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _inside.leave(self._before.stack.pop())

    @property
    def _place(self) -> Path:
        return Path("/run/netns", self.netns)

    def run(self, command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.CompletedProcess[Any]:
        """Runs a command in the namespace and waits for it, like `subprocess.run`, which receives the `options`.

        Its environment has the emulation's ID (`RANWAY_ID`), with which it can call `ranway control`.
        """
        return subprocess.run(self._inside(command), **self._with_id(options))

    def popen(self, command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[Any]:
        """Starts a command in the namespace, like `subprocess.Popen`. It is killed at the end of the emulation."""
        process = subprocess.Popen(self._inside(command), **self._with_id(options))
        self._started.append(process)
        return process

    def _reap(self) -> None:
        """Waits for the processes that were killed with the namespace."""
        for process in self._started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(1)

    def _with_id(self, options: dict[str, Any]) -> dict[str, Any]:
        """Adds the emulation's ID to the environment, as `RANWAY_ID`."""
        given = options.get("env")
        return {**options, "env": {**(os.environ if given is None else given), "RANWAY_ID": self._id}}

    def _inside(self, command: Sequence[str | os.PathLike[str]]) -> list[str | os.PathLike[str]]:
        if isinstance(command, str):
            raise TypeError("a command must be a list of words, such as ['ping', '-c', '3', 'server']")
        return ["ip", "netns", "exec", self.netns, *command]

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.address} in {self.netns}>"


class Running:
    """A network that runs in real time, from `attach`. Leaving its `with` block ends it; `results` is available then.

    Without a `with` block it ends when it is garbage collected, and there are no results.
    """

    def __init__(self, running: _ranway.Emulation) -> None:
        self._running = running
        self._results: Results | None = None

    @property
    def results(self) -> Results:
        """The results, with the tables of a simulation and a row for each real flow. Available once it has ended."""
        if self._results is None:
            raise RuntimeError("the emulation is still running: its results are available after the `with` block")
        return self._results

    @property
    def valid(self) -> bool:
        """Whether all packets were on time; if not, the results describe the machine rather than the network."""
        return bool(self.results.timing["lateness"]["valid"])

    def control(self, command: str) -> str:
        """Sends a request, like `ranway control`: `control("sinr ue 3")`. Returns the answer.

        Raises `RanwayError` if the answer is an error.
        """
        return self._running.control(command)

    def outage(self, seconds: float, link: str | None = None) -> float:
        """Stops all links, or one, for a time in which packets wait. Does not wait for it.

        Returns the time of the emulation at which the outage ends, in seconds.
        """
        where = "" if link is None else f'"{link}" '
        return float(self.control(f"outage {where}{seconds * 1e6:.0f} us").split()[-2])

    def status(self) -> dict[str, Any]:
        """Returns the current state of the network."""
        status: dict[str, Any] = json.loads(self._running.control("status"))
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(stacklevel=3)

    def _end(self, stacklevel: int) -> None:
        results, notes = self._running.finish()
        self._results = Results(results)
        for note in notes:
            warnings.warn(note, stacklevel=stacklevel)


class Emulation(Running):
    """A running emulation, from `emulate`. Leaving its `with` block ends it; `results` is available from then on.

    Without a `with` block it ends when it is garbage collected, and there are no results.
    """

    def __init__(self, running: _ranway.Emulation) -> None:
        super().__init__(running)
        hosts = [Host(*host, running.id()) for host in running.hosts()]
        self._guarded = [(host.name, host._place, host.address, host.address6) for host in hosts]
        self.router = hosts.pop() if running.has_router() else None
        """The host that forwards packets between the others; None without `router` and without a proxy."""
        self.server = hosts[0]
        """The host behind the network, with a web server on port 80: `http://server/10MB`."""
        self.ues = hosts[1:]
        """The UEs, in the scenario's order; in a network without radio, the receiving hosts."""
        _inside.add(self._guarded)
        # Without a `with` block, too.
        weakref.finalize(self, _inside.remove, self._guarded)

    @property
    def ue(self) -> Host:
        """The first UE."""
        return self.ues[0]

    def _end(self, stacklevel: int) -> None:
        _inside.remove(self._guarded)
        super()._end(stacklevel + 1)
        for host in (self.server, *self.ues, *([self.router] if self.router else [])):
            host._reap()


def emulate(
    scenario: Scenario | str | os.PathLike[str],
    *,
    kernel: bool = False,
    mtu: int = 1500,
    max_lateness: str = "0.5 ms",
    pcap: bool = False,
    out: str | os.PathLike[str] | None = None,
    nat: bool = False,
    dns: Sequence[str] = (),
    router: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Emulation:
    """Connects network namespaces through the network of `scenario`, in real time. Needs root.

        with ranway.emulate("lte-20mhz-vehicular") as cell:
            cell.ue.run(["curl", "-so", "/dev/null", "http://server/10MB"], check=True)
        print(cell.results.flows["flow", "goodput_mbps"])

    - `kernel`: whether the scenario's TCP flows are sent by the kernel; otherwise they are simulated beside the real
      packets, in the same queues and cells.
    - `mtu`: the longest IP packet of the hosts' interfaces.
    - `max_lateness`: by how much 1 % of the packets may be late for `Emulation.valid`.
    - `pcap`: whether all packets are captured, into `captures/hosts.pcapng` in `out`.
    - `out`: a directory to write the results to at the end.
    - `nat`: whether the hosts reach this machine's networks through the server, which translates their addresses.
    - `dns`: IPv4 addresses of name servers for the hosts with `nat`, instead of this machine's own; three at most.
    - `router`: a node of the network, such as `core`, at which another namespace forwards the hosts' packets. Each of
      its two sides is a flow of its own in the results.
    - `names`: further names of hosts, such as `{"api.example.com": "server"}`. Programs in hosts find all hosts by
      name: in `/etc/hosts`, and by asking a name server, which is at 127.0.0.1 in each host (not with `nat`).

    An emulation is a single run: a sweep is rejected. Everything created for it is removed when it ends, even if this
    process is killed. Notes beside the results, such as packets to addresses that no host has, are issued as warnings
    at the end.

    Raises `ScenarioError`, `OSError` or `RanwayError`, the last also if the machine lacks something that it needs.
    """
    if dns and not nat:
        raise ValueError("dns=ADDRESSES needs nat=True")
    options = {"kernel": kernel, "nat": nat, "dns": list(dns), "router": router, "names": dict(names or {})}
    return Emulation(_ranway.emulate(_single(scenario), _options(mtu, max_lateness, pcap, out, options)))


def attach(
    scenario: Scenario | str | os.PathLike[str],
    wan: str,
    ran: str,
    *,
    ue: int = 1,
    mtu: int = 1500,
    max_lateness: str = "0.5 ms",
    pcap: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Running:
    """Puts the network of `scenario` between two Ethernet interfaces, as `ranway emulate --attach`. Needs root.

        with ranway.attach("lte-cell", "eth1", "eth2") as cell:
            cell.control("sinr ue 3")
            ...

    The hosts are the devices connected to the interfaces: those behind `wan` stand for the server, those behind `ran`
    for the UE with the number `ue`, from 1. The interfaces are in this thread's network namespace, and are restored at
    the end. The other options and errors are those of `emulate`.
    """
    if ue < 1:
        raise ValueError(f"ue={ue}: UEs are counted from 1")
    loaded = _single(scenario)
    options: dict[str, Any] = {"kernel": False, "nat": False, "dns": [], "router": None, "names": {}}
    return Running(_ranway.attach(loaded, (wan, ran), ue, _options(mtu, max_lateness, pcap, out, options)))


def _options(
    mtu: int, max_lateness: str, pcap: bool, out: str | os.PathLike[str] | None, more: dict[str, Any]
) -> dict[str, Any]:
    """Returns the options as the simulator takes them."""
    if pcap and out is None:
        raise ValueError("pcap=True needs out=DIRECTORY to write the capture to")
    # Polars makes system calls resume after Ctrl-C (SA_RESTART), so that `run` would keep waiting for its process.
    signal.siginterrupt(signal.SIGINT, True)
    return {"mtu": mtu, "max_lateness": max_lateness, "pcap": pcap, "out": out, **more}


def _single(scenario: Scenario | str | os.PathLike[str]) -> _ranway.Loaded:
    """Returns a scenario as a single run."""
    if not isinstance(scenario, Scenario):
        scenario = Scenario(scenario)
    if len(points := scenario.points) > 1:
        swept = list(points[0])
        raise ScenarioError(
            f"the scenario has a sweep over {', '.join(swept)}, and an emulation is one run: "
            f"choose a value with set({{{swept[0]!r}: VALUE}})"
        )
    return scenario.set(runs=1)._loaded
