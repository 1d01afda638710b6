// Where the inputs of a flattened workflow get their values from: links are followed through
// reroutes, bypassed nodes, and into and out of subgraphs. Pure; any thread.
#pragma once

#include <deque>

#include "engine/graph/saved_values.h"

namespace heddle::engine {

// A graph at the place where it is used: the root, or a subgraph as one node's.
struct SavedInstance {
  const SavedGraph* graph = nullptr;
  const SavedInstance* parent = nullptr;  // nullptr: the root
  const SavedNode* node = nullptr;        // of the parent's graph
  std::string prefix;                     // of the ids of its nodes: "12:7:"
  std::unordered_map<const SavedNode*, const SavedInstance*> children;

  std::string id_of(const SavedNode& inner) const { return prefix + inner.id; }
};

// What an input gets.
struct SavedSource {
  enum class Kind { nothing, link, value, circle } kind = Kind::nothing;
  std::string node;      // id, of a link
  std::size_t slot = 0;  // of a link
  Json value;
};

class SavedLinks {
 public:
  SavedLinks(const SavedWorkflow& workflow, const SavedValues& values)
      : workflow_(workflow), values_(values) {}

  // What input `input` of a node gets; `nothing`: the node's own widget value counts, if any.
  SavedSource source_of(const SavedInstance& instance, const SavedNode& node,
                        std::size_t input) const;

 private:
  struct Search;

  bool follow_input(Search& search) const;
  bool follow_output(Search& search) const;
  bool enter_subgraph(Search& search, const SavedGraph& definition) const;
  SavedSource promoted_value(const Search& search, std::size_t input) const;
  SavedSource primitive_value(const SavedInstance& instance, const SavedNode& node) const;

  const SavedWorkflow& workflow_;
  const SavedValues& values_;
};

}  // namespace heddle::engine
