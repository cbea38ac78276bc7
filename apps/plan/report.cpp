#include <plan/report.hpp>

#include <prowl/core/bytes.hpp>

#include <dit/layout.hpp>

#include <fmt/ranges.h>

#include <algorithm>

namespace prowl::plan {

namespace {

/// What bytes are printed in: MiB where all ways are small.
struct Scale {
  char const* unit;
  double bytes;
};
Scale scale_of(double largest) { return largest < 4 * gib ? Scale{"MiB", mib} : Scale{"GiB", gib}; }

/// The largest parts, by name.
std::string parts_text(std::vector<std::pair<std::string, double>> const& path, double whole,
                       std::size_t most) {
  std::vector<std::string> parts;
  for (auto const& [name, seconds] : path)
    if (parts.size() < most && seconds > 0.005 * whole)
      parts.push_back(fmt::format("{} {:.0f}%", name, 100 * seconds / whole));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string collectives_text(RunPlan const& plan, Scale const& scale) {
  std::string lines;
  for (auto purpose : all_purposes) {
    std::vector<std::string> kinds;
    double bytes = 0;
    for (auto kind : all_collectives) {
      double calls = 0;
      for (auto const& ledger : plan.steps) {
        auto const totals = ledger.totals(kind, purpose);
        calls += double(totals.calls) / double(plan.steps.size());
        bytes += totals.bytes / double(plan.steps.size());
      }
      if (calls > 0) kinds.push_back(fmt::format("{:.1f} {}", calls, name(kind)));
    }
    if (!kinds.empty())
      lines += fmt::format("  {:<14} {:>9.3f} {}  {}\n", name(purpose), bytes / scale.bytes, scale.unit,
                           fmt::join(kinds, ", "));
  }
  return lines;
}

std::string owners_text(RunPlan const& plan) {
  if (plan.owned == 0) return "";
  auto const idle = std::ranges::count(plan.loads, 0.0);
  return fmt::format(
      "owners: {} matrices over {} slots, {} of them without any; the busiest has {:.3f} of the mean\n",
      plan.owned, plan.loads.size(), idle, plan.imbalance);
}

std::string images_text(RunPlan const& plan) {
  auto const& train = plan.options.train;
  auto const ranks = std::int64_t(plan.mesh.ranks()), micro_batch = train.batch / train.accumulate;
  auto const each = double(micro_batch) / double(ranks);
  auto text = fmt::format("batch: {} images, {:.4g} a rank in each of {} micro-batches", train.batch, each,
                          train.accumulate);
  if (train.accumulate == 1) text = fmt::format("batch: {} images, {:.4g} a rank", train.batch, each);
  if (micro_batch < ranks)
    text += fmt::format("; {} ranks have none", ranks - micro_batch);
  else if (micro_batch % ranks != 0)
    text += "; some ranks have one more than others";
  return text + '\n';
}

std::string time_text(RunPlan const& plan) {
  auto const& t = plan.time;
  auto const& run = plan.options.run;
  auto out = fmt::format("flop of a rank and step: model {:.4g}, Newton-Schulz {:.4g}\n", plan.model_flop,
                         plan.optimizer_flop);
  out += fmt::format("time, ms: step {}; model {}; optimizer {}", milliseconds(t.seconds),
                     milliseconds(t.computing_seconds), milliseconds(t.optimizer_seconds));
  if (plan.steps.size() > 1)
    out += fmt::format(" (step 0 of a period {}, the others {})", milliseconds(t.refresh_seconds),
                       milliseconds(t.other_seconds));
  out += fmt::format("; the rest, weights and gradients: {}\n",
                     milliseconds(t.seconds - t.computing_seconds - t.optimizer_seconds));
  out += fmt::format("{} steps: {:.1f} hours, {:.4g} device-hours; {:.1f} images a second\n", run.steps,
                     t.seconds * double(run.steps) / 3600,
                     t.seconds * double(run.steps) / 3600 * plan.mesh.ranks(),
                     double(plan.options.train.batch) / t.seconds);
  out += "communication, ms under way / exposed:";
  for (auto purpose : all_purposes) {
    auto const p = std::size_t(purpose);
    if (t.communication[p] > 0)
      out += fmt::format(" {} {} / {};", name(purpose), milliseconds(t.communication[p]),
                         milliseconds(t.exposed[p]));
  }
  out.back() = '\n';
  return out + "critical path: " + parts_text(t.critical_path, t.seconds, 8) + '\n';
}

} // namespace

std::string describe_deck(RunPlan const& plan, dit::ModelConfig const& config, Setting const& setting) {
  auto const count = dit::counts(config);
  auto const& o = plan.options;
  auto const scale = scale_of(double(plan.memory.total()));
  std::string out = fmt::format("{}, {} ranks ({} replicate x shard) of {}\n", plan.name, plan.mesh.ranks(),
                                text(plan.mesh), setting.hardware.name);
  if (setting.type != "float32")
    out += fmt::format("products in {}: what if, Prowl computes them in float32\n", setting.type);
  out += images_text(plan);
  out +=
      fmt::format("parameters: {} trainable, {} with buffers, {} ({:.2f}%) routed to Muon\n", count.trainable,
                  count.total, plan.muon, 100 * double(plan.muon) / double(count.trainable));
  out +=
      fmt::format("placement: {}{}, {}\n", o.parallel.placement,
                  o.parallel.placement == "sharded" ? ", " + o.optimizer.system : "", o.parallel.residency);
  out += fmt::format("memory of the rank that holds most: {:.3f} {} of {:.1f}: {}\n",
                     double(plan.memory.total()) / scale.bytes, scale.unit, plan.capacity / scale.bytes,
                     plan.fits_well() ? "fits"
                     : plan.fits()    ? "fits, with less than a tenth to spare"
                                      : "DOES NOT FIT");
  for (auto const& part : plan.memory.parts())
    if (part.bytes > 0)
      out += fmt::format("  {:<14} {:>9.3f} {}\n", part.name, double(part.bytes) / scale.bytes, scale.unit);
  out += "collectives of a rank and step, averaged over a period\n" + collectives_text(plan, scale);
  if (plan.buckets > 0)
    out += fmt::format("buckets: {} in a refresh, the largest {:.1f} MiB\n", plan.buckets,
                       double(plan.largest_bucket) / mib);
  return out + owners_text(plan) + time_text(plan);
}

std::string comparison(std::vector<RunPlan> const& plans) {
  std::size_t width = 6;
  double largest = 0;
  for (auto const& plan : plans) {
    width = std::max(width, plan.name.size());
    largest = std::max(largest, double(plan.memory.total()));
  }
  auto const scale = scale_of(largest);
  auto table = fmt::format("{:<{}} {:>9} {:>9} {:>8} {:>6} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>6}\n", "",
                           width, "mesh", fmt::format("held {}", scale.unit), "gathers", "sums", "casts",
                           fmt::format("opt. {}", scale.unit), fmt::format("rest {}", scale.unit), "opt. ms",
                           "step ms", "exposed", "owners");
  for (auto const& plan : plans) {
    auto const& v = plan.volume;
    table += fmt::format(
        "{:<{}} {:>9} {:>8.2f}{} {:>8.1f} {:>6.1f} {:>6.1f} {:>9.2f} {:>9.2f} {:>8} {:>8} {:>8} {:>6}\n",
        plan.name, width, text(plan.mesh), double(plan.memory.total()) / scale.bytes, mark(plan),
        v.all_gathers, v.all_reduces, v.broadcasts, v.optimizer_bytes / scale.bytes,
        v.other_bytes / scale.bytes, milliseconds(plan.time.optimizer_seconds),
        milliseconds(plan.time.seconds), milliseconds(plan.time.exposed_seconds()),
        plan.owned > 0 ? fmt::format("{:.2f}", plan.imbalance) : "-");
  }
  return table + fmt::format("Of a rank and step, averaged over a period. held: memory ({}).\n"
                             "gathers, sums, casts, opt. {}: all-gathers, all-reduces and broadcasts of the "
                             "optimizer, and what they\n"
                             "move; rest {}: what weights and gradients move. exposed: ms of waiting. "
                             "owners: the busiest one's work\n"
                             "over the mean. Sharded ways: one matrix a gather (naive: at every step), "
                             "buckets, gathers under NS5\n"
                             "(overlap); dedicated: weights whole twice (z3) or once (z2) a step, or as z3 "
                             "with replicas (hybrid).\n",
                             mark_legend, scale.unit, scale.unit);
}

std::string gains(std::vector<RunPlan> const& plans) {
  auto const muon = std::ranges::find(plans, "Muon overlap", &RunPlan::name),
             periodic = std::ranges::find(plans, "Periodic overlap", &RunPlan::name);
  if (muon == plans.end() || periodic == plans.end()) return "";
  auto const change = [](double to, double from) { return from > 0 ? 100 * (to / from - 1) : 0.0; };
  return fmt::format("Periodic against Muon, sharded: optimizer {:+.1f}%, step {:+.1f}%, volume {:+.1f}%\n",
                     change(periodic->time.optimizer_seconds, muon->time.optimizer_seconds),
                     change(periodic->time.seconds, muon->time.seconds),
                     change(periodic->volume.optimizer_bytes, muon->volume.optimizer_bytes));
}

nlohmann::json counts_json(dit::ModelConfig const& config) {
  auto const count = dit::counts(config);
  return {{"trainable", count.trainable}, {"total", count.total}, {"muon", count.muon}};
}

nlohmann::json to_json(RunPlan const& plan) {
  nlohmann::json memory = {{"total", plan.memory.total()}, {"capacity", plan.capacity}};
  for (auto const& part : plan.memory.parts()) memory[part.name] = part.bytes;
  auto steps = nlohmann::json::array();
  for (auto const& ledger : plan.steps) {
    nlohmann::json step = nlohmann::json::object();
    for (auto purpose : all_purposes)
      for (auto kind : all_collectives)
        if (auto const totals = ledger.totals(kind, purpose); totals.calls > 0) {
          step[fmt::format("{}_{}s", name(purpose), name(kind))] = totals.calls;
          step[fmt::format("{}_{}_bytes", name(purpose), name(kind))] = totals.bytes;
        }
    steps.push_back(step);
  }
  nlohmann::json communication, exposed, path = nlohmann::json::array();
  for (auto purpose : all_purposes) {
    communication[name(purpose)] = plan.time.communication[std::size_t(purpose)];
    exposed[name(purpose)] = plan.time.exposed[std::size_t(purpose)];
  }
  for (auto const& [name, seconds] : plan.time.critical_path)
    path.push_back({{"name", name}, {"seconds", seconds}});
  auto const& o = plan.options;
  auto const period = plan.period() ? nlohmann::json(*plan.period()) : nlohmann::json();
  return {{"name", plan.name},
          {"method", o.optimizer.method},
          {"system", o.optimizer.system},
          {"placement", o.parallel.placement},
          {"residency", o.parallel.residency},
          {"period", period},
          {"muon", plan.muon},
          {"bucket_mib", o.optimizer.bucket_mib},
          {"wire", o.optimizer.wire},
          {"ranks", plan.mesh.ranks()},
          {"mesh", {plan.mesh.replicas, plan.mesh.shards}},
          {"memory_bytes", memory},
          {"fits", plan.fits()},
          {"fits_well", plan.fits_well()},
          {"steps", steps},
          {"all_gathers", plan.volume.all_gathers},
          {"all_reduces", plan.volume.all_reduces},
          {"broadcasts", plan.volume.broadcasts},
          {"batch", o.train.batch},
          {"accumulate", o.train.accumulate},
          {"optimizer_gib", plan.volume.optimizer_bytes / gib},
          {"weights_and_gradients_gib", plan.volume.other_bytes / gib},
          {"model_flop", plan.model_flop},
          {"optimizer_flop", plan.optimizer_flop},
          {"buckets", plan.buckets},
          {"largest_bucket_bytes", plan.largest_bucket},
          {"owned_matrices", plan.owned},
          {"owner_flop", plan.loads},
          {"imbalance", plan.imbalance},
          {"step_s", plan.time.seconds},
          {"model_s", plan.time.computing_seconds},
          {"optimizer_s", plan.time.optimizer_seconds},
          {"refresh_s", plan.time.refresh_seconds},
          {"other_steps_s", plan.time.other_seconds},
          {"communication_s", communication},
          {"exposed_s", exposed},
          {"exposed_total_s", plan.time.exposed_seconds()},
          {"critical_path", path}};
}

} // namespace prowl::plan
