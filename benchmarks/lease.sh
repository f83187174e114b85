#!/usr/bin/env bash
# The next missing runs of several tables on a GPU that is lent for minutes and begins bare.
#
#   PATHNN_COMMIT=… OUT=folder bash benchmarks/lease.sh SECONDS TARGET ONLY JOBS [TARGET ONLY JOBS …]
#
# All lists are done at the same time, each target at most once. Data is read from .device/data, runs under way from
# .device/TARGET.tar.xz. Results, and runs under way to go on from, come to $OUT, in parts of 15 MiB. With TESTS=1 the tests
# that need a GPU are done beside; where they fail, so does this.
set -u
cd "$(dirname "$0")/.."
: "${PATHNN_COMMIT:?}" "${OUT:?}"
export PYTHONPATH=src PYTHONUNBUFFERED=1 PATHNN_MIRROR=$PWD/.device/data PATHNN_OFFLINE=1 PATHNN_COMMIT
BEGIN=$(date +%s) LIMIT=$1 WORK=/tmp/pathnn-work RESULTS=/tmp/pathnn-results STATUS=0
shift
mkdir -p "$WORK" "$RESULTS"
since() { echo "$(($(date +%s) - BEGIN)) s: $*"; }

if [ -n "${TESTS:-}" ]; then # before MPS, which would share a fault of one process with all
    timeout $((LIMIT - 20)) python -m pytest -q -m cuda -p no:cacheprovider tests >/tmp/tests.log 2>&1 &
    TESTING=$!
fi
export CUDA_MPS_PIPE_DIRECTORY=/tmp/lease-mps CUDA_MPS_LOG_DIRECTORY=/tmp/lease-mps
mkdir -p "$CUDA_MPS_PIPE_DIRECTORY"
pgrep -x nvidia-cuda-mps >/dev/null || nvidia-cuda-mps-control -d || unset CUDA_MPS_PIPE_DIRECTORY

RUNNING=()
while [ $# -ge 3 ]; do
    TARGET=$1 ONLY=$2 JOBS=$3
    shift 3
    [ -e "$RESULTS/$TARGET.jsonl" ] || cp "results/$TARGET.jsonl" "$RESULTS"
    UNPACK=()
    if [ -e ".device/$TARGET.tar.xz" ]; then
        xz -dc ".device/$TARGET.tar.xz" >"/tmp/$TARGET.in.tar" && UNPACK=(--unpack "/tmp/$TARGET.in.tar")
    fi
    MINUTES=$(awk "BEGIN { print ($LIMIT - ($(date +%s) - $BEGIN)) / 60 }")
    python -m pathnn.cli reproduce "$TARGET" --only "$ONLY" --jobs "$JOBS" --time-limit "$MINUTES" \
        --results "$RESULTS" --work "$WORK" --pack "/tmp/$TARGET.tar" ${UNPACK[@]+"${UNPACK[@]}"} >"/tmp/$TARGET.log" 2>&1 &
    RUNNING+=("$TARGET:$!")
done
for ONE in "${RUNNING[@]}"; do
    TARGET=${ONE%:*}
    wait "${ONE#*:}" || STATUS=$?
    since "$TARGET is over"
    grep -aE "failed|unpacked|packed|left|MPS" "/tmp/$TARGET.log" | tail -12
    cp "$RESULTS/$TARGET.jsonl" "$OUT"
    xz -T0 -1 -c "/tmp/$TARGET.tar" | split -b 15M -d -a 2 - "$OUT/$TARGET.tar.xz."
done
if [ -n "${TESTING:-}" ]; then
    wait "$TESTING" || STATUS=$?
    tail -5 /tmp/tests.log
    cp /tmp/tests.log "$OUT"
fi
since "all is over"
exit "$STATUS"
