// How plan_session() works: walks the blocks phase by phase, keeps where every value is, and writes down what is enqueued. Blocks on
// one device stand in session_plan.cpp, blocks that a group of devices divides in session_group.cpp, and what its members exchange in
// session_collectives.cpp. For those files.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "engine/program/recorder.h"
#include "engine/program/session_inputs.h"
#include "engine/program/session_memory.h"
#include "engine/program/session_plan.h"

namespace heddle::core {

// What is left to do of a collective whose copies have begun, by rank; and its results.
struct Collective {
  struct Rows {
    std::uint32_t axis = 0;
    std::int64_t begin = 0, count = 0;
  };
  struct Out {
    Operand whole;
    std::optional<Rows> kept;  // that the block writes itself
  };
  std::uint32_t begun = 0;  // as in now()
  bool all_hear_of_all = true;
  std::vector<Out> out;
  std::vector<std::vector<std::function<void()>>> rest;
};

class SessionPlanner {
 public:
  SessionPlanner(const Graph& graph, const SessionSpec& spec, const ChooseKernel& choose);
  SessionPlan run();

 private:
  using ValueKey = std::tuple<NodeIndex, std::uint32_t, std::uint32_t>;  // node, port, lane
  // What a block hands on unchanged goes by the name under which it was made.
  Source maker_of(const Source& source, std::uint32_t lane) const {
    const auto held = handed_on_.find({source.node, source.port, lane});
    return held != handed_on_.end() ? held->second : source;
  }
  ValueKey key(const Source& source, std::uint32_t lane) const {
    const Source maker = maker_of(source, lane);
    return {maker.node, maker.port, lane};
  }

  // A value whose tokens are divided: a part on each place of the group.
  struct Divided {
    std::vector<Operand> parts;
    std::vector<std::int64_t> counts;
  };
  // One recording of a block, on its place.
  struct Member {
    std::uint32_t place = 0;
    BlockSpec block;
    std::vector<std::optional<Operand>> inputs;
    BlockProgram program;
    std::vector<Operand> base;  // of each of the program's storages: where it is in the plan
  };

  Rate rate_of(const Source& source) const;
  std::uint32_t place_of(NodeIndex n, std::uint32_t lane) const;
  bool is_external(const Source& source) const;

  // What is enqueued next, for lifetimes.
  std::uint32_t now() const { return std::uint32_t(plan_.ops.size() + 1); }
  void act(SessionAction::Kind kind, std::size_t index) { plan_.phases[int(phase_)].push_back({kind, std::uint32_t(index)}); }
  std::int32_t add_storage(SessionStorage storage);
  std::int32_t add_scratch(std::uint32_t place, std::uint64_t bytes);
  std::int32_t weight(NodeIndex n, std::uint32_t slot, std::uint32_t place, std::uint32_t member);

  std::optional<Operand> external_at(const Source& source, std::uint32_t lane, std::uint32_t place);
  std::optional<Operand> origin(const Source& source, std::uint32_t lane);
  std::optional<Operand> value_at(Source source, std::uint32_t lane, std::uint32_t place);
  std::optional<Operand> read_at(Source source, std::uint32_t lane, std::uint32_t place);
  std::optional<Operand> shape_of(Source source, std::uint32_t lane);
  std::uint32_t send(Source source, std::uint32_t lane, const Operand& value, std::uint32_t place, Rate rate, std::size_t position);
  PlannedTransfer transfer_to(Source source, std::uint32_t lane, const Operand& value, std::uint32_t place, Rate rate, std::uint32_t from_op);
  std::size_t made_by(const Source& source, std::uint32_t lane) const;
  void await(std::uint32_t transfer, Rate rate);

  void plan_block(NodeIndex n, std::uint32_t lane);
  void read_inputs(Member& member, NodeIndex n, std::uint32_t lane);
  void begin(Member& member, NodeIndex n, std::uint32_t lane, std::uint32_t rank);
  void emit(const Member& member, NodeIndex n, std::uint32_t lane, const ProgramOp& op);
  void launch(NodeIndex n, std::uint32_t lane, std::uint32_t place, std::uint32_t op, std::vector<Operand> in, std::vector<Operand> out,
              std::vector<std::byte> attrs = {});
  SlotFactors factors(NodeIndex n, std::uint32_t place, std::uint32_t rank) const;
  Operand global(const Member& member, NodeIndex n, const Operand& local) const;
  void choose_kernel(PlannedOp& planned, std::uint32_t at);
  void insert_transfers();

