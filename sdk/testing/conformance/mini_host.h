// MiniHost: as much of the engine's side of the ABI as a device plugin needs: statuses, a log,
// values enough for options, and the registry of the plugins that are loaded. Options are a flat
// record of whole numbers and texts. Owned by the test; thread-safe once built.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "heddle/abi/device.h"

namespace heddle::conformance {

using OptionValue = std::variant<std::int64_t, std::string>;
using OptionMap = std::map<std::string, OptionValue>;

// The host table. Static: plugins may keep it.
const heddle_host* mini_host();

// What is in the registry from now on, and no longer. Not while a device is open.
void add_to_registry(const heddle_plugin* plugin);
void remove_from_registry(const heddle_plugin* plugin);

// A record made of options; borrowed from the object, which must outlive its use.
class OptionRecord {
 public:
  explicit OptionRecord(const OptionMap& options);
  ~OptionRecord();
  OptionRecord(const OptionRecord&) = delete;
  OptionRecord& operator=(const OptionRecord&) = delete;
  const heddle_value* value() const { return value_; }

 private:
  heddle_value* value_;
};

// The code and text of a status, which is freed. REQUIRES: status is not NULL.
struct Reason {
  heddle_code code;
  std::string message;
};
Reason take(heddle_status* status);

// Throws std::runtime_error with the status's message unless it is NULL.
void check(heddle_status* status);

}  // namespace heddle::conformance
