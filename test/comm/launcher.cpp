// What launchers say in the environment, against the number of ranks: MPI alone knows the truth.
#include <prowl/comm/runtime.hpp>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <utility>

namespace {

using Variables = std::initializer_list<std::pair<char const*, char const*>>;

int failures = 0;

void expect(Variables variables, int ranks, char const* part) {
  for (auto const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "SLURM_PROCID",
                           "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"})
    unsetenv(name);
  for (auto const& [name, value] : variables) setenv(name, value, 1);
  auto const found = prowl::launcher_disagrees(ranks);
  if (found.empty() == (*part == '\0') && found.find(part) != found.npos) return;
  std::printf("%d ranks: '%s', expected '%s'\n", ranks, found.c_str(), part);
  ++failures;
}

} // namespace

int main() {
  expect({}, 1, "");
  expect({{"OMPI_COMM_WORLD_SIZE", "4"}}, 4, "");
  expect({{"OMPI_COMM_WORLD_SIZE", "4"}}, 1, "OMPI_COMM_WORLD_SIZE says 4");
  expect({{"PMI_SIZE", "3"}}, 1, "PMI_SIZE says 3");
  // srun with another MPI's plugin, or none.
  expect(
      {{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}},
      1, "SLURM_STEP_NUM_TASKS says 2");
  expect({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "1"}}, 1, "SLURM_NTASKS says 2");
  // A batch script or an salloc of 2 tasks, in which something is run without srun.
  expect({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}, 1, "");
  expect({{"SLURM_NTASKS", "2"}}, 1, "");
  // mpirun in an allocation, whose daemons are a step of as many tasks as nodes.
  expect({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, 2, "");
  expect({{"SLURM_NTASKS", "8"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "1"},
          {"OMPI_COMM_WORLD_SIZE", "2"}},
         2, "");
  // srun of singletons within a larger job, one a task.
  expect({{"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "1"}}, 1, "");
  expect({{"OMPI_COMM_WORLD_SIZE", "many"}}, 1, "");
  return failures;
}
