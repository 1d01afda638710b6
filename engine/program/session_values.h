// Where every value of a session is while it is planned: where it was made, whole or in parts, and
// where it has been brought. Whoever asks for a value at a device slot gets it there, with the
// transfer it takes. For plan_session() alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/program/session_builder.h"
#include "engine/program/session_inputs.h"

namespace heddle::engine {

// Where the tokens of a value are: its last axis but one. Throws invalid_argument where there is
// none.
std::uint32_t token_axis(const heddle_tensor_info& info);

class SessionValues {
 public:
  // A value whose tokens are divided: a part on each device slot of the group.
  struct Sharded {
    std::vector<Operand> parts;
    std::vector<std::int64_t> counts;
  };

  // The arguments are borrowed. `rates`: of the graph's nodes.
  SessionValues(const Graph& graph, const SessionSpec& spec, const SessionInputs& inputs,
                const std::vector<Phase>& phases, SessionBuilder& builder)
      : graph_(graph), spec_(spec), inputs_(inputs), phases_(phases), builder_(builder) {}

  Phase phase_of(const Source& source) const;

  // Where a device slot can read it; nothing for an optional input that was not given.
  std::optional<Operand> value_at(Source source, std::uint32_t branch, std::uint32_t device_slot);
  // The same for a reader of the current phase: a step reads one row of a precomputed value.
  std::optional<Operand> read_at(Source source, std::uint32_t branch, std::uint32_t device_slot);
  // A shape is known in every phase, so the value itself is not waited for, not moved and not kept.
  std::optional<Operand> shape_of(Source source, std::uint32_t branch);

  // How many tokens each of a group has; nothing: every one has it whole.
  std::optional<std::vector<std::int64_t>> token_counts(Source source, std::uint32_t branch);
  // The tokens of one of a group, at its device slot.
  Operand shard_at(const Source& source, std::uint32_t branch, std::uint32_t rank,
                   const std::vector<std::int64_t>& counts);
  // Whether it is one of those.
  bool is_share(const Source& source, std::uint32_t branch, std::uint32_t rank) const;
  // One part of a value to another device slot: whoever puts the value together there shares it.
  std::uint32_t send_part(const Source& source, std::uint32_t branch, std::uint32_t rank,
                          const Operand& part, std::uint32_t device_slot, std::size_t position);

  // What a block has made, and that it is over. hand_on(): it gives `held` unchanged, which goes by
  // the name under which it was made. add_replica(): another of a group has made it, too.
  void add(const Source& made, std::uint32_t branch, const Operand& where);
  void add_replica(const Source& made, std::uint32_t branch, std::uint32_t device_slot,
                   const Operand& where);
  void add_divided(const Source& made, std::uint32_t branch, Sharded sharded);
  void hand_on(const Source& made, std::uint32_t branch, const Source& held);
  void end_block(NodeIndex n, std::uint32_t branch);

 private:
  using ValueKey = std::tuple<NodeIndex, std::uint32_t, std::uint32_t>;  // node, port, branch
  struct Known {
    std::optional<Operand> origin;  // where it is made, or put together, whole
    std::optional<Sharded> sharded;
    std::map<std::uint32_t, Operand> replicas;        // by device slot
    std::map<std::uint32_t, Operand> shards;          // by rank: of what is whole elsewhere
    std::map<std::uint32_t, Operand> slices;          // by device slot: the row of the step
    std::map<std::uint32_t, std::uint32_t> arrivals;  // by device slot: transfers
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
        parts;                            // by rank of a part and device slot: transfers
    std::optional<std::size_t> gathered;  // actions of its phase up to where it was put together
  };

  Source maker_of(const Source& source, std::uint32_t branch) const;
  Known& known(const Source& source, std::uint32_t branch);
  const Known* find(const Source& source, std::uint32_t branch) const;
  bool is_external(const Source& source) const;
  std::optional<Operand> external_at(const Source& source, std::uint32_t branch,
                                     std::uint32_t device_slot);
  std::optional<Operand> origin(const Source& source, std::uint32_t branch);
  void gather(const Source& source, std::uint32_t branch);
  std::size_t made_by(const Source& source, std::uint32_t branch);
  std::uint32_t first_of_group(std::uint32_t branch) const {
    return inputs_.branches()[branch].device_slot;
  }

  const Graph& graph_;
  const SessionSpec& spec_;
  const SessionInputs& inputs_;
  const std::vector<Phase>& phases_;
  SessionBuilder& builder_;
  std::map<ValueKey, Source> handed_on_;
  std::map<ValueKey, Known> known_;  // by the names under which values were made
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Operand>
      externals_;  // input, branch, device slot
  std::map<std::pair<NodeIndex, std::uint32_t>, std::size_t>
      block_ends_;  // node, branch: actions of its phase up to its end
};

}  // namespace heddle::engine
