#include <prowl/core/error.hpp>
#include <prowl/io/deck.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace {

struct Row {
  std::string pattern;
  std::optional<double> rate;
};

struct Options {
  bool on = false;
  std::int64_t period = 3;
  double gamma = 0.15;
  std::string method = "periodic";
  std::string folder = "runs";
  std::vector<std::int64_t> widths;
  std::vector<std::string> prompts;
  std::optional<double> limit;
  std::vector<Row> rows;
};

struct Fixture {
  Options options;
  prowl::Deck deck;

  Fixture() {
    deck.option("run.folder", options.folder, "results");
    deck.option("run.on", options.on, "whether");
    deck.option("run.limit", options.limit, "seconds");
    deck.option("optimizer.period", options.period, "steps", prowl::at_least(1));
    deck.option("optimizer.gamma", options.gamma, "scale", prowl::above(0));
    deck.option("optimizer.method", options.method, "branch", prowl::one_of({"periodic", "adamw"}));
    deck.option("model.widths", options.widths, "widths", prowl::at_least(1));
    deck.option("sample.prompts", options.prompts, "prompts");
    deck.tables<Row>("optimizer.group", options.rows, "groups", [](prowl::DeckSchema& schema, Row& row) {
      schema.option("pattern", row.pattern, "names", prowl::not_empty());
      schema.option("rate", row.rate, "rate", prowl::at_least(0));
    });
  }
};

template <class Action>
std::string error_of(Action const& action) {
  try {
    action();
  } catch (prowl::Error const& error) {
    return error.what();
  }
  return "no error";
}

std::string read_error(std::string const& text) {
  Fixture fixture;
  return error_of([&] { fixture.deck.read(text, "a.toml"); });
}

std::string set_error(std::string const& assignment) {
  Fixture fixture;
  return error_of([&] { fixture.deck.set(assignment); });
}

} // namespace

TEST(Deck, sets_every_type_and_keeps_defaults_of_what_is_left_out) {
  Fixture fixture;
  fixture.deck.read(R"([run]
on = true
limit = 2.5
[optimizer]
period = 7
gamma = 1            # an integer will do for a number
[[optimizer.group]]
pattern = "blocks.*"
[[optimizer.group]]
pattern = "final.*"
rate = 0.5
[model]
widths = [768, 1280]
[sample]
prompts = ["a", "b c"]
)",
                    "a.toml");
  auto const& o = fixture.options;
  EXPECT_TRUE(o.on);
  EXPECT_EQ(o.limit, 2.5);
  EXPECT_EQ(o.period, 7);
  EXPECT_EQ(o.gamma, 1.0);
  EXPECT_EQ(o.method, "periodic");
  EXPECT_EQ(o.folder, "runs");
  EXPECT_EQ(o.widths, (std::vector<std::int64_t>{768, 1280}));
  EXPECT_EQ(o.prompts, (std::vector<std::string>{"a", "b c"}));
  ASSERT_EQ(o.rows.size(), 2u);
  EXPECT_EQ(o.rows[0].pattern, "blocks.*");
  EXPECT_FALSE(o.rows[0].rate.has_value());
  EXPECT_EQ(o.rows[1].pattern, "final.*");
  EXPECT_EQ(o.rows[1].rate, 0.5);
}

TEST(Deck, unknown_key_is_an_error_with_its_line_and_the_nearest_key) {
  EXPECT_EQ(read_error("[run]\non = true\n\n[optimizer]\nperoid = 3\n"),
            "a.toml:5: optimizer.peroid: unknown key; nearest known key: optimizer.period");
  EXPECT_EQ(read_error("[optimiser]\ngama = 3\n"),
            "a.toml:2: optimiser.gama: unknown key; nearest known key: optimizer.gamma");
  // The right name in the wrong section.
  EXPECT_EQ(read_error("[run]\nperiod = 3\n"),
            "a.toml:2: run.period: unknown key; nearest known key: optimizer.period");
  EXPECT_EQ(read_error("period = 3\n"), "a.toml:1: period: unknown key; nearest known key: optimizer.period");
  EXPECT_EQ(read_error("[[optimizer.groups]]\npattern = \"*\"\n"),
            "a.toml:1: optimizer.groups: unknown key; nearest known key: optimizer.group");
  EXPECT_EQ(read_error("[[optimizer.group]]\npattern = \"*\"\nrat = 1\n"),
            "a.toml:3: optimizer.group[0].rat: unknown key; nearest known key: optimizer.group[0].rate");
  EXPECT_EQ(set_error("optimizer.perod=2"),
            "command line: optimizer.perod: unknown key; nearest known key: optimizer.period");
}

