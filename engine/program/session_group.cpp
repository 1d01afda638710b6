// Blocks that several devices divide: one recording for each member of the group, in step with the others.
#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/program/session_planner.h"
#include "engine/program/workload.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

namespace {

constexpr std::int64_t kLeastSide = 256;  // of a weight that is worth dividing

std::uint32_t token_axis(const heddle_tensor_info& info) {
  if (info.rank < 2) throw Error(Code::invalid_argument, cat(describe(info), " holds no tokens: it has less than two axes"));
  return info.rank - 2;
}

bool has_flag(const Node& node, std::uint32_t input, std::uint32_t flag) { return (node.type->input(input).flags & flag) != 0; }

bool is_collective(std::uint32_t op) {
  static const std::uint32_t gather = op_id(HEDDLE_OP_ALL_GATHER), reduce = op_id(HEDDLE_OP_ALL_REDUCE), exchange = op_id(HEDDLE_OP_ALL_TO_ALL);
  return op == gather || op == reduce || op == exchange;
}

bool all_have_some(const std::vector<std::int64_t>& counts) {
  return std::ranges::all_of(counts, [](std::int64_t count) { return count > 0; });
}

}  // namespace

std::optional<std::vector<std::int64_t>> SessionPlanner::token_counts(Source source, std::uint32_t lane) {
  source = maker_of(source, lane);
  if (const auto found = divided_.find(key(source, lane)); found != divided_.end()) return found->second.counts;
  if (is_external(source)) return {};  // an input that every member has whole
  const auto whole = origin(source, lane);
  if (!whole) return {};
  std::vector<std::int64_t> counts = divide(whole->info.shape[token_axis(whole->info)], spec_.placement.shares);
  return all_have_some(counts) ? std::optional(std::move(counts)) : std::nullopt;
}

bool SessionPlanner::is_divided(NodeIndex n, std::uint32_t lane) {
  const Node& node = graph_.nodes[n];
  const CallPlacement& placement = spec_.placement;
  if (placement.devices.size() < 2 || phase_ != Rate::step) return false;
  if (placement.parallel == ParallelMode::sequence) {
    bool any = false;
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
      if (!token_counts(*link, lane)) return false;
      any = true;
    }
    return any;
  }
  if (placement.parallel != ParallelMode::tensor || node.shards.empty() || !spec_.weight) return false;
  bool any = false;
  for (std::uint32_t slot = 0; slot < node.shards.size(); ++slot) {
    const WeightShard& shard = node.shards[slot];
    if (shard.axis < 0) continue;
    const auto whole = spec_.weight(0, n, slot, kWholeWeight);
    if (!whole) continue;
    if (whole->rank == 2 && (whole->shape[0] < kLeastSide || whole->shape[1] < kLeastSide)) return false;
    if (cuts_blocks(shard, *whole)) return false;
    for (const WeightShard::Segment& s : shard.segments)
      if (!all_have_some(divide(s.length / s.unit, placement.shares))) return false;
    any = any || whole->rank == 2;
  }
  return any;
}

// The tokens of one member, at its place.
Operand SessionPlanner::share_at(const Source& source, std::uint32_t lane, std::uint32_t rank, const std::vector<std::int64_t>& counts) {
  if (const auto found = divided_.find(key(source, lane)); found != divided_.end()) return found->second.parts[rank];
  const std::pair slot{key(source, lane), rank};
  if (const auto found = shares_.find(slot); found != shares_.end()) return found->second;
  Operand whole = *origin(source, lane);
  if (const auto there = arrivals_.find({key(source, lane), rank}); there != arrivals_.end()) whole = plan_.transfers[there->second].dest;
  const std::int64_t begin = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t(0));
  Operand part = part_of(whole, token_axis(whole.info), begin, counts[rank]);
  if (plan_.storages[part.storage].place != rank) {
    const std::uint32_t transfer = send(source, lane, part, rank, rate_of(source), made_by(source, lane));
    await(transfer, rate_of(source));
    part = plan_.transfers[transfer].dest;
  }
  shares_[slot] = part;
  return part;
}

// One member's part of a value to another place: whoever puts the value together there shares it.
std::uint32_t SessionPlanner::send_part(const Source& source, std::uint32_t lane, std::uint32_t rank, const Operand& part, std::uint32_t place,
                                        std::size_t position) {
  const auto [at, is_new] = parts_.try_emplace({key(source, lane), rank, place}, 0);
  if (is_new) at->second = send(source, lane, part, place, phase_, position);
  return at->second;
}

