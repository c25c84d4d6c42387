"""What the tests share."""

import os
from pathlib import Path

import matplotlib
import pytest

import ranway

matplotlib.use("Agg")

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="real hosts need root and /dev/net/tun"
)

# Short, with losses, so that another seed gives other results.
TOML = """
title = "Two flows"
duration = "4 s"
warmup = "1 s"
runs = 2

[parameters]
loss = 1e-3

[dumbbell]
rate = "10 Mbit/s"
rtt = "30 ms"
loss = "${loss}"
queue = { kind = "drop-tail", packets = 50 }

[[flows]]
name = "first"
cc = "cubic"

[[flows]]
name = "second"
cc = "bbr"
start = "1 s"
"""


@pytest.fixture(scope="session")
def scenario() -> ranway.Scenario:
    return ranway.Scenario.from_toml(TOML)


@pytest.fixture(scope="session")
def swept(scenario: ranway.Scenario) -> ranway.Results:
    """Two losses by two controls of the first flow, twice each."""
    axes = {"flows.first.cc": ["cubic", "vegas"], "loss": [1e-4, 1e-2]}
    return ranway.run(scenario.sweep(axes), seed=7, progress=None)
