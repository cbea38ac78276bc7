#!/bin/bash
#SBATCH --job-name=prowl --nodes=1 --ntasks-per-node=2 --time=04:00:00
#SBATCH --signal=USR1@300 --requeue --open-mode=append
# Trains until all steps are done, over as many jobs' time as that takes:
#   sbatch [--nodes=N --ntasks-per-node=GPUS --gpus-per-task=1 ...] inputs/slurm/train.sh DECK [KEY=VALUE...]
# Slurm sends SIGUSR1 to the ranks 5 minutes before the time is up; prowl-train then writes a checkpoint and ends with
# status 75, and the job goes back into the queue under its number. With any other status it ends. PROWL_TRAIN is the
# program, where PATH does not have it.
[ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || set -- "$@" run.resume=auto # whatever the first start was told
srun --mpi=pmix "${PROWL_TRAIN:-prowl-train}" "$@"
status=$?
[ $status -eq 75 ] || exit $status
scontrol requeue "$SLURM_JOB_ID" || exit $status
sleep 60 # until Slurm ends this script
