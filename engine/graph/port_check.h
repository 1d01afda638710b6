// What a node may rely on of the value of an input: the kind, the range and the choices that its
// port declares, and that numbers are finite (heddle/abi/node.h). Holds for every value, whoever
// made it: a literal, a link, a program that embeds the engine. Immutable; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/tensor/value.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

class Catalog;

// Of a value that an input does not take; invalid_argument.
class RefusedValue final : public Error {
 public:
  explicit RefusedValue(const std::string& message) : Error(Code::invalid_argument, message) {}
};

class PortCheck {
 public:
  // `is_judged`: a validator of the node looks at ranges and choices (heddle/abi/validate.h).
  explicit PortCheck(const heddle_port& port, bool is_judged = false);

  bool is_judged() const { return is_judged_; }

  // Whether there is any value that it refuses.
  bool is_needed() const { return kinds_ != kAllKinds || is_finite_ || has_range_; }

  // What is wrong with a value, and what to do: a sentence or two that follow "input 'x': ". The
  // catalog knows the choices that plugins bring; nullptr: only the port's own ones are known, and
  // a port that has others takes any name. Names of files and folders are left to whoever opens
  // them.
  std::optional<std::string> fault_of(const heddle_value& value, const Catalog* catalog) const {
    if (const auto* number = std::get_if<std::int64_t>(&value.content);
        number != nullptr && *number >= least_ && *number <= most_)
      return std::nullopt;  // what most values are, and the executor asks for each
    return find_fault(value, catalog);
  }
  // Throws RefusedValue: "input 'steps': 0 is below the least value 1. Give ...".
  void check(const heddle_value& value, const Catalog* catalog) const {
    if (std::optional<std::string> fault = fault_of(value, catalog)) refuse(*fault);
  }

 private:
  static constexpr std::uint32_t kAllKinds = ~0u;

  std::optional<std::string> find_fault(const heddle_value& value, const Catalog* catalog) const;
  std::string kind_fault(const heddle_value& value) const;
  std::string number_fault(const heddle_value& value, bool below) const;
  std::optional<std::string> choice_fault(const std::string& name, const Catalog* catalog) const;
  [[noreturn]] void refuse(const std::string& fault) const;

  const heddle_port* port_;
  std::uint32_t kinds_ = kAllKinds;  // a bit for each heddle_kind
  bool is_judged_ = false;
  bool is_finite_ = false;
  bool has_range_ = false;
  double least_number_ = 0, most_number_ = 0;
  std::int64_t least_, most_;  // integers of these need no further look
  std::uint64_t most_unsigned_;
};

// Says that a name is none of the choices, and which ones there are.
std::string not_a_choice(std::string_view name, const std::vector<std::string>& choices);
// A dozen of the names, and how many there are besides.
std::string listed(const std::vector<std::string>& names);

}  // namespace heddle::engine
