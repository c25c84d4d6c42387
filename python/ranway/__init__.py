"""Simulate TCP over links with loss, delay and queues, and analyse the results.

    import ranway

    results = ranway.run(ranway.Scenario("dumbbell").set(cc="bbr"), runs=10, seed=1)
    print(results.flows)                       # a Polars DataFrame
    ranway.plot.rtt_cdf(results)               # matplotlib Axes

    with ranway.emulate("lte-20mhz-vehicular") as cell:     # as root: a real host behind a real-time cell
        cell.ue.run(["ping", "-c", "3", "server"])

A `Scenario` is a file, a built-in name, TOML text or a dict; `run` simulates all points of its sweep on all cores;
`Results` holds the tables. The same scenario and seed give the same results as the command `ranway run`.

To share the work between processes, `scenario.jobs()` lists the single runs, `scenario.run(jobs=[...])` runs some of
them, and `merge` joins the results. Scenarios, jobs and results can be pickled. `sweep` does all of this for thousands
of jobs, here or on a Dask cluster, and resumes after an interruption.
"""

import json
from typing import Any

from ranway import _ranway, plot
from ranway._emulate import Emulation, Host, Running, attach, emulate
from ranway._errors import RanwayError, ScenarioError
from ranway._jobs import Job
from ranway._progress import Progress
from ranway._results import Results, merge, read
from ranway._run import run
from ranway._scenario import Scenario
from ranway._sweep import sweep

__version__: str = _ranway.__version__

__all__ = [
    "Emulation",
    "Host",
    "Job",
    "Progress",
    "RanwayError",
    "Results",
    "Running",
    "Scenario",
    "ScenarioError",
    "__version__",
    "attach",
    "builtin",
    "emulate",
    "merge",
    "plot",
    "read",
    "run",
    "schema",
    "sweep",
]


def builtin() -> dict[str, str]:
    """Returns the names of the built-in scenarios, simplest first, each with a one-line description."""
    return dict(_ranway.builtin())


def schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of scenario files."""
    schema: dict[str, Any] = json.loads(_ranway.schema())
    return schema