TEST(Deck, wrong_type_is_an_error) {
  EXPECT_EQ(read_error("[optimizer]\nperiod = 2.5\n"),
            "a.toml:2: optimizer.period: 2.5, expected integer, at least 1");
  EXPECT_EQ(read_error("[optimizer]\nmethod = 3\n"),
            "a.toml:2: optimizer.method: 3, expected string, one of \"periodic\", \"adamw\"");
  EXPECT_EQ(read_error("[run]\non = 1\n"), "a.toml:2: run.on: 1, expected true or false");
  EXPECT_EQ(read_error("[sample]\nprompts = \"a\"\n").substr(0, 26), "a.toml:2: sample.prompts: ");
  EXPECT_EQ(read_error("[sample]\nprompts = [1]\n"),
            "a.toml:2: sample.prompts: [ 1 ], expected list of strings");
  EXPECT_EQ(read_error("optimizer = 3\n"), "a.toml:1: optimizer: 3, expected a section, [optimizer]");
  EXPECT_EQ(read_error("[optimizer]\ngroup = 3\n"),
            "a.toml:2: optimizer.group: 3, expected a list of tables");
  EXPECT_EQ(read_error("[optimizer.period]\nx = 3\n").substr(0, 27), "a.toml:1: optimizer.period:");
  EXPECT_EQ(set_error("optimizer.period=fast"),
            "command line: optimizer.period: 'fast', expected integer, at least 1");
  EXPECT_NE(set_error("optimizer.gamma=nan"), "no error");
  EXPECT_NE(set_error("optimizer.gamma=inf"), "no error");
  EXPECT_EQ(set_error("optimizer.period"), "command line: optimizer.period: expected key=value");
}

TEST(Deck, impossible_value_is_an_error_with_the_range) {
  EXPECT_EQ(read_error("[optimizer]\nperiod = 0\n"),
            "a.toml:2: optimizer.period: 0, expected integer, at least 1");
  EXPECT_EQ(set_error("optimizer.period=0"),
            "command line: optimizer.period: 0, expected integer, at least 1");
  EXPECT_NE(set_error("optimizer.gamma=0.0").find("expected number, above 0"), std::string::npos);
  EXPECT_NE(set_error("optimizer.method=sgd").find("one of \"periodic\", \"adamw\""), std::string::npos);
  EXPECT_NE(set_error("model.widths=[1, 0]").find("at least 1"), std::string::npos);
  EXPECT_EQ(read_error("[[optimizer.group]]\npattern = \"*\"\nrate = -1\n"),
            "a.toml:3: optimizer.group[0].rate: -1, expected number, at least 0");
  EXPECT_EQ(read_error("[run]\non = true\n[[optimizer.group]]\nrate = 1\n"),
            "a.toml:3: optimizer.group[0].pattern: missing, expected string, not empty");
}

TEST(Deck, ranges_include_the_ends_that_they_say) {
  auto const holds = [](prowl::DeckCheck const& check, double value) { return check.holds(value); };
  EXPECT_TRUE(holds(prowl::from_to_below(0, 1), 0));
  EXPECT_FALSE(holds(prowl::from_to_below(0, 1), 1));
  EXPECT_TRUE(holds(prowl::between(0, 1), 1));
  EXPECT_FALSE(holds(prowl::between(0, 1), 1.5));
  EXPECT_TRUE(holds(prowl::at_least(2), 2));
  EXPECT_FALSE(holds(prowl::above(2), 2));
}

TEST(Deck, of_several_errors_the_first_by_line_is_reported) {
  // The parser keeps keys by name: z before a only in the file.
  EXPECT_EQ(read_error("[zoo]\nz = 1\n[abc]\na = 1\n").substr(0, 15), "a.toml:2: zoo.z");
}

