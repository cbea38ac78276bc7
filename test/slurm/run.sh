#!/usr/bin/env bash
# Prowl under Slurm: brings up a one-node cluster on loopback from Debian's packages, runs in it, takes it down.
#   test/slurm/run.sh                          two-rank MPI program by srun; SIGTERM by scancel
#   test/slurm/run.sh PROWL-TRAIN DECK [KEY=VALUE...]   the same of a training run: checkpoint on SIGTERM, resume; a job of
#                                                       inputs/slurm/train.sh that is stopped three times and finishes
# As root, without systemd and without control groups, so that it works in a container. Not part of ctest: it installs
# slurm-wlm and munge. All files and daemons are its own, in a temporary folder; nothing under /etc is touched.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

if [ $# -eq 1 ] || { [ $# -gt 1 ] && ! [ -x "$1" ]; }; then
  echo "usage: test/slurm/run.sh [PROWL-TRAIN DECK [KEY=VALUE...]]" >&2
  exit 2
fi

say() { printf 'slurm: %s\n' "$*"; }
die() {
  say "FAILED: $*" >&2
  for log in "$work"/log/*; do [ -f "$log" ] && { echo "--- $log"; tail -n 20 "$log"; } >&2; done
  exit 1
}
# until_true SECONDS WHAT COMMAND...: waits for a command to succeed.
until_true() {
  local seconds=$1 what=$2 i
  shift 2
  for ((i = 0; i < 5 * seconds; ++i)); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.2
  done
  die "not within $seconds s: $what"
}

work=$(mktemp -d /tmp/prowl-slurm.XXXXXX)
chmod 755 "$work" # munged checks the folders above its socket
mkdir "$work"/{log,state,spool,munge}
pids=()
# Daemons end in the reverse of their order: slurmd and slurmctld sign with munge to their last message.
stop() {
  local i j
  set +e
  if [ ${#pids[@]} -gt 1 ] && [ -n "$(timeout 10 squeue -h)" ]; then
    timeout 10 scancel --quiet --user=root
    for ((j = 0; j < 50; ++j)); do [ -n "$(timeout 10 squeue -h)" ] || break; sleep 0.2; done
  fi
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
    kill "${pids[i]}" 2>/dev/null
    for ((j = 0; j < 100; ++j)); do kill -0 "${pids[i]}" 2>/dev/null || break; sleep 0.1; done
    kill -KILL "${pids[i]}" 2>/dev/null
    wait "${pids[i]}" 2>/dev/null
  done
  rm -rf "$work"
}
trap stop EXIT

start() { # NAME COMMAND...: a daemon in the foreground of its own process, with a log
  local name=$1
  shift
  "$@" >"$work/log/$name.out" 2>&1 </dev/null &
  pids+=($!)
}

bring_up() {
  "$root/cmake/install-deps.sh" slurm-wlm munge
  local node cores memory
  node=$(hostname -s)
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1024 * 0.8) }' /proc/meminfo)

  dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 status=none
  chmod 400 "$work/munge/key"
  chmod 700 "$work/munge"
  cat >"$work/slurm.conf" <<CONF
ClusterName=prowl-test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/log/slurmctld.log
SlurmdLogFile=$work/log/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmix
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
KillWait=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=$((cores < 2 ? 2 : cores)) RealMemory=$memory State=UNKNOWN
PartitionName=test Nodes=$node Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF
  echo "CgroupAutomount=no" >"$work/cgroup.conf"
  export SLURM_CONF=$work/slurm.conf

  # The temporary folder is not root's alone, which munged refuses unless forced.
  start munged munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge.socket" \
    --pid-file="$work/munge/pid" --log-file="$work/log/munged.log" --seed-file="$work/munge/seed"
  until_true 10 "munged answers" munge --socket="$work/munge.socket" -n
  start slurmctld slurmctld -D -c -f "$work/slurm.conf"
  until_true 20 "slurmctld answers" scontrol ping
  start slurmd slurmd -D -f "$work/slurm.conf" -N "$node"
  until_true 30 "the node is idle" bash -c 'sinfo -h -o %T | grep -qx idle'
  say "up: $(sinfo -h -o '%P %D node, %c cpus, %T')"
}

ompi=(env OMPI_MCA_btl_vader_single_copy_mechanism=none OPENBLAS_NUM_THREADS=1)

# submit NAME COMMAND...: a batch job of two ranks whose step 0 is the command; prints the job's number. The step's exit
# status is written to NAME.status.
submit() {
  local name=$1
  shift
  {
    echo '#!/usr/bin/env bash'
    printf 'srun -n 2 --mpi=pmix'
    printf ' %q' "$@"
    printf '\necho $? > %q\n' "$work/$name.status"
  } >"$work/$name.sh"
  "${ompi[@]}" sbatch --parsable -n 2 --output="$work/log/$name.log" --job-name="$name" "$work/$name.sh"
}

# signal_and_wait NAME JOB STATUS: SIGTERM to both ranks of the job's step, which has to end with that status.
signal_and_wait() {
  [ -n "$2" ] || die "$1: sbatch gave no job number"
  scancel --signal=TERM "$2.0"
  until_true 120 "$1 ends after SIGTERM" test -s "$work/$1.status"
  [ "$(cat "$work/$1.status")" = "$3" ] || die "$1: exit status $(cat "$work/$1.status") after SIGTERM, expected $3"
  until_true 60 "$1 leaves the queue" bash -c "[ -z \"\$(squeue -h -j $2 2>/dev/null)\" ]"
}

check_hello() {
  mpicc -O1 -o "$work/hello" "$here/hello.c"
  [[ $(srun --mpi=list 2>&1) == *pmix* ]] || die "this Slurm has no pmix plugin"
  "${ompi[@]}" srun -n 2 --mpi=pmix "$work/hello" >"$work/log/hello.log" 2>&1 || die "srun of two ranks"
  grep -q 'rank 1 of 2' "$work/log/hello.log" || die "the ranks do not see each other"
  say "ok: srun -n 2 --mpi=pmix"

  local job
  job=$(submit waiting "$work/hello" wait)
  until_true 60 "the job waits" grep -q 'rank 1 of 2' "$work/log/waiting.log"
  signal_and_wait waiting "$job" 0
  [ "$(grep -c 'stops on SIGTERM' "$work/log/waiting.log")" = 2 ] || die "not both ranks saw SIGTERM"
  say "ok: scancel --signal=TERM reaches both ranks, exit status 0"
}

# steps N: whether the metrics of the run in $run have that many lines.
steps() { [ -f "$run/metrics.jsonl" ] && [ "$(wc -l <"$run/metrics.jsonl")" -ge "$1" ]; }
# numbered_through: whether each step is in them once. The last line of a finished run holds the validation loss alone.
numbered_through() {
  python3 - "$run/metrics.jsonl" <<'PY'
import json, sys
steps = [json.loads(line)["step"] for line in open(sys.argv[1])]
sys.exit(0 if steps == list(range(len(steps))) else 1)
PY
}

# check_training PROWL-TRAIN DECK [KEY=VALUE...]: trains, stops on SIGTERM with a checkpoint, resumes from it. The run's
# folder is given as run.folder=...
check_training() {
  local train=$1 run=$work/run job before
  shift
  local arguments=("$@" "run.folder=$run")
  checkpoint() { find "$run" -name '*.h5' -size +0 | sort | tail -n 1; }

  job=$(submit train "$train" "${arguments[@]}")
  until_true 120 "five steps of training" steps 5
  signal_and_wait train "$job" 75
  [ -n "$(checkpoint)" ] || die "no checkpoint in $run after SIGTERM"
  before=$(wc -l <"$run/metrics.jsonl")
  say "ok: trained $before steps; SIGTERM left $(basename "$(checkpoint)"), exit status 75"

  job=$(submit resume "$train" "${arguments[@]}" run.resume=auto)
  until_true 120 "five more steps after resuming" steps $((before + 5))
  signal_and_wait resume "$job" 75
  numbered_through || die "the steps in metrics.jsonl do not go on across the restart"
  say "ok: resumed at step $before and went on"
}

# check_requeue PROWL-TRAIN DECK [KEY=VALUE...]: one job, stopped three times, that goes on each time and finishes.
check_requeue() {
  local run=$work/requeued job state stops steps=100
  state() { scontrol show job "$job" | tr ' ' '\n' | sed -n "s/^$1=//p"; }
  is() { [ "$(state "$1")" = "$2" ]; }
  job=$(PROWL_TRAIN=$1 "${ompi[@]}" sbatch --parsable --output="$work/log/requeued.log" "$root/inputs/slurm/train.sh" "${@:2}" \
    "run.folder=$run" "run.steps=$steps")
  for stops in 1 2 3; do
    until_true 120 "the job trains after $((stops - 1)) stops" steps $((10 * stops))
    scancel --signal=USR1 "$job.0"
    until_true 60 "the job is queued again, $stops times" is Restarts $stops
    until_true 60 "the job waits" is JobState PENDING
    scontrol update JobId="$job" StartTime=now # Slurm holds it back for two minutes
  done
  until_true 180 "the job ends" is JobState COMPLETED
  is ExitCode 0:0 || die "the job that was requeued ends with $(state ExitCode)"
  [ "$(wc -l <"$run/metrics.jsonl")" = $((steps + 1)) ] && numbered_through || die "not all steps are done once"
  [ "$(grep -c 'resumes at step' "$work/log/requeued.log")" = 3 ] || die "not three starts go on"
  say "ok: inputs/slurm/train.sh was stopped three times and finished all $steps steps in one job"
}

bring_up
check_hello
if [ $# -gt 0 ]; then
  set -- "$(realpath "$1")" "$(realpath "$2")" "${@:3}"
  check_training "$@"
  check_requeue "$@"
fi
say "passed"
