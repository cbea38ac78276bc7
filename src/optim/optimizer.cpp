#include <prowl/optim/optimizer.hpp>

#include <prowl/core/error.hpp>
#include <prowl/core/index.hpp>
#include <prowl/core/trace.hpp>
#include <prowl/kernels/adamw.hpp>
#include <prowl/kernels/reductions.hpp>
#include <prowl/optim/matrix_update.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

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
  require_between("step", t, 0, std::numeric_limits<std::int64_t>::max());
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

/// The norm of the whole gradient and those of the parameters, and whose are not finite, the same on all
/// ranks.
Optimizer::Report Optimizer::check_gradients(std::vector<double>& norms) {
  trace::Span const span("gradient norm");
  auto const& layout = store_.layout();
  auto& squares = norms;
  squares.assign(routes_.size(), 0);
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
    if (std::isfinite(squares[i])) continue;
    if (++report.nonfinite_parameters == 1) report.nonfinite = layout.parameters()[i].name;
  }
  report.gradient_norm = std::sqrt(total);
  for (auto& square : squares) square = std::sqrt(square);
  return report;
}

/// Throws where a gradient that is not finite is one too many: always where weights or state are not, which
/// every later step would find again.
void Optimizer::refuse(Report const& report) const {
  if (auto const cause = nonfinite())
    throw Error("step {}: {} since before this step, so its gradient cannot be; expected to go on from a "
                "checkpoint before that",
                step_, *cause);
  if (options_.skip_nonfinite) return;
  auto const count = report.nonfinite_parameters, all = std::int64_t(routes_.size());
  auto const what =
      count == 1 ? fmt::format("the gradient of {} is", report.nonfinite)
      : count == all
          ? fmt::format("the gradients of all {} parameters, as where the loss or its inputs are not, are",
                        all)
          : fmt::format("the gradients of {} of {} parameters, {} the first, are", count, all,
                        report.nonfinite);
  throw Error("step {}: {} not finite; no weight was changed (optimizer.on_nonfinite = \"skip\" goes on "
              "without such steps)",
              step_, what);
}

std::optional<std::string> Optimizer::nonfinite() const {
  store_.finish_publication();
  auto const arrays = state();
  auto const count = routes_.size();
  std::vector<double> bad(count + arrays.size()); // weights by parameter, then state
  for (std::size_t i = 0; i < bad.size(); ++i) {
    auto const rows = i < count ? store_.updated_weights(i) : arrays[i - count].rows;
    bad[i] = std::isfinite(sum_squares(exec_, as_vector(rows))) ? 0 : 1;
  }
  store_.mesh().world().sum(bad, Purpose::other);
  auto const found = std::ranges::find_if(bad, [](double n) { return n > 0; });
  if (found == bad.end()) return {};
  auto const first = std::size_t(found - bad.begin());
  std::vector<bool> parameters(count);
  for (std::size_t i = 0; i < bad.size(); ++i)
    if (bad[i] > 0) parameters[i < count ? i : arrays[i - count].parameter] = true;
  auto const others = std::ranges::count(parameters, true) - 1;
  auto const& name =
      store_.layout().parameters()[first < count ? first : arrays[first - count].parameter].name;
  return fmt::format(
      "{} of {}{} not finite", first < count ? "the weights" : "the " + arrays[first - count].kind, name,
      others == 0 ? " are" : fmt::format(" and arrays of {} more of {} parameters are", others, count));
}

Optimizer::Report Optimizer::step(double rate_factor) {
  if (!(rate_factor >= 0 && std::isfinite(rate_factor)))
    throw Error("step {}: rate factor {}, expected a finite number of 0 or more", step_, rate_factor);
  for (std::size_t i = 0; i < routes_.size(); ++i)
    require_rate(store_.layout().parameters()[i], routes_[i], rate_factor);
  store_.take_gradients();
  store_.finish_publication();
  trace::Span const span("optimizer step");
  std::vector<double> norms;
  auto report = check_gradients(norms);
  if (!report.nonfinite.empty()) {
    refuse(report);
    report.skipped = true;
    ++skipped_;
    ++step_;
    return report;
  }
  if (options_.clip > 0 && report.gradient_norm > options_.clip) {
    double const factor = options_.clip / report.gradient_norm;
    scale(exec_, factor, store_.gradients());
    for (auto& norm : norms) norm *= factor;
  }
  matrices_->follow(norms);
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
  require_between("steps", steps, 0, std::numeric_limits<std::int64_t>::max());
  require_between("skipped steps", skipped, 0, steps);
  step_ = steps;
  skipped_ = skipped;
  matrices_->measure_momenta();
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
