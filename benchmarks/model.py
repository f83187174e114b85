"""Trie against dense engine, one step on the CPU: `python benchmarks/model.py [--json FILE] [--workload zinc-ap]`."""

import argparse
from pathlib import Path

from pathnn.bench import model
from pathnn.provenance import write_result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=tuple(model.WORKLOADS), action="append", help="default: zinc-ap, dd-ap")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the result, with its provenance, to this file")
    args = parser.parse_args()
    chosen = tuple(args.workload or ("zinc-ap", "dd-ap"))
    rows = model.run(chosen, threads=args.threads, rounds=args.rounds)
    for row in rows:
        print(
            f"{row['workload']:34} {row['phase']:10} dense {row['dense_ms']:8.1f} ms {row['dense_mib']:6.0f} MiB   "
            f"trie {row['ours_ms']:8.1f} ms {row['ours_mib']:6.0f} MiB   {row['ratio']:5.2f}x"
        )
    if args.json:
        write_result(args.json, {"workloads": rows})


if __name__ == "__main__":
    main()
