#include <plan/sweep.hpp>

#include <prowl/core/bytes.hpp>
#include <prowl/core/error.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace prowl::plan {

namespace {

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    auto const end = std::min(text.find_first_of(",|", begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::int64_t number(std::string const& option, std::string const& text, std::string const& whole,
                    std::int64_t most) {
  std::int64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    throw Error("{} {}: '{}', expected numbers from 1 to {}, as 8..64 or 8,16,64", option, whole, text, most);
  return value;
}

} // namespace

std::vector<std::int64_t> parse_numbers(std::string const& option, std::string const& text, bool by_one,
                                        std::int64_t most) {
  std::vector<std::int64_t> values;
  auto const add = [&](std::int64_t value) {
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  };
  auto const dots = text.find("..");
  if (dots == std::string::npos) {
    for (auto const& part : split(text)) add(number(option, part, text, most));
    return values;
  }
  auto const first = number(option, text.substr(0, dots), text, most),
             last = number(option, text.substr(dots + 2), text, most);
  if (last < first) throw Error("{} {}: expected a range from a smaller to a larger number", option, text);
  for (auto value = first; value <= last; value = by_one ? value + 1 : 2 * value) add(value);
  return values;
}

std::vector<std::string> parse_choices(std::string const& option, std::string const& text,
                                       std::vector<std::string> const& choices) {
  auto const values = split(text);
  for (auto const& value : values)
    if (std::ranges::find(choices, value) == choices.end())
      throw Error("{} {}: '{}', expected {}", option, text, value, fmt::join(choices, " or "));
  return values;
}

dit::TrainOptions with_ranks(dit::TrainOptions deck, std::int64_t ranks, std::int64_t per_rank) {
  if (per_rank == 0) return deck;
  auto const batch = double(per_rank) * double(ranks) * double(deck.train.accumulate);
  if (batch > 1 << 30)
    throw Error("--per-rank {}: a batch of {:.0f} images on {} ranks, expected at most {}", per_rank, batch,
                ranks, 1 << 30);
  deck.train.batch = per_rank * ranks * deck.train.accumulate;
  return deck;
}

std::vector<RunPlan> sweep_ranks(dit::TrainOptions const& deck, dit::ModelConfig const& config,
                                 std::vector<std::int64_t> const& ranks, std::int64_t per_rank,
                                 Setting const& setting) {
  std::vector<RunPlan> plans;
  for (auto const count : ranks) {
    auto const options = with_ranks(deck, count, per_rank);
    auto const hybrid = hybrid_mesh(int(count), int(setting.hardware.devices));
    for (auto const& method : practical_methods(options, int(count), hybrid))
      plans.push_back(plan_run(method.name, method.options, config, method.mesh, setting));
  }
  return plans;
}

std::vector<RunPlan> what_if(dit::TrainOptions const& deck, dit::ModelConfig const& config,
                             MeshShape const& mesh, WhatIf const& values, Setting const& setting) {
  auto const or_own = [](auto list, auto const& own) {
    if (list.empty()) list.push_back(own);
    return list;
  };
  std::vector<RunPlan> plans;
  for (auto const& placement : or_own(values.placements, deck.parallel.placement))
    for (auto const& wire : or_own(values.wires, deck.optimizer.wire))
      for (auto const bucket : or_own(values.bucket_mib, deck.optimizer.bucket_mib))
        for (auto const period : or_own(values.periods, deck.optimizer.period)) {
          auto options = deck;
          options.parallel.placement = placement;
          options.optimizer.wire = wire;
          options.optimizer.bucket_mib = bucket;
          options.optimizer.period = period;
          auto const name = placement == "dedicated" // gathers nothing
                                ? fmt::format("dedicated, K = {}", period)
                                : fmt::format("sharded, K = {}, {} MiB, {}", period, bucket, wire);
          if (std::ranges::find(plans, name, &RunPlan::name) == plans.end())
            plans.push_back(plan_run(name, options, config, mesh, setting));
        }
  return plans;
}

std::string csv(std::vector<RunPlan> const& plans) {
  std::string text =
      "ranks,way,replicas,shards,placement,residency,system,period,bucket_mib,wire,step_s,model_s,"
      "optimizer_s,exposed_s,all_gathers,all_reduces,optimizer_gib,weights_and_gradients_gib,"
      "memory_gib,fits,imbalance\n";
  for (auto const& plan : plans) {
    auto const& o = plan.options;
    text += fmt::format(
        "{},\"{}\",{},{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},"
        "{:.6g},{},{:.6g}\n",
        plan.mesh.ranks(), plan.name, plan.mesh.replicas, plan.mesh.shards, o.parallel.placement,
        o.parallel.residency, o.optimizer.system, plan.period() ? fmt::format("{}", *plan.period()) : "",
        o.optimizer.bucket_mib, o.optimizer.wire, plan.time.seconds, plan.time.computing_seconds,
        plan.time.optimizer_seconds, plan.time.exposed_seconds(), plan.volume.all_gathers,
        plan.volume.all_reduces, plan.volume.optimizer_bytes / gib, plan.volume.other_bytes / gib,
        double(plan.memory.total()) / gib, plan.fits(), plan.imbalance);
  }
  return text;
}

} // namespace prowl::plan
