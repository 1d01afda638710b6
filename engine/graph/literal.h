// A literal of a workflow on its way to an input: converted by ComfyUI's rules to the declared
// type, then checked against what the port declares. Pure; any thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/catalog.h"
#include "engine/graph/port_check.h"
#include "engine/graph/python_text.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

// What is wrong with a literal and what to do: a sentence or two that follow "node 'x', input 'y':
// ".
struct LiteralFault {
  std::string text;
  std::string lacks = {};  // the file that is not there (lacking.h), or empty
};
using Literal = std::variant<Value, LiteralFault>;

// Whether an input of this port can hold a literal at all: it has a widget, or a type that JSON can
// say (INT, FLOAT, STRING, BOOLEAN, COMBO, "*").
bool takes_literals(const heddle_port& port);

// Converts and checks. INT cuts a fraction off and reads text, FLOAT reads text, STRING takes
// Python's text of anything, BOOLEAN takes the truth of anything; every other type takes the value
// as it is. One object per bind(): the lists of files are read once.
class LiteralReader {
 public:
  explicit LiteralReader(const Catalog& catalog) : catalog_(catalog) {}

  Literal read(const heddle_port& port, const PortCheck& check, const Json& literal);

  // Of a text for a FILE or FOLDER input: that no such file is there, with where it was looked for.
  // Nothing: it is, nobody knows the folders, or the input names none.
  std::optional<LiteralFault> fault_of_file(const heddle_port& port, const heddle_value& value);
  // True also where nobody knows the folders.
  bool has_file(const char* folder, const std::string& name);

  // What an input takes that is not given: the widget's default. Nothing without a widget, and for
  // a FILE or FOLDER without a default name; a CHOICE without one takes its first.
  // All inputs of a port share one value.
  const std::optional<Literal>& default_of(const heddle_port& port, const PortCheck& check);

 private:
  std::optional<Literal> make_default(const heddle_port& port, const PortCheck& check);
  const std::vector<std::string>& choices(const heddle_widget& widget);
  Literal choose(const heddle_widget& widget, const Json& literal);
  Literal choose_file(const heddle_widget& widget, const std::string& text);

  const Catalog& catalog_;
  std::map<const heddle_widget*, std::vector<std::string>> choices_;
  boost::unordered_flat_map<const heddle_port*, std::optional<Literal>> defaults_;
};

// int(literal) and float(literal) of Python, within 64 bits; nothing where these throw.
std::optional<WholeNumber> literal_int(const Json& literal);
std::optional<double> literal_float(const Json& literal);

// A literal for messages: short, as JSON.
std::string shown_literal(const Json& literal);

}  // namespace heddle::engine