// Puts a divided value together on the first place.
void SessionPlanner::gather(const Source& source, std::uint32_t lane) {
  const Divided& divided = divided_.at(key(source, lane));
  heddle_tensor_info info = divided.parts[0].info;
  const std::uint32_t axis = token_axis(info);
  info.shape[axis] = std::accumulate(divided.counts.begin(), divided.counts.end(), std::int64_t(0));
  info = dense(info, "gathered value");
  const Operand whole{add_scratch(0, dense_bytes(info)), 0, info};
  std::int64_t begin = 0;
  for (std::uint32_t rank = 0; rank < divided.parts.size(); ++rank) {
    Operand part = divided.parts[rank];
    if (plan_.storages[part.storage].place != 0) {
      const std::uint32_t transfer = send_part(source, lane, rank, part, 0, plan_.phases[int(phase_)].size());
      await(transfer, phase_);
      part = plan_.transfers[transfer].dest;
    }
    launch(source.node, lane, 0, op_id(HEDDLE_OP_COPY), {part}, {part_of(whole, axis, begin, divided.counts[rank])});
    begin += divided.counts[rank];
  }
  origins_[key(source, lane)] = whole;
  gathered_[key(source, lane)] = plan_.phases[int(phase_)].size();
}

void SessionPlanner::plan_group(NodeIndex n, std::uint32_t lane) {
  const Node& node = graph_.nodes[n];
  const bool by_tokens = spec_.placement.parallel == ParallelMode::sequence;
  const auto count = std::uint32_t(spec_.placement.devices.size());
  std::vector<Member> members(count);
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    Member& member = members[rank];
    member.place = rank;
    member.block.group = {sizeof(heddle_group), by_tokens ? HEDDLE_GROUP_SEQUENCE : HEDDLE_GROUP_ROWS, rank, count};
    member.inputs.resize(node.inputs.size());
    member.block.shares.resize(node.inputs.size());
    for (std::uint32_t i = 0; by_tokens && i < node.inputs.size(); ++i) {
      const auto* link = std::get_if<Source>(&node.inputs[i]);
      if (link == nullptr || !has_flag(node, i, HEDDLE_PORT_SEQUENCE)) continue;
      const std::vector<std::int64_t> counts = *token_counts(*link, lane);
      const std::int64_t begin = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t(0));
      member.inputs[i] = share_at(*link, lane, rank, counts);
      member.block.shares[i] = {sizeof(heddle_share), begin, begin + counts[rank], std::accumulate(counts.begin(), counts.end(), std::int64_t(0))};
    }
    read_inputs(member, n, lane);
  }
  for (std::uint32_t rank = 0; rank < count; ++rank) begin(members[rank], n, lane, by_tokens ? kWholeWeight : rank);

  // Everybody up to the next collective, then the collective.
  std::vector<std::size_t> next(count, 0);
  for (;;) {
    std::vector<const ProgramOp*> waiting;
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      const std::vector<ProgramOp>& ops = members[rank].program.ops;
      for (; next[rank] < ops.size() && !is_collective(ops[next[rank]].op); ++next[rank]) {
        if (waits_for_collective(members[rank], n, ops[next[rank]])) finish_collective(rank);
        emit(members[rank], n, lane, ops[next[rank]]);
      }
      if (next[rank] < ops.size()) waiting.push_back(&ops[next[rank]++]);
    }
    finish_collective();
    if (waiting.empty()) break;
    if (waiting.size() != count || std::ranges::any_of(waiting, [&](const ProgramOp* op) { return op->op != waiting[0]->op; }))
      throw Error(Code::internal, cat("block ", node.id, ": the members of a group do not issue the same collectives"));
    collective(members, n, lane, waiting);
  }

  for (std::uint32_t port = 0; port < members[0].program.outputs.size(); ++port) {
    const Source source{n, port};
    if (by_tokens && (node.type->output(port).flags & HEDDLE_PORT_SEQUENCE) != 0) {
      Divided divided;
      for (const Member& member : members) {
        divided.parts.push_back(global(member, n, member.program.outputs[port]));
        const heddle_tensor_info& info = divided.parts.back().info;
        divided.counts.push_back(info.shape[token_axis(info)]);
      }
      divided_[key(source, lane)] = std::move(divided);
      continue;
    }
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      const Operand made = global(members[rank], n, members[rank].program.outputs[port]);
      if (rank == 0) origins_[key(source, lane)] = made;
      else replicas_[{key(source, lane), rank}] = made;
    }
  }
  block_ends_[{n, lane}] = plan_.phases[int(phase_)].size();
}

}  // namespace heddle::core
