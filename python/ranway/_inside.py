"""Code of this process inside hosts: network namespaces of threads, and a guard against code that is outside.

A network namespace belongs to a thread. A thread that enters a host keeps its own namespace open to return to, and
threads that it starts meanwhile are in the host, too.
"""

import ctypes
import os
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ranway._errors import RanwayError

# setns(2)
_CLONE_NEWNET = 0x40000000
_OWN = "/proc/thread-self/ns/net"
_EVENTS = ("socket.connect", "socket.sendto", "socket.sendmsg")

# The hosts of running emulations by address: their names and namespaces. Emulations at the same time share addresses.
_hosts: dict[str, list[tuple[str, Path]]] = {}
# The addresses of names, by namespace.
_names: dict[Path, dict[str, list[str]]] = {}
_lock = threading.Lock()
_is_guarded = False


def enter(namespace: Path) -> int:
    """Moves this thread into a network namespace. Returns a descriptor of the one that it was in."""
    before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        inside = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _move(inside)
        finally:
            os.close(inside)
    except BaseException:
        os.close(before)
        raise
    return before


def leave(before: int) -> None:
    """Moves this thread back."""
    try:
        _move(before)
    finally:
        os.close(before)


def _move(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"enter a network namespace: {os.strerror(code)}")


def add(hosts: Sequence[tuple[str, Path, str, str]]) -> None:
    """Guards these hosts (name, namespace, addresses)."""
    global _is_guarded
    with _lock:
        for name, namespace, *addresses in hosts:
            for address in addresses:
                _hosts.setdefault(address, []).append((name, namespace))
            _names[namespace] = _named(Path("/etc/netns", namespace.name, "hosts"))
        if not _is_guarded:
            _is_guarded = True
            sys.addaudithook(_guard)
            socket.getaddrinfo = _getaddrinfo


def remove(hosts: Sequence[tuple[str, Path, str, str]]) -> None:
    """Ends the guard of these hosts."""
    with _lock:
        for name, namespace, *addresses in hosts:
            for address in addresses:
                left = [one for one in _hosts.get(address, []) if one != (name, namespace)]
                _hosts[address] = left
                if not left:
                    del _hosts[address]
            _names.pop(namespace, None)


def _named(file: Path) -> dict[str, list[str]]:
    """Returns the addresses of each name in a file such as /etc/hosts."""
    known: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        address, *names = line.split()
        for name in names:
            known.setdefault(name.lower(), []).append(address)
    return known


def _here() -> Path | None:
    """Returns the namespace of an emulation in which this thread is, if it is in one."""
    own = os.stat(_OWN)
    for namespace in list(_names):
        try:
            found = namespace.stat()
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
            return namespace
    return None


def _guard(event: str, args: tuple[Any, ...]) -> None:
    """Refuses packets to hosts from outside: this machine would send them to others that have these addresses."""
    if not _hosts or event not in _EVENTS or not isinstance(args[1], tuple):
        return
    host = _hosts.get(args[1][0])
    if host and _here() is None:
        name = host[0][0]
        raise RanwayError(
            f"{args[1][0]} is {name} of an emulated network, and this code is outside of it: put it into a block such "
            "as `with cell.ue:`, or run a program with `cell.ue.run`"
        )


_resolve = socket.getaddrinfo


def _getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
    """`socket.getaddrinfo`; in a host of an emulation, it knows the names of the others."""
    name = host.decode() if isinstance(host, bytes) else host
    if not _names or not isinstance(name, str):
        return _resolve(host, port, family, type, proto, flags)
    here = _here()
    known = _names.get(here, {}).get(name.lower().rstrip(".")) if here else None
    if known is None:
        return _resolve(host, port, family, type, proto, flags)
    wanted = {socket.AF_INET: ".", socket.AF_INET6: ":"}.get(socket.AddressFamily(family), "")
    addresses = [address for address in known if wanted in address]
    return [entry for address in addresses for entry in _resolve(address, port, 0, type, proto, flags)]
