"""An epoch of ZINC on a GPU, batches assembled on the device, evaluation not counted.

PATHNN_MIRROR=../shared/data python benchmarks/epoch.py --json result.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pathnn.bench.epoch_gpu import measure_epochs
from pathnn.bench.record import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="where to write the result")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    rows = [measure_epochs(options.epochs, tf32=tf32) for tf32 in (False, True)]
    for row in rows:
        print(
            f"{row['workload']}{', TF32' if row['tf32'] else ''}: {row['seconds']:.3f} s, {row['steps']} steps, "
            f"{row['graphed_share']:.0%} of them CUDA graphs, loss {row['loss']:.4f}"
        )
    if options.json:
        write_result(options.json, {"epochs": rows})


if __name__ == "__main__":
    main()
