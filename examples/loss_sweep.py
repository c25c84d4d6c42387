"""CUBIC and BBR under random loss: a table of throughput and a figure.

    python examples/loss_sweep.py --runs 10 --out loss-sweep

writes loss-sweep.pdf and loss-sweep.png. Needs `pip install '.[plot]'`.
"""

import argparse

import ranway


def main() -> None:
    """Runs the sweep, prints the table, saves the figure."""
    parser = argparse.ArgumentParser(description="CUBIC and BBR against random loss")
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each point")
    parser.add_argument("--duration", default="60 s", help="simulated time of each run")
    parser.add_argument("--out", default="loss-sweep", help="the figure's path without its ending")
    args = parser.parse_args()

    scenario = (
        ranway.Scenario("dumbbell")
        .set(duration=args.duration)
        .set({"record.samples": "off"})
        .sweep({"dumbbell.loss": [0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]}, cc=["cubic", "bbr"])
    )
    results = ranway.run(scenario, runs=args.runs, seed=1)

    print(f"{'loss':>8} {'cc':>6}  throughput in Mbit/s, mean and 95 % interval over {args.runs} runs")
    for point in results.summary["points"]:
        values, throughput = point["values"], point["flows"][0]["throughput_mbps"]
        interval = f" ± {throughput['ci95']:.2f}" if throughput["ci95"] is not None else ""
        print(f"{values['dumbbell.loss']:8g} {values['cc']:>6}  {throughput['mean']:6.2f}{interval}")

    ax = ranway.plot.sweep(results, x="dumbbell.loss", y="throughput_mbps", hue="cc")
    ax.set_xlabel("Loss probability")
    ranway.plot.save(ax, f"{args.out}.pdf", f"{args.out}.png")
    print(f"figure: {args.out}.pdf, {args.out}.png")


if __name__ == "__main__":
    main()
