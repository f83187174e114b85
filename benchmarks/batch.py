"""Assembling batches with their paths: `python benchmarks/batch.py [--json FILE] [--threads 1]`."""

import argparse
from pathlib import Path

from pathnn_reproduction.bench import batch
from pathnn_reproduction.results import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads")
    parser.add_argument("--json", type=Path, help="write the result, with its provenance, to this file")
    args = parser.parse_args()
    result = batch.run(threads=args.threads)
    print(
        f"{result['workload']}, {result['entries_per_batch']:,.0f} entries a batch, {result['threads']} threads "
        f"(target: {result['target_ratio']:.0f}x)"
    )
    for row in result["rows"]:
        print(f"  {row['method']:26} {row['ms']:9.3f} ms a batch {row['ratio']:8.1f}x")
    if args.json:
        write_result(args.json, result)


if __name__ == "__main__":
    main()
