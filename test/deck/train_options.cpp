#include <dit/options/options.hpp>

#include <prowl/core/error.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include <build_strings.hpp>

using namespace prowl::dit;

namespace {

struct Fixture {
  TrainOptions options;
  prowl::Deck deck;
  Fixture() { declare(deck, options); }

  std::string error(std::vector<std::string> const& assignments) {
    try {
      for (auto const& assignment : assignments) deck.set(assignment);
      check(deck, options);
    } catch (prowl::Error const& e) {
      return e.what();
    }
    return "no error";
  }
};

std::string refused(std::vector<std::string> const& assignments) {
  Fixture fixture;
  return fixture.error(assignments);
}

} // namespace

TEST(TrainOptions, every_deck_in_inputs_is_read_and_reads_back_from_its_resolved_text) {
  int decks = 0;
  for (auto const& entry : std::filesystem::directory_iterator(PROWL_INPUTS)) {
    if (entry.path().extension() != ".toml") continue;
    ++decks;
    SCOPED_TRACE(entry.path());
    Fixture a;
    a.deck.read_file(entry.path());
    EXPECT_NO_THROW(check(a.deck, a.options));
    Fixture b;
    b.deck.read(a.deck.resolved(), "resolved");
    EXPECT_NO_THROW(check(b.deck, b.options));
    EXPECT_EQ(b.deck.resolved(), a.deck.resolved());
    EXPECT_NE(a.deck.resolved(), Fixture().deck.resolved());
  }
  EXPECT_EQ(decks, 6);
}

TEST(TrainOptions, paper_decks_have_the_papers_hyperparameters) {
  struct Expected {
    char const* name;
    double adamw, muon;
  };
  // The spec's table of rates; arXiv:2608.20818.
  for (auto const& [name, adamw, muon] :
       {Expected{"mmdit-1.3b", 3.0e-4, 5.0e-3}, Expected{"mmdit-4b", 2.0e-4, 3.0e-3},
        Expected{"mmdit-9b", 1.4e-4, 2.4e-3}, Expected{"mmdit-15b", 1.2e-4, 2.0e-3}}) {
    SCOPED_TRACE(name);
    Fixture fixture;
    fixture.deck.read_file(std::string(PROWL_INPUTS) + "/" + name + ".toml");
    auto const& o = fixture.options;
    EXPECT_EQ(o.model.preset, name);
    EXPECT_EQ(o.optimizer.rate, muon);
    EXPECT_EQ(o.optimizer.baseline_rate, adamw);
    EXPECT_EQ(o.optimizer.adamw_rate, 1e-4);
    EXPECT_EQ(o.optimizer.decay, 0.01);
    EXPECT_EQ(o.optimizer.adamw_decay, 0.01);
    EXPECT_EQ(o.optimizer.method, "periodic");
    EXPECT_EQ(o.optimizer.period, 3);
    EXPECT_EQ(o.optimizer.gamma, 0.15);
    EXPECT_EQ(o.optimizer.momentum, 0.95);
    EXPECT_FALSE(o.optimizer.nesterov);
    EXPECT_EQ(o.optimizer.adjust_lr, "original");
    EXPECT_EQ(o.optimizer.warmup, 2000);
    EXPECT_EQ(o.optimizer.schedule, "cosine");
    EXPECT_EQ(o.optimizer.system, "overlap");
    EXPECT_EQ(o.optimizer.bucket_mib, 256);
    EXPECT_EQ(o.optimizer.wire, "bf16");
    EXPECT_EQ(o.run.steps, 60000);
    EXPECT_EQ(o.train.batch, 4096);
    EXPECT_EQ(o.train.caption_drop, 0.1);
    EXPECT_EQ(o.model.patch, 2);
    EXPECT_EQ(o.model.channels, 16);
    EXPECT_EQ(o.model.size, 64);
    EXPECT_EQ(o.sample.guidance, 5);
  }
}

TEST(TrainOptions, impossible_optimizers_are_refused_with_value_and_range) {
  EXPECT_EQ(refused({"optimizer.period=0"}),
            "command line: optimizer.period: 0, expected integer, in [1, 1073741824]");
  EXPECT_EQ(refused({"optimizer.gamma=-0.5"}),
            "command line: optimizer.gamma: -0.5, expected number, above 0");
  EXPECT_EQ(refused({"optimizer.momentum=1"}),
            "command line: optimizer.momentum: 1, expected number, in [0, 1)");
  for (auto const* assignment : {"optimizer.gamma=0",
                                 "optimizer.momentum=-0.1",
                                 "optimizer.method=sgd",
                                 "optimizer.system=fast",
                                 "optimizer.wire=fp16",
                                 "optimizer.on_nonfinite=ignore",
                                 "optimizer.adjust_lr=yes",
                                 "optimizer.beta2=1",
                                 "optimizer.epsilon=0",
                                 "optimizer.rate=-1",
                                 "optimizer.clip=-1",
                                 "optimizer.bucket_mib=0",
                                 "optimizer.group=[{pattern = \"*\", period = 0}]",
                                 "optimizer.group=[{pattern = \"*\", gamma = 0}]",
                                 "optimizer.group=[{pattern = \"*\", momentum = 1}]",
                                 "optimizer.group=[{pattern = \"*\", route = \"sgd\"}]",
                                 "optimizer.group=[{rate = 1}]",
                                 "train.batch=0",
                                 "train.caption_drop=1.5",
                                 "model.hidden=100",
                                 "model.preset=mmdit-2b"})
    EXPECT_EQ(refused({assignment}).rfind("command line: ", 0), 0u) << assignment;
}

