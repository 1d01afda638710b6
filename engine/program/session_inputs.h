// The inputs of a planned session, as each branch sees them. Checked when made; then immutable.
#pragma once

#include <optional>
#include <vector>

#include "engine/program/session_plan.h"

namespace heddle::engine {

class SessionInputs {
 public:
  // Throws invalid_argument for inputs that are missing or unknown, a schedule of another length
  // than the loop, a batch split without a batch. Both arguments are borrowed.
  SessionInputs(const Graph& graph, const SessionSpec& spec);

  const std::vector<SessionBranch>& branches() const { return branches_; }

  // Shape of an input in a branch: the branch's items, where the batch is split. Nothing: not
  // given.
  std::optional<heddle_tensor_info> info(const GraphInput& input, std::uint32_t branch) const;

  // The first branch that sees the very same tensor in this input.
  std::uint32_t first_equal(const GraphInput& input, std::uint32_t branch) const;

  // Items along axis 0 of what is split; 0: nothing has a batch.
  std::int64_t items() const { return items_; }

 private:
  const SessionSpec::Infos& infos(Phase phase, std::uint32_t set) const;
  void check() const;
  bool is_cut(const GraphInput& input, std::uint32_t branch) const;

  const Graph& graph_;
  const SessionSpec& spec_;
  std::int64_t items_ = 0;
  std::vector<SessionBranch> branches_;
};

}  // namespace heddle::engine
