#include "engine/tensor/call.h"

#include <deque>
#include <map>
#include <mutex>

#include "engine/base/error.h"

namespace heddle::engine {

namespace {

// Process-wide, because plugins keep the numbers in statics of their own.
struct OpNames {
  std::mutex mutex;
  std::map<std::string, std::uint32_t, std::less<>> ids;
  std::deque<std::string> names{""};  // a deque: the texts never move
};

OpNames& op_names() {
  static OpNames names;
  return names;
}

}  // namespace

std::uint32_t op_id(std::string_view name) {
  OpNames& table = op_names();
  const std::lock_guard lock(table.mutex);
  const auto found = table.ids.find(name);
  if (found != table.ids.end()) return found->second;
  const auto id = std::uint32_t(table.names.size());
  table.names.emplace_back(name);
  table.ids.emplace(std::string(name), id);
  return id;
}

const char* op_name(std::uint32_t id) {
  OpNames& table = op_names();
  const std::lock_guard lock(table.mutex);
  return id < table.names.size() ? table.names[id].c_str() : "";
}

}  // namespace heddle::engine

void heddle_ctx::save_state(heddle::engine::Value) {
  throw heddle::engine::Error(heddle::engine::Code::unsupported,
                              "only calls of a workflow's nodes have a state that is saved");
}