  // Groups.
  bool is_divided(NodeIndex n, std::uint32_t lane);
  void plan_group(NodeIndex n, std::uint32_t lane);
  std::optional<std::vector<std::int64_t>> token_counts(Source source, std::uint32_t lane);
  Operand share_at(const Source& source, std::uint32_t lane, std::uint32_t rank, const std::vector<std::int64_t>& counts);
  std::uint32_t send_part(const Source& source, std::uint32_t lane, std::uint32_t rank, const Operand& part, std::uint32_t place, std::size_t position);
  const Source* find_input(const Member& member, NodeIndex n, const Operand& operand) const;
  void gather(const Source& source, std::uint32_t lane);
  bool are_peers(std::uint32_t a, std::uint32_t b) const {
    const SessionSpec::Place &x = spec_.places[a], &y = spec_.places[b];
    return x.peers != 0 && x.peers == y.peers && x.memory != y.memory;
  }
  void collective(std::vector<Member>& members, NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops);
  void gather_or_reduce(std::vector<Member>& members, NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops,
                        const std::vector<Operand>& in, const std::vector<Operand>& out);
  void exchange(NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops, const std::vector<Operand>& in,
                const std::vector<Operand>& out);
  std::uint32_t give(const Source& source, std::uint32_t lane, const Operand& part, std::uint32_t to, std::size_t position);
  std::uint32_t give_into(const Source& source, std::uint32_t lane, const Operand& part, const Operand& dest, std::size_t position);
  std::uint32_t add_given(const Operand& given, PlannedTransfer transfer, std::size_t position);
  bool waits_for_collective(const Member& member, NodeIndex n, const ProgramOp& op) const;
  void finish_collective(std::uint32_t rank);
  void finish_collective();

  const Graph& graph_;
  const SessionSpec& spec_;
  const ChooseKernel& choose_;
  const SessionInputs inputs_;
  const std::vector<Rate> rates_;
  SessionPlan plan_;
  Rate phase_ = Rate::constant;
  std::vector<StorageUse> uses_;  // by storage
  // Of the collectives in which everybody heard of everybody: where the last one began (as in now(); 0: none yet), what was given in
  // it, and what is given since.
  std::uint32_t last_collective_ = 0;
  std::vector<std::int32_t> given_before_, given_;
  std::optional<Collective> under_way_;
  std::map<ValueKey, Source> handed_on_;
  std::map<ValueKey, Operand> origins_;
  std::map<ValueKey, Divided> divided_;
  std::map<std::pair<ValueKey, std::uint32_t>, Operand> replicas_;                         // value, place: what each member of a group has made
  std::map<std::pair<ValueKey, std::uint32_t>, Operand> shares_;                           // value, rank: a part of what is whole elsewhere
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Operand> externals_;  // input, lane, place
  std::map<std::pair<ValueKey, std::uint32_t>, std::uint32_t> arrivals_;                  // value, place: transfer
  std::map<std::tuple<ValueKey, std::uint32_t, std::uint32_t>, std::uint32_t> parts_;     // value, rank of a part, place: transfer
  std::map<std::pair<ValueKey, std::uint32_t>, Operand> slices_;
  std::set<std::uint32_t> awaited_;                                                // transfers
  std::map<std::pair<NodeIndex, std::uint32_t>, std::size_t> block_ends_;          // node, lane: actions of its phase up to its end
  std::map<ValueKey, std::size_t> gathered_;                                       // actions of its phase up to where it was put together
  std::array<std::vector<std::pair<std::size_t, std::uint32_t>>, 3> sent_;         // by phase: actions before, transfer
  std::map<std::tuple<NodeIndex, std::uint32_t, std::uint32_t, std::uint32_t>, std::int32_t> weights_;
};

// Rows [begin, begin + count) of an operand along an axis.
Operand part_of(const Operand& whole, std::uint32_t axis, std::int64_t begin, std::int64_t count);

// Row-major, whatever it was.
heddle_tensor_info dense(heddle_tensor_info info, const char* what);

}  // namespace heddle::core
