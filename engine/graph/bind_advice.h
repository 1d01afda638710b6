// What bind() tells people to do about a fault: where a value of a type could come from, and what a
// misspelt name may have meant. Answers are kept, and guesses stop after a number of them, so that
// a workflow of thousands of faults costs linear time. One bind() owns it; one thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/graph/catalog.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

class BindAdvice {
 public:
  // `types`: of the workflow's nodes, nullptr where unknown. All three have to outlive this object.
  BindAdvice(const Workflow& workflow, const Catalog& catalog,
             const std::vector<NodeTypeRef>& types)
      : workflow_(workflow), catalog_(catalog), types_(types) {}

  // "Link it to '4' output 0 (MODEL)." or "Add a node that gives MODEL: 'UNETLoader'."; always a
  // sentence. `reader`: the node whose input it is, which cannot be linked to itself.
  std::string for_missing(NodeIndex reader, std::string_view wanted);

  // What to do about a link from an output that an input of `reader` does not take: another output
  // of the same node, a class that stands between the two types, or what for_missing() says.
  std::string for_mismatch(NodeIndex reader, const Source& source, const heddle_port& input);

  // What is said of a workflow that has no sink.
  std::string for_no_sink() const;

  // What is said of nodes that wait for one another, after the name of the first.
  std::string for_cycle(const std::vector<NodeIndex>& cycle) const;

  // What is said of a class that is not there.
  std::string for_unknown_class(std::string_view name);

  // " Did you mean 'x'?" or nothing. candidates(): the names that there are; asked only when a
  // guess is made.
  template <class Candidates>
  std::string guess(std::string_view name, Candidates candidates) {
    return guesses_++ < kMostGuesses ? did_you_mean(name, candidates()) : std::string();
  }

 private:
  static constexpr std::size_t kMostGuesses = 32;
  // Where a type could come from: the first few nodes of the workflow, and the classes to add.
  struct Origins {
    std::vector<std::pair<NodeIndex, std::string>> nodes;
    std::string classes;
  };
  const Origins& origins(std::string_view wanted);
  const std::string& converters(std::string_view received, std::string_view wanted);

  const Workflow& workflow_;
  const Catalog& catalog_;
  const std::vector<NodeTypeRef>& types_;
  std::map<std::string, Origins, std::less<>> origins_;
  std::map<std::pair<std::string, std::string>, std::string> converters_;
  std::size_t guesses_ = 0;
};

// Names of a type's inputs, but for hidden ones, and of its outputs. They live as long as the type.
std::vector<std::string_view> input_names(const NodeType& type);
std::vector<std::string_view> output_names(const NodeType& type);

// What to give to a widget without a default: it chooses among names.
std::string advice_for_choosing(const heddle_widget& widget);

// "0 IMAGE, 1 MASK": numbers and names of a type's outputs.
std::string outputs_of(const NodeType& type);

}  // namespace heddle::engine
