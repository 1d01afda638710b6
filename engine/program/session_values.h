// Where every value of a session is while it is planned: where it was made, whole or in parts, and
// where it has been brought. Whoever asks for a value at a place gets it there, with the transfer
// it takes. For plan_session() alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/program/session_builder.h"
#include "engine/program/session_inputs.h"

namespace heddle::core {

// Where the tokens of a value are: its last axis but one. Throws invalid_argument where there is
// none.
std::uint32_t token_axis(const heddle_tensor_info& info);

class SessionValues {
 public:
  // A value whose tokens are divided: a part on each place of the group.
  struct Divided {
    std::vector<Operand> parts;
    std::vector<std::int64_t> counts;
  };

  // The arguments are borrowed. `rates`: of the graph's nodes.
  SessionValues(const Graph& graph, const SessionSpec& spec, const SessionInputs& inputs,
                const std::vector<Rate>& rates, SessionBuilder& builder)
      : graph_(graph), spec_(spec), inputs_(inputs), rates_(rates), builder_(builder) {}

  Rate rate_of(const Source& source) const;

  // Where a place can read it; nothing for an optional input that was not given.
  std::optional<Operand> value_at(Source source, std::uint32_t lane, std::uint32_t place);
  // The same for a reader of the current phase: a step reads one row of a scheduled value.
  std::optional<Operand> read_at(Source source, std::uint32_t lane, std::uint32_t place);
  // A shape is known in every phase, so the value itself is not waited for, not moved and not kept.
  std::optional<Operand> shape_of(Source source, std::uint32_t lane);

  // How many tokens each of a group has; nothing: every one has it whole.
  std::optional<std::vector<std::int64_t>> token_counts(Source source, std::uint32_t lane);
  // The tokens of one of a group, at its place.
  Operand share_at(const Source& source, std::uint32_t lane, std::uint32_t rank,
                   const std::vector<std::int64_t>& counts);
  // Whether it is one of those.
  bool is_share(const Source& source, std::uint32_t lane, std::uint32_t rank) const;
  // One part of a value to another place: whoever puts the value together there shares it.
  std::uint32_t send_part(const Source& source, std::uint32_t lane, std::uint32_t rank,
                          const Operand& part, std::uint32_t place, std::size_t position);

  // What a block has made, and that it is over. hand_on(): it gives `held` unchanged, which goes by
  // the name under which it was made. add_replica(): another of a group has made it, too.
  void add(const Source& made, std::uint32_t lane, const Operand& where);
  void add_replica(const Source& made, std::uint32_t lane, std::uint32_t place,
                   const Operand& where);
  void add_divided(const Source& made, std::uint32_t lane, Divided divided);
  void hand_on(const Source& made, std::uint32_t lane, const Source& held);
  void end_block(NodeIndex n, std::uint32_t lane);

 private:
  using ValueKey = std::tuple<NodeIndex, std::uint32_t, std::uint32_t>;  // node, port, lane
  struct Known {
    std::optional<Operand> origin;  // where it is made, or put together, whole
    std::optional<Divided> divided;
    std::map<std::uint32_t, Operand> replicas;        // by place
    std::map<std::uint32_t, Operand> shares;          // by rank: of what is whole elsewhere
    std::map<std::uint32_t, Operand> slices;          // by place: the row of the step
    std::map<std::uint32_t, std::uint32_t> arrivals;  // by place: transfers
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
        parts;                            // by rank of a part and place: transfers
    std::optional<std::size_t> gathered;  // actions of its phase up to where it was put together
  };

  Source maker_of(const Source& source, std::uint32_t lane) const;
  Known& known(const Source& source, std::uint32_t lane);
  const Known* find(const Source& source, std::uint32_t lane) const;
  bool is_external(const Source& source) const;
  std::optional<Operand> external_at(const Source& source, std::uint32_t lane, std::uint32_t place);
  std::optional<Operand> origin(const Source& source, std::uint32_t lane);
  void gather(const Source& source, std::uint32_t lane);
  std::size_t made_by(const Source& source, std::uint32_t lane);

  const Graph& graph_;
  const SessionSpec& spec_;
  const SessionInputs& inputs_;
  const std::vector<Rate>& rates_;
  SessionBuilder& builder_;
  std::map<ValueKey, Source> handed_on_;
  std::map<ValueKey, Known> known_;  // by the names under which values were made
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Operand>
      externals_;  // input, lane, place
  std::map<std::pair<NodeIndex, std::uint32_t>, std::size_t>
      block_ends_;  // node, lane: actions of its phase up to its end
};

}  // namespace heddle::core
