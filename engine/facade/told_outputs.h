// The debug mode HEDDLE_CHECK_INFER=1, for authors of nodes: what infer() told of a node's outputs
// is held against what execute() made of them. A wrong answer of infer() is else seen as a plan
// that takes more memory or time than it says, or as a refusal that nobody understands.
#pragma once

#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/graph/graph.h"
#include "engine/program/infer.h"
#include "engine/run/step_observer.h"

namespace heddle {

// Whether the environment asks for it.
bool checks_infer();

// Of one run. What nothing was told of is not looked at: infer() may say less than there is. Nor
// are nodes that came while the run was under way, outputs of the cache, and blockers.
class ToldOutputs final : public engine::StepObserver {
 public:
  // Both have to outlive it.
  ToldOutputs(const engine::Graph& graph, const engine::Inferred& inferred)
      : graph_(graph), inferred_(inferred) {}
  // Throws internal, with a line for each difference; of a run that is over.
  void check() const;

  void began(engine::NodeIndex, std::string_view) override {}
  void done(engine::NodeIndex node, std::span<const engine::Value> outputs) override;
  void read(engine::NodeIndex, const engine::Source&, std::uint32_t) override {}
  void sent(const engine::Source&, std::uint32_t, std::uint32_t, std::uint64_t,
            const engine::Value&) override {}
  void release(const engine::Source&, const engine::Value&) override {}
  void release_copy(const engine::Source&, std::uint32_t, const engine::Value&) override {}

 private:
  const engine::Graph& graph_;
  const engine::Inferred& inferred_;
  engine::Guarded<std::vector<std::string>> differences_;
};

}  // namespace heddle
