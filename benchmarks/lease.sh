#!/usr/bin/env bash
# The next missing runs of several tables on a GPU that is lent for minutes and begins bare.
#
#   PATHNN_COMMIT=… OUT=FOLDER bash benchmarks/lease.sh SECONDS TARGET ONLY JOBS [TARGET ONLY JOBS …]
#
# Lists of different targets are done at the same time, those of one target one after the other, all of it for so many
# seconds; leave 30 more for packing. Data is read from .device/data, runs under way from .device/TARGET.tar.xz, which is
# what came to $OUT the last time, its parts put together. Results come to $OUT as TARGET.jsonl; runs under way as far as
# $ROOM MiB and $FILES files hold them, those of the targets that are named first before others'. A second call on the
# same machine goes on from what lies in $SCRATCH. With TESTS="tests/nn/test_a.py tests/paths" those of these tests that
# need a GPU are done first, each file or folder in a process of its own, and named in $OUT/tests.log; where they fail, or
# have no time to end, nothing else is done.
set -u
cd "$(dirname "$0")/.."
: "${PATHNN_COMMIT:?the commit of the code, for the results}" "${OUT:?the folder for what comes back}"
export PYTHONPATH=src:reproduction/src PYTHONUNBUFFERED=1 PATHNN_OFFLINE=1 PATHNN_COMMIT PATHNN_MIRROR=$PWD/.device/data
SCRATCH=${SCRATCH:-/tmp/pathnn-lease} ROOM=${ROOM:-60} FILES=${FILES:-8} BEGIN=$(date +%s) LIMIT=$1 STATUS=0
shift
mkdir -p "$SCRATCH/results" "$OUT"
since() { echo "$(($(date +%s) - BEGIN)) s: $*"; }

if [ -n "${TESTS:-}" ]; then # before MPS, with which a fault of one process would be one of all
    rm -rf "$SCRATCH/tests" && mkdir "$SCRATCH/tests"
    for FILE in $TESTS; do
        {
            timeout $((LIMIT - 20)) python -m pytest -vv -m cuda -p no:cacheprovider "$FILE"
            CODE=$?
            [ $CODE = 0 ] || [ $CODE = 5 ] || echo "$FILE failed, exit code $CODE" | tee -a "$SCRATCH/tests/failed" # 5: none need a GPU
        } >"$SCRATCH/tests/${FILE//\//-}.log" 2>&1 &
    done
    wait
    cat "$SCRATCH"/tests/*.log >"$OUT/tests.log"
    tail -qn 1 "$SCRATCH"/tests/*.log
    since "the tests are over"
    if [ -e "$SCRATCH/tests/failed" ]; then
        grep -aE "^(FAILED|E  )" "$OUT/tests.log" | head -40
        exit 1
    fi
fi
if command -v nvidia-cuda-mps-control >/dev/null; then # one for all targets, which would each start their own
    export CUDA_MPS_PIPE_DIRECTORY=$SCRATCH/mps CUDA_MPS_LOG_DIRECTORY=$SCRATCH/mps
    mkdir -p "$SCRATCH/mps"
    pgrep -x nvidia-cuda-mps >/dev/null || nvidia-cuda-mps-control -d || unset CUDA_MPS_PIPE_DIRECTORY
fi

rm -rf "$SCRATCH/lists" && mkdir "$SCRATCH/lists"
TARGETS=()
while [ $# -ge 3 ]; do
    [ -e "$SCRATCH/lists/$1" ] || TARGETS+=("$1")
    echo "$2 $3" >>"$SCRATCH/lists/$1"
    shift 3
done

work_through() { # the lists of a target
    local TARGET=$1 ONLY JOBS LEFT MINUTES FIRST=yes STATUS=0 UNPACK=()
    if [ ! -e "$SCRATCH/results/$TARGET.jsonl" ] && [ -e "results/$TARGET.jsonl" ]; then
        cp "results/$TARGET.jsonl" "$SCRATCH/results"
    fi
    if [ -e ".device/$TARGET.tar.xz" ]; then
        xz -dc ".device/$TARGET.tar.xz" >"$SCRATCH/$TARGET.in.tar" && UNPACK=(--unpack "$SCRATCH/$TARGET.in.tar")
    fi
    while read -r ONLY JOBS; do
        LEFT=$((LIMIT - $(date +%s) + BEGIN))
        [ "$LEFT" -gt 0 ] || [ "$FIRST" = yes ] || break # to plan a list takes ten seconds
        FIRST=no
        MINUTES=$(awk "BEGIN { print ($LEFT > 0 ? $LEFT / 60 : 0) }")
        python -m pathnn_reproduction reproduce "$TARGET" --only "$ONLY" --jobs "$JOBS" --time-limit "$MINUTES" \
            --results "$SCRATCH/results" --work "$SCRATCH/work" --pack "$SCRATCH/$TARGET.tar" \
            ${UNPACK[@]+"${UNPACK[@]}"} </dev/null || STATUS=$?
    done <"$SCRATCH/lists/$TARGET" >"$SCRATCH/$TARGET.log" 2>&1
    return "$STATUS"
}

RUNNING=()
for TARGET in ${TARGETS[@]+"${TARGETS[@]}"}; do
    work_through "$TARGET" &
    RUNNING+=("$TARGET:$!")
done
for ONE in ${RUNNING[@]+"${RUNNING[@]}"}; do
    TARGET=${ONE%:*}
    wait "${ONE#*:}" || STATUS=$?
    since "$TARGET is over"
    grep -aE "failed|packed|Error" "$SCRATCH/$TARGET.log" | tail -4
    [ ! -e "$SCRATCH/results/$TARGET.jsonl" ] || cp "$SCRATCH/results/$TARGET.jsonl" "$OUT"
done
for TARGET in ${TARGETS[@]+"${TARGETS[@]}"}; do # results first: runs under way can be done again
    [ -e "$SCRATCH/$TARGET.tar" ] || continue
    xz -T0 -1 -c "$SCRATCH/$TARGET.tar" | split -b 15M -d -a 2 - "$OUT/$TARGET.tar.xz."
    if [ "$(du -sm "$OUT" | cut -f 1)" -gt "$ROOM" ] || [ "$(find "$OUT" -type f | wc -l)" -gt "$FILES" ]; then
        echo "no room for the runs under way of $TARGET: $(du -sm "$SCRATCH/$TARGET.tar" | cut -f 1) MiB"
        rm -f "$OUT/$TARGET".tar.xz.*
    fi
done
since "all is over"
exit "$STATUS"
