// Blocks that several devices divide: one recording for each member of the group, in step with the
// others.
#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/session_planner.h"
#include "engine/program/workload.h"
#include "engine/tensor/call.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

constexpr std::int64_t kLeastSide = 256;  // of a weight that is worth dividing

bool has_flag(const Node& node, std::uint32_t input, std::uint32_t flag) {
  return (node.type->input(input).flags & flag) != 0;
}

bool is_collective(std::uint32_t op) {
  static const std::uint32_t gather = op_id(HEDDLE_OP_ALL_GATHER),
                             reduce = op_id(HEDDLE_OP_ALL_REDUCE),
                             exchange = op_id(HEDDLE_OP_ALL_TO_ALL);
  return op == gather || op == reduce || op == exchange;
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts, std::size_t first) {
  return std::accumulate(counts.begin(), counts.begin() + std::ptrdiff_t(first), std::int64_t(0));
}

}  // namespace

bool SessionPlanner::is_divided(NodeIndex n, std::uint32_t lane) {
  const CallPlacement& placement = spec_.placement;
  if (placement.devices.size() < 2 || builder_.phase() != Rate::step) return false;
  if (placement.parallel == ParallelMode::sequence)
    return has_divided_tokens(graph_.nodes[n], lane);
  return placement.parallel == ParallelMode::tensor && has_divided_rows(n);
}

bool SessionPlanner::has_divided_tokens(const Node& node, std::uint32_t lane) {
  bool any = false;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
    if (!values_.token_counts(*link, lane)) return false;
    any = true;
  }
  return any;
}

bool SessionPlanner::has_divided_rows(NodeIndex n) const {
  const Node& node = graph_.nodes[n];
  if (node.shards.empty() || !spec_.weight) return false;
  bool any = false;
  for (std::uint32_t slot = 0; slot < node.shards.size(); ++slot) {
    const WeightShard& shard = node.shards[slot];
    if (shard.axis < 0) continue;
    const auto whole = spec_.weight(0, n, slot, kWholeWeight);
    if (!whole) continue;
    if (whole->rank == 2 && (whole->shape[0] < kLeastSide || whole->shape[1] < kLeastSide))
      return false;
    if (cuts_blocks(shard, *whole)) return false;
    for (const WeightShard::Segment& s : shard.segments)
      if (std::ranges::any_of(divide(s.length / s.unit, spec_.placement.shares),
                              [](std::int64_t count) { return count <= 0; }))
        return false;
    any = any || whole->rank == 2;
  }
  return any;
}

void SessionPlanner::plan_group(NodeIndex n, std::uint32_t lane) {
  const auto count = std::uint32_t(spec_.placement.devices.size());
  const bool by_tokens = spec_.placement.parallel == ParallelMode::sequence;
  std::vector<PlacedBlock> members;
  for (std::uint32_t rank = 0; rank < count; ++rank) members.push_back(member(n, lane, rank));
  for (std::uint32_t rank = 0; rank < count; ++rank)
    begin(members[rank], n, lane, by_tokens ? kWholeWeight : rank);
  emit_in_step(members, n, lane);
  add_results(members, n, lane);
  values_.end_block(n, lane);
}

// One of the group, with its inputs.
PlacedBlock SessionPlanner::member(NodeIndex n, std::uint32_t lane, std::uint32_t rank) {
  const Node& node = graph_.nodes[n];
  const bool by_tokens = spec_.placement.parallel == ParallelMode::sequence;
  PlacedBlock made;
  made.place = rank;
  made.block.group = {sizeof(heddle_group), by_tokens ? HEDDLE_GROUP_SEQUENCE : HEDDLE_GROUP_ROWS,
                      rank, std::uint32_t(spec_.placement.devices.size())};
  made.inputs.resize(node.inputs.size());
  made.block.shares.resize(node.inputs.size());
  for (std::uint32_t i = 0; by_tokens && i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
    const std::vector<std::int64_t> counts = *values_.token_counts(*link, lane);
    const std::int64_t begin = sum_of(counts, rank);
    made.inputs[i] = values_.share_at(*link, lane, rank, counts);
    made.block.shares[i] = {sizeof(heddle_share), begin, begin + counts[rank],
                            sum_of(counts, counts.size())};
  }
  read_inputs(made, n, lane);
  return made;
}

// Everybody up to the next collective, then the collective.
void SessionPlanner::emit_in_step(const std::vector<PlacedBlock>& members, NodeIndex n,
                                  std::uint32_t lane) {
  std::vector<std::size_t> next(members.size(), 0);
  for (;;) {
    std::vector<const ProgramOp*> waiting;
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
      const std::vector<ProgramOp>& ops = members[rank].program.ops;
      for (; next[rank] < ops.size() && !is_collective(ops[next[rank]].op); ++next[rank]) {
        if (collectives_.holds_back(members[rank], ops[next[rank]])) collectives_.finish(rank);
        emit(members[rank], n, lane, ops[next[rank]]);
      }
      if (next[rank] < ops.size()) waiting.push_back(&ops[next[rank]++]);
    }
    collectives_.finish();
    if (waiting.empty()) return;
    if (waiting.size() != members.size() ||
        std::ranges::any_of(waiting, [&](const ProgramOp* op) { return op->op != waiting[0]->op; }))
      throw Error(Code::internal,
                  cat("block ", graph_.nodes[n].id,
                      ": the members of a group do not issue the same collectives"));
    collectives_.begin(members, n, lane, waiting);
  }
}

void SessionPlanner::add_results(const std::vector<PlacedBlock>& members, NodeIndex n,
                                 std::uint32_t lane) {
  const bool by_tokens = spec_.placement.parallel == ParallelMode::sequence;
  const Node& node = graph_.nodes[n];
  for (std::uint32_t port = 0; port < members[0].program.outputs.size(); ++port) {
    const Source source{n, port};
    if (by_tokens && (node.type->output(port).flags & HEDDLE_PORT_SEQUENCE) != 0) {
      SessionValues::Divided divided;
      for (const PlacedBlock& member : members) {
        divided.parts.push_back(member.in_plan(member.program.outputs[port]));
        const heddle_tensor_info& info = divided.parts.back().info;
        divided.counts.push_back(info.shape[token_axis(info)]);
      }
      values_.add_divided(source, lane, std::move(divided));
      continue;
    }
    for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
      const Operand made = members[rank].in_plan(members[rank].program.outputs[port]);
      if (rank == 0)
        values_.add(source, lane, made);
      else
        values_.add_replica(source, lane, rank, made);
    }
  }
}

}  // namespace heddle::core
