"""An epoch and an evaluation, ours against dense: `python benchmarks/epoch.py [--json FILE] [--device cpu]`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pathnn.training.recipes import zinc
from pathnn_reproduction.bench import epoch
from pathnn_reproduction.results import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--graphs", type=int, help="train on so many graphs only")
    args = parser.parse_args()
    config = replace(zinc("ap"), device=args.device)
    rows = epoch.run(config, epochs=args.epochs, graphs=args.graphs)
    if args.device != "cpu":
        rows += epoch.run(replace(config, precision="tf32"), epochs=args.epochs, graphs=args.graphs)
    for row in rows:
        print(
            f"{row['workload']:20} {row['phase']:10} dense {row['dense_ms']:8.0f} ms   ours {row['ours_ms']:8.0f} ms   "
            f"{row['ratio']:5.1f}x"
        )
    if args.json:
        write_result(args.json, {"workloads": rows}, device=args.device)


if __name__ == "__main__":
    main()
