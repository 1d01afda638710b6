// The declaration of a node, as the engine holds it: a plugin's heddle_node_desc, kept alive with
// its library. Immutable but for how long its
// nodes take; any thread.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/port_check.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

class NodeType {
 public:
  // `owner` keeps the plugin's library loaded. Throws invalid_argument, naming the plugin and the
  // fault, for a desc without type or execute, with NULL or repeated port names, or whose size is
  // smaller than the first revision's. Members that a smaller desc lacks read as zero.
  NodeType(const heddle_node_desc* desc, std::string plugin, std::shared_ptr<const void> owner);

  const heddle_node_desc& desc() const { return desc_; }
  std::string_view name() const { return desc_.type; }
  const std::string& plugin() const { return plugin_; }
  // Name, version and the names of the inputs: the part of a cache key that all its nodes share.
  const Hash128& identity() const { return identity_; }
  bool has(std::uint32_t flag) const { return (desc_.flags & flag) != 0; }

  std::uint32_t input_count() const { return desc_.input_count; }
  const heddle_port& input(std::uint32_t i) const { return *desc_.inputs[i]; }
  // What the values of an input are held to.
  const PortCheck& check(std::uint32_t i) const { return checks_[i]; }
  // What judges literals before anything runs; nullptr: nothing does.
  const heddle_validator* validator() const { return desc_.validator; }
  // Whether that looks at the types of links, too, so that nobody else does.
  bool judges_links() const {
    return desc_.validator != nullptr && (desc_.validator->flags & HEDDLE_VALIDATOR_TYPES) != 0;
  }
  std::uint32_t output_count() const { return desc_.output_count; }
  // Whether one of its inputs is a list (HEDDLE_PORT_LIST): then a call gets lists whole.
  bool takes_lists() const { return takes_lists_; }
  bool makes_lists() const { return makes_lists_; }
  // Whether it is told the id of its node (UNIQUE_ID), so that another id is another result.
  bool knows_id() const { return knows_id_; }
  const heddle_port& output(std::uint32_t i) const { return *desc_.outputs[i]; }
  std::uint32_t slot_count() const { return desc_.weight_count; }
  const heddle_slot& slot(std::uint32_t i) const { return *desc_.weights[i]; }

  // Whether its nodes take less than it takes to start a thread, by what took() was told: what
  // they have taken lately, a long one being forgotten by and by. False for a type never run.
  bool is_brief() const { return lately_.load(std::memory_order_relaxed) < kBriefSeconds; }
  void took(double seconds) const {
    const double lately = lately_.load(std::memory_order_relaxed);
    if (seconds > lately || !(lately < 1e9))
      lately_.store(seconds, std::memory_order_relaxed);
    else if (seconds < lately / 4)  // seldom, because many threads read it
      lately_.store(lately / 2, std::memory_order_relaxed);
  }

  std::optional<std::uint32_t> find_input(std::string_view name) const;
  std::optional<std::uint32_t> find_output(std::string_view name) const;
  std::optional<std::uint32_t> find_slot(std::string_view name) const;

 private:
  bool judges(std::string_view input) const;

  heddle_node_desc
      desc_;  // a copy: complete whatever size the plugin's has; the arrays stay the plugin's
  std::string plugin_;
  Hash128 identity_;
  std::vector<PortCheck> checks_;  // by input
  bool takes_lists_ = false, makes_lists_ = false, knows_id_ = false;
  static constexpr double kBriefSeconds = 20e-6;
  mutable std::atomic<double> lately_{std::numeric_limits<double>::infinity()};
  std::shared_ptr<const void> owner_;
};

using NodeTypeRef = std::shared_ptr<const NodeType>;

}  // namespace heddle::engine