TEST(Deck, text_that_is_not_toml_is_an_error_with_its_line) {
  EXPECT_EQ(read_error("[run]\non = true\non = false\n").substr(0, 9), "a.toml:3:");
  EXPECT_EQ(read_error("[run]\non = \n").substr(0, 7), "a.toml:");
  prowl::Deck deck;
  EXPECT_EQ(error_of([&] { deck.read_file("/nowhere/a.toml"); }),
            "/nowhere/a.toml: cannot be read, expected a deck in TOML");
  EXPECT_EQ(error_of([&] { deck.read_file("/tmp"); }), "/tmp: cannot be read, expected a deck in TOML");
}

TEST(Deck, the_last_setting_wins_and_is_named_as_the_origin) {
  Fixture fixture;
  auto& deck = fixture.deck;
  EXPECT_EQ(deck.origin("optimizer.period"), "default");
  deck.read("[optimizer]\nperiod = 4\ngamma = 0.5\n", "a.toml");
  deck.set("optimizer.period = 5");
  EXPECT_EQ(fixture.options.period, 5);
  EXPECT_EQ(fixture.options.gamma, 0.5);
  EXPECT_EQ(deck.origin("optimizer.period"), "command line");
  EXPECT_EQ(deck.origin("optimizer.gamma"), "a.toml:3");
  EXPECT_EQ(error_of([&] { deck.refuse("optimizer.gamma", "at most the period"); }),
            "a.toml:3: optimizer.gamma: 0.5, expected at most the period");
}

TEST(Deck, overrides_take_toml_and_bare_strings) {
  Fixture fixture;
  auto const set = [&](std::string const& assignment) { fixture.deck.set(assignment); };
  set("run.folder=runs/a b=c");
  EXPECT_EQ(fixture.options.folder, "runs/a b=c");
  set("run.folder=\"x\\ty\"");
  EXPECT_EQ(fixture.options.folder, "x\ty");
  set("run.folder=2024"); // a number in TOML, but the option is a string
  EXPECT_EQ(fixture.options.folder, "2024");
  set("run.folder=a\noptimizer.period = 9");
  EXPECT_EQ(fixture.options.folder, "a\noptimizer.period = 9");
  EXPECT_EQ(fixture.options.period, 3);
  set("optimizer.method=adamw");
  EXPECT_EQ(fixture.options.method, "adamw");
  set("model.widths=[3, 4]");
  EXPECT_EQ(fixture.options.widths, (std::vector<std::int64_t>{3, 4}));
  set("optimizer.group=[{pattern = \"q\", rate = 2}]");
  ASSERT_EQ(fixture.options.rows.size(), 1u);
  EXPECT_EQ(fixture.options.rows[0].rate, 2.0);
  set("optimizer.group=[]");
  EXPECT_TRUE(fixture.options.rows.empty());
}

TEST(Deck, resolved_text_reads_back_as_the_same_values) {
  Fixture a;
  a.options = {true,
               std::numeric_limits<std::int64_t>::min(),
               1.0 / 3,
               "adamw",
               "quote \" back \\ line \n bell \a é # =",
               {1, 2},
               {"", "[x]"},
               1e300,
               {{"blocks.*", std::nullopt}, {"b", 0.1}}};
  a.options.period = std::numeric_limits<std::int64_t>::max();
  Fixture b;
  b.options.rows.resize(1); // replaced by what is read
  b.deck.read(a.deck.resolved(), "resolved");
  EXPECT_EQ(b.options.on, true);
  EXPECT_EQ(b.options.period, a.options.period);
  EXPECT_EQ(b.options.gamma, a.options.gamma);
  EXPECT_EQ(b.options.method, a.options.method);
  EXPECT_EQ(b.options.folder, a.options.folder);
  EXPECT_EQ(b.options.widths, a.options.widths);
  EXPECT_EQ(b.options.prompts, a.options.prompts);
  EXPECT_EQ(b.options.limit, a.options.limit);
  ASSERT_EQ(b.options.rows.size(), 2u);
  EXPECT_EQ(b.options.rows[1].pattern, "b");
  EXPECT_EQ(b.options.rows[1].rate, 0.1);
  EXPECT_FALSE(b.options.rows[0].rate.has_value());
  EXPECT_EQ(b.deck.resolved(), a.deck.resolved());
}
