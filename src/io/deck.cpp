#include <prowl/io/deck.hpp>

#include <prowl/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

// toml++ asserts of its input what it checks later. As assertions they would end the program, and as the
// assumptions that they are in a release they would mislead the compiler.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

namespace prowl {

using detail::DeckOption;
using detail::DeckTables;

namespace {

constexpr std::array<char const*, 6> type_names = {"true or false", "integer",          "number",
                                                   "string",        "list of integers", "list of strings"};

std::string quoted(std::string const& text) {
  std::string result = "\"";
  for (char const c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\u{:04X}", static_cast<int>(c));
    else
      result += c;
  }
  return result + '"';
}

std::string in_toml(bool value) { return value ? "true" : "false"; }
std::string in_toml(std::int64_t value) { return fmt::format("{}", value); }
std::string in_toml(std::string const& value) { return quoted(value); }
std::string in_toml(double value) {
  std::string text = fmt::format("{}", value); // the shortest text that reads back as the same number
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}
template <class T>
std::string in_toml(std::vector<T> const& values) {
  std::vector<std::string> parts;
  for (auto const& value : values) parts.push_back(in_toml(value));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}
std::string in_toml(DeckValue const& value) {
  return std::visit([](auto const& v) { return in_toml(v); }, value);
}

std::string shortened(std::string const& text) {
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

std::string text_of(toml::node const& node) {
  std::ostringstream out;
  out << toml::toml_formatter(node);
  std::string text = out.str();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return shortened(text);
}

std::string expectation(DeckOption const& option) {
  std::string const type = type_names[option.type];
  if (option.check.expected.empty()) return type;
  return fmt::format("{}, {}", type, option.check.expected);
}

/// Edits (insert, remove, replace, swap of neighbours) from one text to the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// A key with the same last part wins (a right name in the wrong section), then the fewest edits.
std::string nearest(std::string key, std::vector<std::string> const& known) {
  key.resize(std::min<std::size_t>(key.size(), 200));
  std::string best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (auto const& candidate : known) {
    std::size_t const distance =
        edit_distance(key, candidate) * (last_part(key) == last_part(candidate) ? 1 : 1000);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

template <class T>
std::optional<DeckValue> list_of(toml::array const& array) {
  std::vector<T> values;
  for (auto const& element : array) {
    auto const* value = element.template as<T>();
    if (!value) return std::nullopt;
    values.push_back(value->get());
  }
  return values;
}

/// The node as the type with this index in DeckValue, or nothing where it is of another type.
std::optional<DeckValue> converted(toml::node const& node, std::size_t type) {
  auto const* array = node.as_array();
  switch (type) {
  case 0:
    return node.is_boolean() ? std::optional<DeckValue>(node.as_boolean()->get()) : std::nullopt;
  case 1:
    return node.is_integer() ? std::optional<DeckValue>(node.as_integer()->get()) : std::nullopt;
  case 2:
    if (node.is_integer()) return static_cast<double>(node.as_integer()->get());
    if (node.is_floating_point() && std::isfinite(node.as_floating_point()->get()))
      return node.as_floating_point()->get();
    return std::nullopt;
  case 3:
    return node.is_string() ? std::optional<DeckValue>(node.as_string()->get()) : std::nullopt;
  case 4:
    return array ? list_of<std::int64_t>(*array) : std::nullopt;
  default:
    return array ? list_of<std::string>(*array) : std::nullopt;
  }
}

bool all_numbers(DeckValue const& value, std::function<bool(double)> const& holds) {
  if (auto const* integer = std::get_if<std::int64_t>(&value)) return holds(static_cast<double>(*integer));
  if (auto const* number = std::get_if<double>(&value)) return holds(*number);
  auto const& list = std::get<std::vector<std::int64_t>>(value);
  return std::all_of(list.begin(), list.end(), [&](std::int64_t v) { return holds(static_cast<double>(v)); });
}

DeckCheck number_check(std::string expected, std::function<bool(double)> holds) {
  return {std::move(expected), [holds](DeckValue const& value) { return all_numbers(value, holds); }};
}

toml::table parse(std::string_view text, std::string const& name) {
  try {
    return toml::parse(text, name);
  } catch (toml::parse_error const& error) {
    throw Error("{}:{}: {}", name, error.source().begin.line, error.description());
  }
}

} // namespace

DeckCheck at_least(double bound) {
  return number_check(fmt::format("at least {}", bound), [=](double v) { return v >= bound; });
}
DeckCheck above(double bound) {
  return number_check(fmt::format("above {}", bound), [=](double v) { return v > bound; });
}
DeckCheck between(double low, double high) {
  return number_check(fmt::format("in [{}, {}]", low, high), [=](double v) { return low <= v && v <= high; });
}
DeckCheck from_to_below(double low, double high) {
  return number_check(fmt::format("in [{}, {})", low, high), [=](double v) { return low <= v && v < high; });
}
DeckCheck one_of(std::vector<std::string> choices) {
  std::vector<std::string> texts;
  for (auto const& choice : choices) texts.push_back(quoted(choice));
  return {fmt::format("one of {}", fmt::join(texts, ", ")), [choices](DeckValue const& value) {
            return std::find(choices.begin(), choices.end(), std::get<std::string>(value)) != choices.end();
          }};
}
DeckCheck not_empty() {
  return {"not empty", [](DeckValue const& value) {
            return std::visit(
                [](auto const& v) {
                  if constexpr (requires { v.empty(); })
                    return !v.empty();
                  else
                    return true;
                },
                value);
          }};
}

void DeckSchema::add(DeckOption option) { options_.push_back(std::move(option)); }

void Deck::add_tables(DeckTables tables) { tables_.push_back(std::move(tables)); }

/// Walks one parsed text, sets what it can, and keeps the first error by line.
class DeckReader {
public:
  /// With an empty file name the text is the command line's.
  DeckReader(Deck& deck, std::string file) : deck_(deck), file_(std::move(file)) {
    for (auto const& option : deck.options()) known_.push_back(option.key);
    for (auto const& tables : deck.tables_) known_.push_back(tables.key);
  }

  void read(toml::table const& root) {
    walk(root, "");
    if (!error_.empty()) throw Error("{}", error_);
  }

private:
  std::string place(std::size_t line) const {
    return file_.empty() ? "command line" : fmt::format("{}:{}", file_, line);
  }

  void fail(std::size_t line, std::string const& message) {
    if (!error_.empty() && line >= error_line_) return;
    error_line_ = line;
    error_ = fmt::format("{}: {}", place(line), message);
  }

  bool is_section(std::string const& key) const {
    return std::any_of(known_.begin(), known_.end(),
                       [&](auto const& k) { return k.rfind(key + '.', 0) == 0; });
  }

  void walk(toml::table const& table, std::string const& prefix) {
    for (auto const& [key, node] : table) {
      std::string const full = prefix + std::string(key.str());
      std::size_t const line = key.source().begin.line;
      auto const option = std::find_if(deck_.options().begin(), deck_.options().end(),
                                       [&](auto const& o) { return o.key == full; });
      auto const tables = std::find_if(deck_.tables_.begin(), deck_.tables_.end(),
                                       [&](auto const& t) { return t.key == full; });
      auto const* inner = node.as_table();
      if (option != deck_.options().end()) {
        assign(*option, full, node, line);
        deck_.origins_[full] = place(line);
      } else if (tables != deck_.tables_.end()) {
        read_rows(*tables, node, line);
        deck_.origins_[full] = place(line);
      } else if (inner && (is_section(full) || !inner->empty())) {
        walk(*inner, full + '.');
      } else if (is_section(full)) {
        fail(line, fmt::format("{}: {}, expected a section, [{}]", full, text_of(node), full));
      } else {
        fail(line,
             fmt::format("{}: unknown key; nearest known key: {}", shortened(full), nearest(full, known_)));
      }
    }
  }

  void assign(DeckOption const& option, std::string const& shown, toml::node const& node, std::size_t line) {
    auto value = converted(node, option.type);
    if (!value || (option.check.holds && !option.check.holds(*value)))
      return fail(line, fmt::format("{}: {}, expected {}", shown, text_of(node), expectation(option)));
    option.set(*value);
  }

  void read_rows(DeckTables const& tables, toml::node const& node, std::size_t line) {
    auto const* array = node.as_array();
    if (!array || !std::all_of(array->begin(), array->end(), [](auto const& row) { return row.is_table(); }))
      return fail(line, fmt::format("{}: {}, expected a list of tables", tables.key, text_of(node)));
    tables.clear();
    std::size_t index = 0;
    for (auto const& row : *array) {
      auto const schema = tables.append();
      read_row(schema, *row.as_table(), fmt::format("{}[{}].", tables.key, index++));
    }
  }

  void read_row(DeckSchema const& schema, toml::table const& row, std::string const& prefix) {
    std::vector<std::string> names;
    for (auto const& option : schema.options()) {
      names.push_back(option.key);
      if (!row.contains(option.key) && option.initial && option.check.holds &&
          !option.check.holds(*option.initial))
        fail(row.source().begin.line,
             fmt::format("{}{}: missing, expected {}", prefix, option.key, expectation(option)));
    }
    for (auto const& [key, node] : row) {
      std::string const name(key.str());
      std::size_t const line = key.source().begin.line;
      auto const option = std::find_if(schema.options().begin(), schema.options().end(),
                                       [&](auto const& o) { return o.key == name; });
      if (option != schema.options().end())
        assign(*option, prefix + name, node, line);
      else
        fail(line, fmt::format("{}{}: unknown key; nearest known key: {}{}", prefix, shortened(name), prefix,
                               nearest(name, names)));
    }
  }

  Deck& deck_;
  std::string file_;
  std::vector<std::string> known_;
  std::string error_;
  std::size_t error_line_ = 0;
};

void Deck::read_file(std::string const& path) {
  std::ifstream file;
  if (!std::filesystem::is_directory(path)) file.open(path, std::ios::binary); // a folder opens, too
  if (!file.is_open()) throw Error("{}: cannot be read, expected a deck in TOML", path);
  read(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

void Deck::read(std::string_view text, std::string const& name) {
  DeckReader(*this, name).read(parse(text, name));
}

void Deck::set(std::string_view assignment) {
  auto const trim = [](std::string_view text) {
    auto const first = text.find_first_not_of(" \t");
    return first == text.npos ? text.substr(0, 0)
                              : text.substr(first, text.find_last_not_of(" \t") - first + 1);
  };
  auto const equals = assignment.find('=');
  if (equals == assignment.npos) throw Error("command line: {}: expected key=value", assignment);
  std::string const key(trim(assignment.substr(0, equals)));
  std::string const value(trim(assignment.substr(equals + 1)));

  auto const option =
      std::find_if(options().begin(), options().end(), [&](auto const& o) { return o.key == key; });
  bool const is_string = option != options().end() && option->type == DeckValue(std::string()).index();
  toml::table parsed;
  bool is_toml = false;
  try {
    parsed = toml::parse("value = " + value);
    is_toml = parsed.size() == 1 && (!is_string || parsed.get("value")->is_string());
  } catch (toml::parse_error const&) {
  }
  if (!is_toml) parsed = parse("value = " + quoted(value), "command line");

  // The override as a deck of one key.
  toml::table root;
  toml::table* table = &root;
  std::string_view rest = key;
  for (auto dot = rest.find('.'); dot != rest.npos; dot = rest.find('.')) {
    table = table->insert_or_assign(rest.substr(0, dot), toml::table()).first->second.as_table();
    rest.remove_prefix(dot + 1);
  }
  table->insert_or_assign(rest, *parsed.get("value"));
  DeckReader(*this, "").read(root);
}

std::string Deck::origin(std::string const& key) const {
  auto const found = origins_.find(key);
  return found == origins_.end() ? "default" : found->second;
}

void Deck::refuse(std::string const& key, std::string const& expected) const {
  std::string value = "not set";
  for (auto const& option : options())
    if (auto const current = option.key == key ? option.get() : std::nullopt) value = in_toml(*current);
  throw Error("{}: {}: {}, expected {}", origin(key), key, value, expected);
}

std::string Deck::resolved() const {
  std::vector<std::pair<std::string, std::string>> sections; // in order of declaration
  auto const section = [&](std::string const& key) -> std::string& {
    auto const dot = key.rfind('.');
    std::string const name = dot == key.npos ? "" : key.substr(0, dot);
    auto const found =
        std::find_if(sections.begin(), sections.end(), [&](auto const& s) { return s.first == name; });
    return found == sections.end() ? sections.emplace_back(name, "").second : found->second;
  };
  auto const line = [](DeckOption const& option) {
    auto const value = option.get();
    if (!value) return std::string();
    return fmt::format("{:<36} # {}\n", fmt::format("{} = {}", last_part(option.key), in_toml(*value)),
                       option.meaning);
  };
  for (auto const& option : options()) section(option.key) += line(option);
  for (auto const& tables : tables_) {
    for (auto const& row : tables.rows()) {
      std::string& text = section(tables.key);
      text += fmt::format("\n[[{}]]\n", tables.key);
      for (auto const& option : row.options()) text += line(option);
    }
  }
  std::string result;
  for (auto const& [name, text] : sections)
    result += fmt::format("{}{}{}", result.empty() ? "" : "\n",
                          name.empty() ? "" : fmt::format("[{}]\n", name), text);
  return result;
}

std::map<std::string, std::string> Deck::values() const {
  std::map<std::string, std::string> result;
  auto const add = [&](DeckSchema const& schema, std::string const& prefix) {
    for (auto const& option : schema.options())
      if (auto const value = option.get()) result[prefix + option.key] = in_toml(*value);
  };
  add(*this, "");
  for (auto const& tables : tables_) {
    std::size_t index = 0;
    for (auto const& row : tables.rows()) add(row, fmt::format("{}[{}].", tables.key, index++));
  }
  return result;
}

std::string Deck::list_options() const {
  std::vector<std::array<std::string, 4>> rows = {{"key", "type", "default", "meaning"}};
  auto const add = [&](DeckOption const& option, std::string const& prefix) {
    std::string meaning = option.meaning;
    if (!option.check.expected.empty()) meaning += fmt::format(" ({})", option.check.expected);
    rows.push_back({prefix + option.key, type_names[option.type],
                    option.initial ? in_toml(*option.initial) : "unset", std::move(meaning)});
  };
  for (auto const& option : options()) add(option, "");
  for (auto const& tables : tables_) {
    rows.push_back({tables.key, "list of tables", "[]", tables.meaning});
    for (auto const& option : tables.example.options()) add(option, tables.key + "[].");
  }
  std::array<std::size_t, 3> widths{};
  for (auto const& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string result;
  for (auto const& row : rows)
    result += fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2],
                          widths[2], row[3]);
  return result;
}

} // namespace prowl