TEST(TrainOptions, contradictions_are_refused) {
  std::string const hidden = "model.hidden=128", layers = "model.layers=2";
  EXPECT_EQ(refused({hidden, layers}), "no error");
  EXPECT_EQ(refused({"model.preset=mmdit-4b"}), "no error");
  EXPECT_EQ(refused({}), "default: model.hidden: 0, expected a multiple of 64, or a model.preset");
  EXPECT_EQ(refused({hidden}), "default: model.layers: 0, expected at least 1, or a model.preset");
  EXPECT_EQ(refused({hidden, "model.preset=mmdit-4b"}),
            "command line: model.hidden: 128, expected 0 with model.preset \"mmdit-4b\"");
  EXPECT_EQ(refused({hidden, layers, "train.batch=64", "train.accumulate=3"}),
            "command line: train.accumulate: 3, expected a divisor of train.batch, 64");
  EXPECT_EQ(refused({hidden, layers, "model.patch=3"}),
            "command line: model.patch: 3, expected a divisor of model.size, 64");
  EXPECT_EQ(refused({hidden, layers, "model.encoder_widths=[8]"}),
            "default: model.encoder_tokens: [], expected as many as model.encoder_widths, 1");
}

TEST(TrainOptions, sizes_beyond_32_bits_are_refused_not_cut) {
  // 2^32 + 1 is 1 in 32 bits.
  for (std::string const key : {"parallel.replicate", "train.batch", "train.accumulate", "model.patch",
                                "model.channels", "model.size", "model.layers", "model.pooled_width",
                                "train.keep", "sample.steps", "parallel.prefetch"})
    EXPECT_EQ(refused({"model.hidden=64", "model.layers=1", key + "=4294967297"})
                  .rfind("command line: " + key + ": 4294967297, expected integer, in [", 0),
              0u)
        << key;
  EXPECT_EQ(refused({"model.hidden=64", "model.layers=1", "model.patch=1", "model.size=32768"}),
            "command line: model.size: 32768, expected at most 1024 patches of 1 a side");
  EXPECT_EQ(refused({"model.hidden=64", "model.layers=1", "model.patch=1", "model.size=1024"}), "no error");
}

TEST(TrainOptions, the_command_line_overrides_the_deck) {
  Fixture fixture;
  fixture.deck.read_file(std::string(PROWL_INPUTS) + "/emoji.toml");
  EXPECT_EQ(fixture.options.optimizer.method, "periodic");
  fixture.deck.set("optimizer.method=muon");
  EXPECT_EQ(fixture.options.optimizer.method, "muon");
  EXPECT_EQ(fixture.options.model.hidden, 128);
}

TEST(TrainOptions, list_names_every_key_once_with_a_meaning) {
  Fixture fixture;
  std::map<std::string, int> times;
  std::istringstream lines(fixture.deck.list_options());
  std::string line;
  std::size_t meaning_column = 0;
  for (int number = 0; std::getline(lines, line); ++number) {
    if (number == 0) {
      meaning_column = line.find("meaning");
      ASSERT_NE(meaning_column, std::string::npos);
      continue;
    }
    ASSERT_GT(line.size(), meaning_column) << line;
    EXPECT_EQ(line.substr(meaning_column - 2, 2), "  ") << line;
    EXPECT_NE(line[meaning_column], ' ') << line;
    ++times[line.substr(0, line.find(' '))];
  }
  std::vector<std::string> keys = {"optimizer.group"};
  for (auto const& option : fixture.deck.options()) keys.push_back(option.key);
  for (auto const* name : {"pattern", "route", "rate", "decay", "momentum", "nesterov", "period", "gamma",
                           "adjust_lr", "beta1", "beta2", "epsilon"})
    keys.push_back(std::string("optimizer.group[].") + name);
  for (auto const& key : keys) EXPECT_EQ(times[key], 1) << key;
  EXPECT_EQ(times.size(), keys.size());
}
