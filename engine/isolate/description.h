// What a plugin's nodes are, as a message: everything of heddle_node_desc but its functions.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/isolate/bytes.h"
#include "heddle/abi/node.h"

namespace heddle::engine {

// Which functions a node has, besides execute().
struct NodeFunctions {
  bool has_instances = false, needs = false, fingerprints = false, infers = false,
       validates = false;
};

// Reads and keeps descs that came in a message: `desc` has no functions, those are its reader's to
// set. What it points to lives as long as this. Not to be moved.
class DescribedNode {
 public:
  explicit DescribedNode(BytesReader& from);
  DescribedNode(const DescribedNode&) = delete;

  heddle_node_desc desc{};
  heddle_validator validator{};  // without its function; where functions.validates
  NodeFunctions functions;

 private:
  const char* text(BytesReader& from);  // nullptr, too
  const char* const* texts(BytesReader& from);
  const heddle_port* const* ports(BytesReader& from, std::uint32_t& count);

  std::deque<std::string> texts_;
  std::deque<std::vector<const char*>> lists_;
  std::deque<heddle_widget> widgets_;
  std::deque<heddle_port> ports_;
  std::deque<std::vector<const heddle_port*>> port_lists_;
};

void write_node(BytesWriter& to, const heddle_node_desc& desc);

}  // namespace heddle::engine
