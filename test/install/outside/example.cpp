// Fits a matrix and a vector with Periodic Row-wise Muon, sharded over the ranks: mpirun -n 2 ./example
#include <prowl/comm/runtime.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/schedule.hpp>

#include <cstdio>

// This rank's share of the gradient of 1/2 |W - 1|^2, where 1 has ones on its diagonal.
void gradient(prowl::Matrix<float const> const& w, prowl::Matrix<float> const& g, float share) {
  Kokkos::parallel_for(
      "gradient", w.size(), KOKKOS_LAMBDA(int k) {
        int const i = k / int(w.extent(1)), j = k % int(w.extent(1));
        g(i, j) = share * (w(i, j) - (i == j ? 1.0F : 0.0F));
      });
}

int fit() {
  prowl::Execution const exec;
  prowl::Communicator const world(MPI_COMM_WORLD);
  prowl::Mesh const mesh(world);
  prowl::Store store(exec, mesh,
                     {{"blocks.0.weight", {96, 64}, "blocks.0"}, {"blocks.0.bias", {96}, "blocks.0"}});
  prowl::OptimizerOptions options; // matrices of blocks: Muon with K = 3, gamma = 0.15; the rest: AdamW
  options.muon.rate = options.adamw.rate = 0.05;
  prowl::Optimizer optimizer(exec, store, options);
  prowl::Schedule const schedule{300, 20}; // 20 steps of warm-up, then a cosine
  double norm = 0;
  for (int step = 0; step < 300; ++step) {
    store.begin_backward(0); // unit 0 is whole on every rank
    for (std::size_t p : {0, 1}) gradient(store.weight(p), store.gradient(p), 1.0F / float(world.size()));
    store.end_backward(0); // its gradients are summed over the ranks, onto their shards
    norm = optimizer.step(schedule.factor(step)).gradient_norm;
  }
  if (world.rank() == 0) std::printf("distance %.4f after 300 steps\n", norm);
  return norm < 0.1 ? 0 : 1;
}

int main(int argc, char** argv) { return prowl::run(argc, argv, fit); }
