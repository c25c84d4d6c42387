"""Runs the jobs of `ranway sweep --dask` on a Dask cluster.

The command starts this module, and writes what to do to its standard input, as a line of JSON. When the input ends,
the command has ended or was interrupted, and so is this. Why it failed goes to standard output, in a line.
"""

import _thread
import json
import logging
import os
import sys
import threading
from pathlib import Path

import distributed

from ranway._scenario import Scenario
from ranway._sweep import run_jobs

# How long to wait for a scheduler.
_TIMEOUT_S = 10


def _client(scheduler: str) -> distributed.Client:
    """Returns a client of the scheduler at an address, or the one that a file describes."""
    address: object = scheduler
    if Path(scheduler).is_file():
        described = json.loads(Path(scheduler).read_text())
        address = described.get("address") if isinstance(described, dict) else None
        if not isinstance(address, str):
            raise ValueError("the file has no address: `dask scheduler --scheduler-file` writes one")
    return distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)  # type: ignore[no-untyped-call]


def _end_with_input() -> None:
    sys.stdin.read()
    _thread.interrupt_main()


def main() -> int:
    """Returns the exit code."""
    request = json.loads(sys.stdin.readline())
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        # The command has told its warnings.
        scenario = Scenario._restore(request["source"], None, request["overrides"], {})
        with _client(request["scheduler"]) as client:
            run_jobs(scenario, Path(request["out"]), client, progress=request["progress"])
    except KeyboardInterrupt:
        return 130
    # Whatever it was, the command tells it in one line.
    except Exception as error:
        print(" ".join(str(error).split()) or type(error).__name__, flush=True)
        # A client without a scheduler would try to take leave of it for many seconds.
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
