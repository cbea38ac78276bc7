#include <prowl/optim/optimizer.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/adamw.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/optim/matrix_update.hpp>

#include <cmath>

namespace prowl {

OptimizerMemory optimizer_memory(Layout const& layout, OptimizerOptions const& options) {
  auto const routes = route(layout.parameters(), options);
  MatrixPlan const plan(layout, options, routes);
  OptimizerMemory memory{plan.momentum_bytes(), 0, plan.bucket_bytes(), plan.workspace_bytes()};
  for (std::size_t i = 0; i < routes.size(); ++i)
    if (routes[i].rule != Rule::muon) memory.moments += 2 * layout.size(i) * std::int64_t(sizeof(float));
  return memory;
}

Ledger optimizer_traffic(Layout const& layout, OptimizerOptions const& options, std::int64_t t) {
  auto const routes = route(layout.parameters(), options);
  auto ledger = MatrixPlan(layout, options, routes).traffic(t);
  ledger.record(Collective::all_reduce, Purpose::other, size(layout.place(), Axis::world),
                std::int64_t(routes.size() * sizeof(double)));
  return ledger;
}

Optimizer::Optimizer(Execution const& exec, Store& store, OptimizerOptions const& options)
    : exec_(exec), store_(store), options_(options), routes_(route(store.layout().parameters(), options)),
      state_offsets_(routes_.size(), 0),
      matrices_(std::make_unique<MatrixUpdate>(exec, store, options, routes_)) {
  std::int64_t size = 0;
  for (std::size_t i = 0; i < routes_.size(); ++i)
    if (routes_[i].rule != Rule::muon) {
      state_offsets_[i] = size;
      size += store.layout().size(i);
    }
  exp_avg_ = Vector<float>("exp_avg", size);
  exp_avg_sq_ = Vector<float>("exp_avg_sq", size);
}

Optimizer::~Optimizer() = default;

/// The norm of the whole gradient, and the first parameter whose gradient is not finite, the same on all
/// ranks.
Optimizer::Report Optimizer::check_gradients() {
  trace::Span const span("gradient norm");
  auto const& layout = store_.layout();
  std::vector<double> squares(routes_.size());
  bool const first_replica = layout.place().replica == 0, first_tensor = layout.place().tensor == 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    double const own = sum_squares(exec_, as_vector(store_.updated_gradient(i)));
    bool const counts =
        (layout.placement(i) || first_replica) && (layout.parameters()[i].split || first_tensor);
    if (counts || !std::isfinite(own)) squares[i] = own; // of equal copies one counts
  }
  store_.mesh().world().sum(squares, Purpose::other);
  Report report;
  double total = 0;
  for (std::size_t i = 0; i < squares.size(); ++i) {
    total += squares[i];
    if (!std::isfinite(squares[i]) && report.nonfinite.empty())
      report.nonfinite = layout.parameters()[i].name;
  }
  report.gradient_norm = std::sqrt(total);
  return report;
}

Optimizer::Report Optimizer::step(double rate_factor) {
  store_.finish_gradients();
  store_.finish_publication();
  trace::Span const span("optimizer step");
  auto report = check_gradients();
  if (!report.nonfinite.empty()) {
    if (!options_.skip_nonfinite)
      throw Error("step {}: the gradient of {} is not finite; no weight was changed (optimizer.on_nonfinite "
                  "= \"skip\" "
                  "goes on without such steps)",
                  step_, report.nonfinite);
    report.skipped = true;
    ++skipped_;
    ++step_;
    return report;
  }
  if (options_.clip > 0 && report.gradient_norm > options_.clip)
    scale(exec_, float(options_.clip / report.gradient_norm), store_.gradients());
  matrices_->step(step_, rate_factor, [&] { update_adamw(rate_factor); });
  ++step_;
  store_.publish();
  store_.weights_changed();
  exec_.fence(); // so that the caller's timing is of the whole step
  return report;
}

void Optimizer::update_adamw(double rate_factor) {
  trace::Span const span("AdamW");
  auto const& layout = store_.layout();
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto const size = layout.size(i);
    if (routes_[i].rule == Rule::muon || size == 0) continue;
    auto options = routes_[i].adamw;
    options.rate *= rate_factor;
    adamw(exec_, options, step_ - skipped_ + 1, as_vector(store_.updated_gradient(i)),
          slice(exp_avg_, state_offsets_[i], size), slice(exp_avg_sq_, state_offsets_[i], size),
          as_vector(store_.updated_weights(i)));
  }
}

void Optimizer::restore_counters(std::int64_t steps, std::int64_t skipped) {
  step_ = steps;
  skipped_ = skipped;
}

std::vector<Optimizer::StateArray> Optimizer::state() const {
  auto const& layout = store_.layout();
  std::vector<StateArray> arrays;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (routes_[i].rule == Rule::muon) {
      arrays.push_back({"momentum", i, matrices_->momentum(i)});
      continue;
    }
    auto const moment = [&](Vector<float> const& flat) {
      return as_matrix(slice(flat, state_offsets_[i], layout.size(i)), layout.rows(i).size(),
                       layout.parameters()[i].columns());
    };
    arrays.push_back({"exp_avg", i, moment(exp_avg_)});
    arrays.push_back({"exp_avg_sq", i, moment(exp_avg_sq_)});
  }
  return arrays;
}

std::int64_t Optimizer::bytes() const {
  return std::int64_t((exp_avg_.size() + exp_avg_sq_.size()) * sizeof(float)) + matrices_->bytes();
}

} // namespace prowl
