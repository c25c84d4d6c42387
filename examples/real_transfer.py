"""A real `curl` behind an LTE cell: the time for 1 MB alone, during a download, and with flow queueing.

    sudo python examples/real_transfer.py

The download is simulated, and shares the phone's queue in the cell with the packets of `curl`. It needs root, `curl`
and `ping`, and takes half a minute: the cell runs in real time.
"""

import argparse
import statistics
import subprocess
import time

import ranway

CELL = {
    "title": "A phone in an LTE cell",
    "duration": "60 s",
    "parameters": {"queue": {"kind": "drop-tail", "bytes": "2 MB"}},
    "lte": {
        "bandwidth": "20 MHz",
        "server_delay": "10 ms",
        "ues": [{"name": "phone", "mobility": [200, 0, 1.5], "bearer": {"rlc": "am", "queue": "${queue}"}}],
    },
}


def main() -> None:
    """Runs the three cases and prints a row for each."""
    parser = argparse.ArgumentParser(description="A real transfer behind an LTE cell")
    parser.add_argument("--transfers", type=int, default=5, help="transfers of 1 MB in each case")
    parser.add_argument("--warmup", type=float, default=5.0, help="seconds that the download has to itself")
    args = parser.parse_args()

    alone = ranway.Scenario.from_dict(CELL)
    beside = alone.set(flows=[{"name": "download", "cc": "cubic"}])
    cases = {"alone": alone, "download, drop-tail": beside, "download, fq-codel": beside.set(queue="fq-codel")}
    print(f"{'':20} {'1 MB, median s':>15} {'ping, median ms':>16}   late, 99 %")
    for name, scenario in cases.items():
        with ranway.emulate(scenario) as cell:
            time.sleep(args.warmup)
            ping = cell.ue.popen(["ping", "-q", "-i", "0.1", "server"], stdout=subprocess.DEVNULL)
            times = [transfer(cell.ue) for _ in range(args.transfers)]
            ping.terminate()
        (rtt,) = [flow["rtt_p50_ms"] for flow in cell.results.flows.rows(named=True) if flow["transport"] == "icmp"]
        late = cell.results.timing["lateness"]["p99_ms"]
        print(
            f"{name:20} {statistics.median(times):15.2f} {rtt:16.1f}   {late:.2f} ms{'' if cell.valid else ' INVALID'}"
        )


def transfer(host: ranway.Host) -> float:
    """Returns the seconds that 1 MB takes."""
    curl = ["curl", "-so", "/dev/null", "-w", "%{time_total}", "http://server/1MB"]
    return float(host.run(curl, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
