// A network of your own, trained with dedicated ownership: each matrix is held and updated whole by one rank.
// Run as mpirun -n 4 build/example (or srun), with any number of ranks. Prowl keeps weights, gradients and optimizer
// state, and moves them; the model says what its parameters are, brackets the work on each unit (here: a layer)
// by begin_* and end_*, and computes with whole weights in between.
#include <prowl/comm/mesh.hpp>
#include <prowl/comm/runtime.hpp>
#include <prowl/core/math.hpp>
#include <prowl/kernels/fill.hpp>
#include <prowl/linalg/blas.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/optim/ownership.hpp>
#include <prowl/optim/schedule.hpp>

#include <cstdio>

using namespace prowl;

constexpr int layers = 3, samples = 64;            // samples a rank
constexpr int widths[layers + 1] = {8, 48, 48, 4}; // of the input, and of each layer's output

// Layer l is h[l + 1] = tanh(h[l] W^T + b), the last without tanh; a sample a row. Parameters: W 2 l, b 2 l + 1.
struct Network {
  Execution exec;
  Matrix<float> h[layers + 1], dh[layers + 1];

  Network() {
    for (int l = 0; l <= layers; ++l) {
      h[l] = Matrix<float>("h", samples, widths[l]);
      dh[l] = Matrix<float>("dh", samples, widths[l]);
    }
  }

  void forward(Store& store) const {
    for (int l = 0; l < layers; ++l) {
      store.begin_forward(l); // the layer is whole on every rank now; the next one is on its way
      auto const bias = store.weight(2 * l + 1);
      auto const out = h[l + 1];
      bool const last = l + 1 == layers;
      gemm(exec, Op::none, Op::transpose, 1.0f, h[l], store.weight(2 * l), 0.0f, out);
      Kokkos::parallel_for(
          "activate", out.size(), KOKKOS_LAMBDA(int i) {
            int const s = i / int(out.extent(1)), j = i % int(out.extent(1));
            float const x = out(s, j) + bias(j, 0); // a vector of n is n x 1
            out(s, j) = last ? x : math::tanh(x);
          });
      store.end_forward(l); // and may be dropped
    }
  }
  // From dh[layers], the gradient of this rank's loss; every element of a layer's gradients must be written.
  void backward(Store& store) const {
    for (int l = layers - 1; l >= 0; --l) {
      store.begin_backward(l);
      auto const out = h[l + 1], upstream = dh[l + 1];
      auto const bias = store.gradient(2 * l + 1);
      bool const last = l + 1 == layers;
      Kokkos::parallel_for(
          "bias", bias.size(), KOKKOS_LAMBDA(int j) {
            bias(j, 0) = 0;
            for (int s = 0; s < samples; ++s) {
              if (!last) upstream(s, j) *= 1 - out(s, j) * out(s, j);
              bias(j, 0) += upstream(s, j);
            }
          });
      gemm(exec, Op::transpose, Op::none, 1.0f, upstream, h[l], 0.0f, store.gradient(2 * l));
      gemm(exec, Op::none, Op::none, 1.0f, upstream, store.weight(2 * l), 0.0f, dh[l]);
      store.end_backward(l); // its gradients are on their way to the owners
    }
  }
};

int train() {
  Execution const exec;
  Communicator const world(MPI_COMM_WORLD);
  Mesh const mesh(world);            // Mesh(world, 2): two replicas, owners over all ranks
  std::vector<Parameter> parameters; // the unit of each comes from its name: layers.0, layers.1, ...
  for (int l = 0; l < layers; ++l) {
    auto const layer = "layers." + std::to_string(l);
    parameters.push_back({layer + ".weight", {widths[l + 1], widths[l]}, ""});
    parameters.push_back({layer + ".bias", {widths[l + 1]}, ""});
  }
  OptimizerOptions options; // matrices named layers.N or blocks.N: Muon, owned; the rest: sharded AdamW
  options.muon.rate = options.adamw.rate = 0.02;
  Store store(exec, mesh, dedicated_layout(parameters, options, mesh.place()),
              {.reduction = Reduction::mean});
  Optimizer optimizer(exec, store, options);
  if (world.rank() == 0) std::printf("%s", routing_table(store.layout(), optimizer.routes()).c_str());
  // Initial weights: the same whole array on every rank, of which the store keeps what it needs.
  for (std::size_t p = 0; p < parameters.size(); p += 2) {
    Matrix<float> const w("initial weight", parameters[p].rows(), parameters[p].columns());
    fill_normal(exec, Random(1, p), 0, 1 / math::sqrt(float(w.extent(1))), as_vector(w));
    store.assign(p, w);
  }

  Network const network;
  auto const x = network.h[0], y = network.h[layers], dy = network.dh[layers];
  Random const random(2, std::uint64_t(world.rank())); // each rank has samples of its own
  Schedule const schedule{400, 20};                    // 20 steps of warm-up, then a cosine
  double first = 0, loss = 0;
  for (int step = 0; step < 400; ++step) {
    fill_normal(exec, random, std::uint64_t(step) << 20, 1, as_vector(x));
    network.forward(store);
    double squares = 0; // the mean over this rank's samples
    auto const compare = KOKKOS_LAMBDA(int i, double& sum) {
      int const s = i / int(y.extent(1)), j = i % int(y.extent(1));
      float const a = x(s, 2 * j), b = x(s, 2 * j + 1), error = y(s, j) - (math::sin(a) + b * b / 2);
      sum += error * error / samples;
      dy(s, j) = 2 * error / samples;
    };
    Kokkos::parallel_reduce("loss", y.size(), compare, squares);
    network.backward(store);
    optimizer.step(schedule.factor(step)); // waits for the gradients; updates each matrix where it is owned
    loss = world.sum(squares) / world.size();
    if (step == 0) first = loss;
  }
  if (world.rank() == 0) std::printf("loss %.4f -> %.4f\n", first, loss);
  return loss < 0.1 * first ? 0 : 1;
}

int main(int argc, char** argv) { return prowl::run(argc, argv, train); }
