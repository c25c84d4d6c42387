"""Runs the jobs of `ranway sweep --dask` on a Dask cluster.

The command starts this module, and writes what to do to its standard input, as a line of JSON. When the input ends,
the command has ended or was interrupted, and so is this. Why it failed goes to standard output, in a line.
"""

import _thread
import json
import sys
import threading
from pathlib import Path

import distributed

from ranway._errors import RanwayError, ScenarioError
from ranway._scenario import Scenario
from ranway._sweep import run_jobs

# How long to wait for a scheduler.
_TIMEOUT_S = 10


def _client(scheduler: str) -> distributed.Client:
    """Returns a client of the scheduler at an address, or the one that a file describes."""
    where = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    return distributed.Client(**where, timeout=_TIMEOUT_S, set_as_default=False)


def _end_with_input() -> None:
    sys.stdin.read()
    _thread.interrupt_main()


def main() -> int:
    """Returns the exit code."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        # The command has told its warnings.
        scenario = Scenario._restore(request["source"], None, request["overrides"], {})
        with _client(request["scheduler"]) as client:
            run_jobs(scenario, Path(request["out"]), client, progress=request["progress"])
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, RanwayError, ScenarioError) as error:
        print(" ".join(str(error).split()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
