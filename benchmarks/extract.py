"""Extraction: against igraph, memory, scaling, the GPU. `python benchmarks/extract.py [--json FILE] [--part ...]`"""

import argparse
from pathlib import Path

from pathnn_reproduction.bench import extract
from pathnn_reproduction.results import write_result

TARGETS = {"list": {"ap": 100, "sp": 30, "sp+": 30}, "trie": {"ap": 40, "sp": 20, "sp+": 20}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=("compare", "memory", "scale", "gpu"), action="append")
    parser.add_argument("--json", type=Path, help="write the result, with its provenance, to this file")
    args = parser.parse_args()
    parts = args.part or ["compare", "memory", "scale"]
    result = {}
    if "compare" in parts:
        result["compare"] = extract.compare(threads=1) + extract.compare(threads=2)
        print_compare(result["compare"])
    if "memory" in parts:
        result["memory"] = extract.memory()
        print("\npeak memory over the size of the result (target: at most 3)")
        for row in result["memory"]:
            size = row["result_bytes"] / 2**20
            print(f"  {row['workload']:9} {row['collection']:4} {row['ratio']:5.2f}   result {size:7.1f} MiB")
    if "scale" in parts:
        result["scale"] = extract.scale()
        print("\nZINC-shaped molecules, AP, K = 4, in chunks (target: linear, process within 2048 MiB)")
        for row in result["scale"]:
            peak, each = row["peak_process_bytes"] / 2**20, row["us_per_graph"]
            print(f"  {row['graphs']:9,} graphs {row['seconds']:8.2f} s {each:6.1f} us each, {peak:6.0f} MiB")
    if "gpu" in parts:
        result["gpu"] = extract.on_gpu()
        print(result["gpu"])
    if args.json:
        write_result(args.json, result, device="cuda" if "gpu" in parts else "cpu")


def print_compare(rows: list[dict]) -> None:
    print(
        "workload  coll k threads   igraph     list     trie   (ms per 1000 graphs)  list x  (target)  trie x  (target)"
    )
    for row in rows:
        wanted = {kind: TARGETS[kind][row["collection"]] for kind in TARGETS}
        print(
            f"{row['workload']:9} {row['collection']:4} {row['k']} {row['threads']:7} "
            f"{row['igraph_ms']:8.0f} {row['list_ms']:8.2f} {row['trie_ms']:8.2f}"
            f"{row['list_ratio']:29.0f} {wanted['list']:9} {row['trie_ratio']:7.0f} {wanted['trie']:9}"
        )


if __name__ == "__main__":
    main()
