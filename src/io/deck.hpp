/// Input decks: an app declares every option once; TOML files and command-line overrides fill the variables.
///
///     Deck deck;
///     deck.option("optimizer.period", options.period, "steps from one refresh to the next", at_least(1));
///     deck.read_file("inputs/emoji.toml");
///     deck.set("optimizer.period=3");
///
/// Every error is an Error of the form "FILE:LINE: KEY: VALUE, expected ..." or "command line: KEY: VALUE,
/// expected ..."; an unknown key names the nearest known one. Of several errors in a file the first by line
/// is reported. After an error the variables hold a mixture of old and new values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace prowl {

/// The types an option may have. A number without a point is accepted for a double; doubles are finite.
using DeckValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                               std::vector<std::string>>;

/// What a value must satisfy beyond its type; `expected` completes "expected <type>, ..." in an error.
struct DeckCheck {
  std::string expected;
  std::function<bool(DeckValue const&)> holds; ///< empty: anything
};

/// Ranges hold for a number, or for each number of a list.
DeckCheck at_least(double bound);
DeckCheck above(double bound);
DeckCheck between(double low, double high);       ///< [low, high]
DeckCheck from_to_below(double low, double high); ///< [low, high)
DeckCheck one_of(std::vector<std::string> choices);
DeckCheck not_empty();

namespace detail {

struct DeckOption {
  std::string key;
  std::size_t type; ///< index in DeckValue
  std::string meaning;
  DeckCheck check;
  std::function<std::optional<DeckValue>()> get; ///< nothing: unset
  std::function<void(DeckValue const&)> set;
  std::optional<DeckValue> initial; ///< the default
};

template <class T>
struct DeckType {
  using type = T;
};
template <class T>
struct DeckType<std::optional<T>> {
  using type = T;
};

} // namespace detail

/// A set of declared options.
class DeckSchema {
public:
  /// `variable` outlives the schema, and its value now is the default. An std::optional is unset by default.
  /// `meaning` is one line, with the unit. T is one of DeckValue's types or an std::optional of one.
  template <class T>
  void option(std::string key, T& variable, std::string meaning, DeckCheck check = {});

  std::vector<detail::DeckOption> const& options() const { return options_; }

private:
  void add(detail::DeckOption option);

  std::vector<detail::DeckOption> options_;
};

namespace detail {

/// A list of tables whose rows have one schema.
struct DeckTables {
  std::string key;
  std::string meaning;
  DeckSchema example; ///< bound to a default row
  std::function<void()> clear;
  std::function<DeckSchema()> append; ///< bound to the new row until the next append
  std::function<std::vector<DeckSchema>()> rows;
};

} // namespace detail

class Deck : public DeckSchema {
public:
  Deck() = default;
  Deck(Deck const&) = delete;
  Deck& operator=(Deck const&) = delete;

  /// Declares [[key]]; `declare` declares a row's options, by names without `key`. A file or an override that
  /// has the key replaces all rows. An option whose default does not satisfy its check must be given in every
  /// row.
  template <class Row>
  void tables(std::string key, std::vector<Row>& rows, std::string meaning,
              std::function<void(DeckSchema&, Row&)> declare);

  void read_file(std::string const& path);
  /// TOML text, with the name to use for it in errors.
  void read(std::string_view text, std::string const& name);
  /// "key=value": the value in TOML; a string needs no quotes.
  void set(std::string_view assignment);

  /// "FILE:LINE", "command line", or "default": where the value of `key` comes from.
  std::string origin(std::string const& key) const;
  /// Throws the Error of a value that the app finds impossible: "ORIGIN: KEY: VALUE, expected <expected>".
  [[noreturn]] void refuse(std::string const& key, std::string const& expected) const;

  /// The complete deck in TOML: reading it gives the same values. Meanings are comments.
  std::string resolved() const;
  /// Every key that has a value, and the value in TOML; keys of tables as "optimizer.group[0].rate".
  std::map<std::string, std::string> values() const;
  /// An aligned table: key, type, default, meaning. Keys in a list of tables are shown as
  /// "optimizer.group[].rate".
  std::string list_options() const;

private:
  friend class DeckReader;
  void add_tables(detail::DeckTables tables);

  std::vector<detail::DeckTables> tables_;
  std::map<std::string, std::string> origins_;
};

// ---------------------------------------------------------------------------------------------------------------------

template <class T>
void DeckSchema::option(std::string key, T& variable, std::string meaning, DeckCheck check) {
  using Stored = typename detail::DeckType<T>::type;
  auto const get = [&variable]() -> std::optional<DeckValue> {
    if constexpr (std::is_same_v<T, Stored>)
      return DeckValue(std::in_place_type<Stored>, variable);
    else if (variable)
      return DeckValue(std::in_place_type<Stored>, *variable);
    else
      return std::nullopt;
  };
  auto const set = [&variable](DeckValue const& value) { variable = std::get<Stored>(value); };
  add({std::move(key), DeckValue(Stored{}).index(), std::move(meaning), std::move(check), get, set, get()});
}

template <class Row>
void Deck::tables(std::string key, std::vector<Row>& rows, std::string meaning,
                  std::function<void(DeckSchema&, Row&)> declare) {
  auto const bind = [declare](Row& row) {
    DeckSchema schema;
    declare(schema, row);
    return schema;
  };
  Row example{};
  add_tables({std::move(key), std::move(meaning), bind(example), [&rows] { rows.clear(); },
              [&rows, bind] { return bind(rows.emplace_back()); },
              [&rows, bind] {
                std::vector<DeckSchema> schemas;
                for (auto& row : rows) schemas.push_back(bind(row));
                return schemas;
              }});
}

} // namespace prowl
