// Blocks that several devices divide: one trace for each rank of the group, in step with the
// others.
#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/session_planner.h"
#include "engine/program/workload.h"
#include "engine/tensor/call.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

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

bool SessionPlanner::is_sharded(NodeIndex n, std::uint32_t branch) {
  const ParallelMode mode = spec_.placement.parallel;
  if (spec_.placement.ranks() < 2 || builder_.phase() != Phase::per_step) return false;
  if (has(mode, ParallelMode::sequence)) return has_divided_tokens(graph_.nodes[n], branch);
  return has(mode, ParallelMode::tensor) && has_divided_rows(n);
}

bool SessionPlanner::has_divided_tokens(const Node& node, std::uint32_t branch) {
  bool any = false;
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
    if (!values_.token_counts(*link, branch)) return false;
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
      if (std::ranges::any_of(shard_sizes(s.length / s.unit, spec_.placement.rank_fractions),
                              [](std::int64_t count) { return count <= 0; }))
        return false;
    any = any || whole->rank == 2;
  }
  return any;
}

void SessionPlanner::plan_group(NodeIndex n, std::uint32_t branch) {
  const std::uint32_t count = spec_.placement.ranks();
  const bool by_tokens = has(spec_.placement.parallel, ParallelMode::sequence);
  std::vector<PlacedBlock> rank_blocks;
  for (std::uint32_t rank = 0; rank < count; ++rank)
    rank_blocks.push_back(rank_block(n, branch, rank));
  for (std::uint32_t rank = 0; rank < count; ++rank)
    begin(rank_blocks[rank], n, branch, by_tokens ? kWholeWeight : rank);
  emit_in_step(rank_blocks, n, branch);
  add_results(rank_blocks, n, branch);
  values_.end_block(n, branch);
}

// One of the group, with its inputs.
PlacedBlock SessionPlanner::rank_block(NodeIndex n, std::uint32_t branch, std::uint32_t rank) {
  const Node& node = graph_.nodes[n];
  const bool by_tokens = has(spec_.placement.parallel, ParallelMode::sequence);
  PlacedBlock made;
  made.device_slot = inputs_.branches()[branch].device_slot + rank;
  made.block.group = {sizeof(heddle_group), by_tokens ? HEDDLE_GROUP_SEQUENCE : HEDDLE_GROUP_ROWS,
                      rank, spec_.placement.ranks()};
  made.inputs.resize(node.inputs.size());
  made.block.shards.resize(node.inputs.size());
  for (std::uint32_t i = 0; by_tokens && i < node.inputs.size(); ++i) {
    const auto* link = std::get_if<Source>(&node.inputs[i]);
    if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
    const std::vector<std::int64_t> counts = *values_.token_counts(*link, branch);
    const std::int64_t begin = sum_of(counts, rank);
    made.inputs[i] = values_.shard_at(*link, branch, rank, counts);
    made.block.shards[i] = {sizeof(heddle_shard), begin, begin + counts[rank],
                            sum_of(counts, counts.size())};
  }
  read_inputs(made, n, branch);
  return made;
}

// Everybody up to the next collective, then the collective.
void SessionPlanner::emit_in_step(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n,
                                  std::uint32_t branch) {
  std::vector<std::size_t> next(rank_blocks.size(), 0);
  for (;;) {
    std::vector<const ProgramOp*> waiting;
    for (std::uint32_t rank = 0; rank < rank_blocks.size(); ++rank) {
      const std::vector<ProgramOp>& ops = rank_blocks[rank].program.ops;
      for (; next[rank] < ops.size() && !is_collective(ops[next[rank]].op); ++next[rank]) {
        if (collectives_.holds_back(rank_blocks[rank], ops[next[rank]])) collectives_.finish(rank);
        emit(rank_blocks[rank], n, branch, ops[next[rank]]);
      }
      if (next[rank] < ops.size()) waiting.push_back(&ops[next[rank]++]);
    }
    collectives_.finish();
    if (waiting.empty()) return;
    if (waiting.size() != rank_blocks.size() ||
        std::ranges::any_of(waiting, [&](const ProgramOp* op) { return op->op != waiting[0]->op; }))
      throw Error(Code::internal, cat("block ", graph_.nodes[n].id,
                                      ": the ranks of a group do not issue the same collectives"));
    collectives_.begin(rank_blocks, n, branch, waiting);
  }
}

void SessionPlanner::add_results(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n,
                                 std::uint32_t branch) {
  const bool by_tokens = has(spec_.placement.parallel, ParallelMode::sequence);
  const Node& node = graph_.nodes[n];
  for (std::uint32_t port = 0; port < rank_blocks[0].program.outputs.size(); ++port) {
    const Source source{n, port};
    if (by_tokens && (node.type->output(port).flags & HEDDLE_PORT_SEQUENCE) != 0) {
      SessionValues::Sharded sharded;
      for (const PlacedBlock& rank_block : rank_blocks) {
        sharded.parts.push_back(rank_block.in_plan(rank_block.program.outputs[port]));
        const heddle_tensor_info& info = sharded.parts.back().info;
        sharded.counts.push_back(info.shape[token_axis(info)]);
      }
      values_.add_divided(source, branch, std::move(sharded));
      continue;
    }
    for (const PlacedBlock& rank_block : rank_blocks) {
      const Operand made = rank_block.in_plan(rank_block.program.outputs[port]);
      if (&rank_block == &rank_blocks.front())
        values_.add(source, branch, made);
      else
        values_.add_replica(source, branch, rank_block.device_slot, made);
    }
  }
}

}  // namespace heddle::engine
