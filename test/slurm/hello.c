/* Stands for a training run: two ranks; without an argument says hello and ends; with one, waits for SIGTERM on any rank,
   agrees on it, and ends with 0. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stop = 0;
static void on_term(int signal) { (void)signal, stop = 1; }

int main(int argc, char** argv) {
  int rank, size, all = 0;
  signal(SIGTERM, on_term);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("hello from rank %d of %d\n", rank, size);
  fflush(stdout);
  while (argc > 1 && !all) {
    int mine = stop;
    usleep(100000);
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  }
  if (argc > 1) printf("rank %d stops on SIGTERM\n", rank);
  MPI_Finalize();
  return 0;
}
