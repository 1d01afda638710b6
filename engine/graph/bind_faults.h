// What bind() finds wrong, in the words that people read: where, what, what to do. One bind() owns
// it; one thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/prompt_verdict.h"
#include "engine/graph/workflow.h"

namespace heddle::engine {

// What is wrong with an array that is no link [node, output], and what to write.
std::string bad_link_text(const Json& array);

class BindFaults {
 public:
  // One input of one node, for messages.
  struct Place {
    NodeIndex node;
    const WorkflowInput* input;  // nullptr: not given
    std::string_view name;
  };

  // The workflow has to outlive this object.
  explicit BindFaults(const Workflow& workflow) : workflow_(workflow) {}

  // "scene.json:3:7: "; a line of 0: only the name.
  std::string at(std::uint32_t line, std::uint32_t column) const;
  // "'4' (ImageScale)".
  std::string shown(NodeIndex i) const;

  // `what` follows "node ", or "node '4' (ImageScale), input 'width': "; `error`: as ComfyUI's
  // server says it (prompt_errors.h), or null.
  void report(NodeIndex i, std::string_view what, Json error,
              Fault::Reach reach = Fault::Reach::node);
  void report(const Place& place, std::string_view what, Json error,
              Problem::Severity severity = Problem::Severity::error);
  // Of an error that ComfyUI's server has no type for.
  void report_other(const Place& place, std::string_view what);
  // Of the whole workflow.
  void report_whole(std::string_view what);

  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  Fault& last() { return faults_.back(); }
  std::vector<Fault> take() { return std::move(faults_); }

 private:
  const Workflow& workflow_;
  std::vector<Fault> faults_;
};

}  // namespace heddle::engine
