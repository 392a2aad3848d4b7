#!/usr/bin/env bash
# A sweep on Slurm: a Ray cluster of this job's nodes, for this job only.
#
#   sbatch deploy/slurm.sh SUITE --out /shared/runs/RUN         # what follows goes to `cbobench run`
#   sbatch --nodes=8 --time=02:00:00 deploy/slurm.sh SUITE --out s3://BUCKET/RUN
#
# The run folder and the environment (CBOBENCH_VENV, by default ~/venv) are on a file system that all nodes share, or
# the folder in a bucket. Before its time is up, and when it is preempted, the sweep stops in order and the job is queued
# again: the same command plays what is missing. Nodes may be shared with other jobs: every port is fixed by the job's
# number, and only what this job has started is ended (`ray stop` would end all of a user's clusters on a node).
#SBATCH --job-name=cbobench
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem-per-cpu=2G
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

[ $# -gt 0 ] || { echo "give a suite, and --out: sbatch deploy/slurm.sh SUITE --out FOLDER" >&2; exit 2; }
# shellcheck source=/dev/null
source "${CBOBENCH_VENV:-$HOME/venv}/bin/activate"

cpus=${SLURM_CPUS_PER_TASK:-1}
workers_per_node=92
if [ "$cpus" -gt "$workers_per_node" ]; then
    echo "--cpus-per-task is $cpus; at most $workers_per_node have ports here: more nodes, or other ports" >&2
    exit 2
fi
base=$((20000 + SLURM_JOB_ID % 100 * 120))          # below the ports that systems give away by themselves
gcs=$base
ports=(
    --node-manager-port=$((base + 1)) --object-manager-port=$((base + 2)) --runtime-env-agent-port=$((base + 3))
    --dashboard-agent-grpc-port=$((base + 4)) --dashboard-agent-listen-port=$((base + 5))
    --metrics-export-port=$((base + 6))
    --min-worker-port=$((base + 8)) --max-worker-port=$((base + 119))
)
client=()
if python3 -c 'import grpc' 2>/dev/null; then     # where ray[client] is installed, the head opens one port more
    client=(--ray-client-server-port=$((base + 7)))
fi

# The token keeps other users of these machines out; the steps below inherit it, and no command line shows it.
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
RAY_AUTH_TOKEN=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=${nodes[0]}
# The first IPv4 address that other nodes can reach: many systems give a node's own name a loopback address.
address=$(srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" \
    bash -c 'hostname --ip-address; hostname --all-ip-addresses' |
    tr ' ' '\n' | awk '/^[0-9.]+$/ && !/^127\./ && !found++')
if [ -z "$address" ] && [ "${#nodes[@]}" -gt 1 ]; then
    echo "$head has no IPv4 address but loopback, where no other node can join; nothing was played" >&2
    exit 1
fi
address=${address:-127.0.0.1}                       # one node needs no other

scratch=$(mktemp -d /tmp/cbobench-XXXXXX)           # for this user alone; names of sockets may not be long
steps=()
finish() {
    for step in "${steps[@]}"; do kill "$step" 2>/dev/null || true; done
    wait
    rm -rf "$scratch"
}
trap finish EXIT

srun --nodes=1 --ntasks=1 --cpus-per-task="$cpus" --overlap --nodelist="$head" \
    ray start --head --block --node-ip-address="$address" --port="$gcs" --num-cpus="$cpus" --include-dashboard=false \
    --temp-dir="$scratch/ray" "${client[@]}" "${ports[@]}" &
steps+=($!)
until (exec 3<>"/dev/tcp/$address/$gcs") 2>/dev/null; do
    kill -0 "${steps[0]}" 2>/dev/null || { echo "Ray's head did not start on $head" >&2; exit 1; }
    sleep 1
done
for node in "${nodes[@]:1}"; do
    srun --nodes=1 --ntasks=1 --cpus-per-task="$cpus" --overlap --nodelist="$node" \
        ray start --block --address="$address:$gcs" --num-cpus="$cpus" "${ports[@]}" &
    steps+=($!)
done

# Nodes that joined are counted: without this, a sweep that should have eight nodes may play on one, and say nothing.
count='import sys, ray
ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
print(sum(node["Alive"] for node in ray.nodes()))'
for _ in {1..60}; do
    joined=$(python3 -P -c "$count" "$address:$gcs")
    [ "$joined" -lt "${#nodes[@]}" ] || break
    for step in "${steps[@]}"; do kill -0 "$step" 2>/dev/null || break 2; done
    sleep 3
done
if [ "$joined" -lt "${#nodes[@]}" ]; then
    echo "$joined of ${#nodes[@]} nodes joined Ray's head at $address:$gcs; nothing was played: can all reach it?" >&2
    exit 1
fi

# The driver runs on the head, where this script does. TERM goes to it; it says what is done and how to go on.
requeue() {
    kill -TERM "$driver" 2>/dev/null || true
    wait "$driver" || true
    scontrol requeue "$SLURM_JOB_ID" || true
    exit 130
}
cbobench run "$@" --address "$address:$gcs" &
driver=$!
trap requeue TERM
wait "$driver"
