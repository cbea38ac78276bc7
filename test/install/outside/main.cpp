// What a user of the installed library writes: a model of two matrices, Y = W1 W0 X, trained with Periodic Row-wise Muon on
// however many ranks there are. Each rank has its own samples (columns of X); gradients are summed over the ranks.
#include <prowl/comm/mesh.hpp>
#include <prowl/comm/runtime.hpp>
#include <prowl/io/hdf5.hpp>
#include <prowl/kernels/fill.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/linalg/blas.hpp>
#include <prowl/optim/optimizer.hpp>
#include <prowl/store/store.hpp>

#include <cstdio>

using prowl::Matrix, prowl::Op, prowl::as_vector;

namespace {

constexpr int in = 16, middle = 24, out = 8, samples = 32;

int train() {
  prowl::Execution const exec;
  prowl::Communicator const world(MPI_COMM_WORLD);
  prowl::Mesh const mesh(world);
  // Names with blocks.N make the matrices Muon's; each is a unit, whole only while it is used.
  prowl::Store store(exec, mesh,
                     {{"blocks.0.w", {middle, in}, "blocks.0"}, {"blocks.1.w", {out, middle}, "blocks.1"}});
  prowl::OptimizerOptions options;
  options.muon.rate = 0.1;
  options.muon.decay = 0;
  prowl::Optimizer optimizer(exec, store, options);

  auto const random = [&](int stream, std::uint64_t first, float deviation, Matrix<float> const& m) {
    prowl::fill_normal(exec, prowl::Random(1, std::uint64_t(stream)), first, deviation, as_vector(m));
  };
  for (std::size_t i : {0, 1}) {
    auto const first =
        std::uint64_t(store.layout().weight_rows(i).begin * store.layout().parameters()[i].columns());
    random(int(i), first, 0.2f, store.kept_weights(i));
  }
  store.weights_changed();

  Matrix<float> const x("x", in, samples), teacher("teacher", out, in), h("h", middle, samples),
      dh("dh", middle, samples);
  Matrix<float> const error("error", out, samples);
  random(2, std::uint64_t(world.rank()) << 32, 1, x);
  random(3, 0, 0.2f, teacher);

  double first_loss = 0, loss = 0;
  constexpr int steps = 90;
  for (int step = 0; step < steps; ++step) {
    store.begin_forward(0);
    prowl::gemm(exec, Op::none, Op::none, 1.0f, store.weight(0), x, 0.0f, h);
    store.end_forward(0);
    store.begin_forward(1);
    prowl::gemm(exec, Op::none, Op::none, 1.0f, teacher, x, 0.0f, error);
    prowl::gemm(exec, Op::none, Op::none, 1.0f, store.weight(1), h, -1.0f, error);
    store.end_forward(1);
    loss = world.sum(prowl::sum_squares(exec, as_vector(error))) / (world.size() * samples);

    float const scale = 2.0f / float(world.size() * samples); // of the loss of all ranks
    store.begin_backward(1);
    prowl::gemm(exec, Op::none, Op::transpose, scale, error, h, 0.0f, store.gradient(1));
    prowl::gemm(exec, Op::transpose, Op::none, scale, store.weight(1), error, 0.0f, dh);
    store.end_backward(1);
    store.begin_backward(0);
    prowl::gemm(exec, Op::none, Op::transpose, 1.0f, dh, x, 0.0f, store.gradient(0));
    store.end_backward(0);

    optimizer.step(1.0 - double(step) / steps);
    if (step == 0) first_loss = loss;
  }
  if (world.rank() == 0) std::printf("loss %.4f -> %.6f\n", first_loss, loss);

  bool refused = false;
  try {
    prowl::hdf5::check(-1, "outside");
  } catch (prowl::Error const&) {
    refused = true;
  }
  return loss < 0.02 * first_loss && refused ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) { return prowl::run(argc, argv, train); }
