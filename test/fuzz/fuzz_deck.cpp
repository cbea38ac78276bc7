// A deck with an option of every type and a list of tables: refused, or what it resolves to reads as the same.
#include "scratch.hpp"

#include <prowl/io/deck.hpp>

namespace {

struct Row {
  std::string pattern;
  double rate = 1;
  std::int64_t period = 0;
};

struct Options {
  bool flag = false;
  std::int64_t count = 3;
  double rate = 0.5;
  std::string name = "x", how = "a";
  std::vector<std::int64_t> numbers;
  std::vector<std::string> names;
  std::vector<Row> rows;

  void declare(prowl::Deck& deck) {
    deck.option("run.flag", flag, "a flag");
    deck.option("run.count", count, "a count", prowl::at_least(1));
    deck.option("train.rate", rate, "a rate", prowl::from_to_below(0, 1));
    deck.option("train.name", name, "a name", prowl::not_empty());
    deck.option("train.how", how, "how", prowl::one_of({"a", "b"}));
    deck.option("model.numbers", numbers, "numbers", prowl::between(-5, 5));
    deck.option("model.names", names, "names");
    deck.tables<Row>("optimizer.group", rows, "groups", [](prowl::DeckSchema& schema, Row& row) {
      schema.option("pattern", row.pattern, "which", prowl::not_empty());
      schema.option("rate", row.rate, "a rate");
      schema.option("period", row.period, "a period");
    });
  }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  auto const assignment = bytes.ConsumeRandomLengthString(64);
  auto const text = bytes.ConsumeRemainingBytesAsString();
  Options options;
  prowl::Deck deck;
  options.declare(deck);
  bool read = false;
  fuzz::expect_error_or_none([&] {
    deck.read(text, "fuzz.toml");
    deck.set(assignment);
    read = true;
  });
  if (!read) return 0;
  auto const resolved = deck.resolved();
  Options again;
  prowl::Deck other;
  again.declare(other);
  other.read(resolved, "resolved.toml"); // its Error ends the fuzzer
  if (other.resolved() != resolved) std::abort();
  return 0;
}
