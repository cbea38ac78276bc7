#include <dit/work.hpp>

namespace prowl::dit {

namespace {

constexpr double float_bytes = 4;

/// Backward kernels read what forward kernels do, and as much of gradients, and write those.
constexpr double backward_passes = 2.5;

class Counter {
public:
  explicit Counter(UnitWork& work) : work_(work) {}

  /// y (rows x out) of x (rows x in), its weight's gradient, and its input's.
  void linear(std::int64_t rows, std::int64_t out, std::int64_t in, std::int64_t count = 1,
              bool input_gradient = true) {
    work_.forward.products.push_back({"gemm", rows, out, in, count});
    work_.backward.products.push_back({"gemm", out, in, rows, count});
    if (input_gradient) work_.backward.products.push_back({"gemm", rows, in, out, count});
  }
  void elementwise(double elements, double passes, double kernels) {
    work_.forward.bytes += float_bytes * elements * passes;
    work_.backward.bytes += float_bytes * elements * passes * backward_passes;
    work_.forward.kernels += kernels;
    work_.backward.kernels += kernels;
  }
  /// Of queries, keys, values: scores and their use; the backward has the scores again, and four products more.
  void attention(std::int64_t heads, std::int64_t samples, std::int64_t tokens) {
    std::int64_t const size = ModelConfig::head_size;
    work_.forward.products.push_back({"gemm", tokens, tokens, size, 2 * samples, heads});
    work_.backward.products.push_back({"gemm", tokens, tokens, size, 5 * samples, heads});
    // Softmax: the largest, the exponentials, their sum, the quotients.
    elementwise(double(heads * samples) * double(tokens) * double(tokens), 6, double(samples));
  }
  /// A checkpointed unit computes its forward again.
  void add_recomputation() {
    auto& to = work_.backward;
    auto const& from = work_.forward;
    to.products.insert(to.products.end(), from.products.begin(), from.products.end());
    to.bytes += from.bytes;
    to.kernels += from.kernels;
  }

private:
  UnitWork& work_;
};

UnitWork embed_work(ModelConfig const& c, std::int64_t b) {
  UnitWork work;
  Counter count(work);
  std::int64_t const d = c.hidden;
  count.linear(b * c.image_tokens(), d, c.patch_size(), 1, false);
  for (auto const& e : c.encoders) {
    count.linear(b * e.tokens, d, e.width);
    count.elementwise(double(b * e.tokens) * (e.width + d), 2, 3);
  }
  count.linear(b, d, c.pooled_width, 1, false);
  count.linear(b, d, d, 2);
  count.elementwise(double(b * c.image_tokens()) * c.patch_size(), 2, 8);
  return work;
}

/// Passes through a token's d elements: two modulated norms read and write; queries, keys and values move to the heads and the
/// result back; two gated residuals read two and write one; SwiGLU reads 8 d and writes 4 d.
void stream_work(Counter count, ModelConfig const& c, std::int64_t b, std::int64_t tokens, bool whole) {
  auto const d = std::int64_t(c.hidden), rows = b * tokens;
  count.linear(b, d, d, whole ? 6 : 2);
  count.linear(rows, d, d, whole ? 4 : 3);
  count.elementwise(double(rows * d), 2 + 6, 4);
  if (!whole) return;
  count.linear(rows, 8 * d, d);
  count.linear(rows, d, 4 * d);
  count.elementwise(double(rows * d), 2 + 2 + 2 * 3 + 12, 8);
}

UnitWork block_work(ModelConfig const& c, std::int64_t b, bool last) {
  UnitWork work;
  Counter count(work);
  count.linear(b, c.hidden, c.hidden);
  stream_work(count, c, b, c.image_tokens(), true);
  stream_work(count, c, b, c.text_tokens(), !last);
  count.attention(c.heads(), b, c.tokens());
  count.add_recomputation();
  return work;
}

UnitWork final_work(ModelConfig const& c, std::int64_t b) {
  UnitWork work;
  Counter count(work);
  std::int64_t const d = c.hidden, rows = b * c.image_tokens();
  count.linear(b, d, d, 2);
  count.linear(rows, c.patch_size(), d);
  count.elementwise(double(rows * d), 2, 3);
  return work;
}

double seconds(Work const& work, Machine const& machine) {
  double sum = machine.stream(work.bytes, work.bytes, work.kernels);
  for (auto const& product : work.products) sum += machine.product(product);
  return sum;
}

} // namespace

double Work::flop() const {
  double sum = 0;
  for (auto const& product : products) sum += product.flop();
  return sum;
}

std::vector<UnitWork> unit_work(ModelConfig const& config, std::int64_t samples) {
  std::vector<UnitWork> work{embed_work(config, samples)};
  for (int l = 0; l < config.layers; ++l) work.push_back(block_work(config, samples, l + 1 == config.layers));
  work.push_back(final_work(config, samples));
  return work;
}

std::vector<UnitTime> unit_times(std::vector<UnitWork> const& work, Machine const& machine) {
  std::vector<UnitTime> times;
  for (auto const& unit : work)
    times.push_back({seconds(unit.forward, machine), seconds(unit.backward, machine)});
  return times;
}

} // namespace prowl::dit
