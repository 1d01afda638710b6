// What the members of a group exchange inside of a block, made of copies and sums. What crosses is added up and put together in
// the order of ranks, so that every repeat gives the same bytes. Copies begin when their sources are there, beside what comes next:
// a member waits for them where it needs the result.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/program/session_planner.h"
#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

Operand part_of(const Operand& whole, std::uint32_t axis, std::int64_t begin, std::int64_t count) {
  Operand part = whole;
  part.info.shape[axis] = count;
  part.offset_bytes += std::uint64_t(dtype_bytes(DType(whole.info.dtype), begin * whole.info.stride[axis]));
  return part;
}

namespace {

template <class Attrs>
Attrs attrs_of(const ProgramOp& op) {
  Attrs attrs{};
  std::memcpy(&attrs, op.attrs.data(), std::min(op.attrs.size(), sizeof attrs));
  return attrs;
}

}  // namespace

std::uint32_t SessionPlanner::add_given(const Operand& given, PlannedTransfer transfer, std::size_t position) {
  given_.push_back(given.storage);
  sent_[int(phase_)].emplace_back(position, std::uint32_t(plan_.transfers.size()));
  plan_.collectives.back().transfers.push_back(std::uint32_t(plan_.transfers.size()));
  plan_.transfers.push_back(std::move(transfer));
  return std::uint32_t(plan_.transfers.size() - 1);
}

// What one member has for another to read: where it lies, if that is a peer.
std::uint32_t SessionPlanner::give(const Source& source, std::uint32_t lane, const Operand& part, std::uint32_t to, std::size_t position) {
  const std::uint32_t from = plan_.storages[part.storage].place;
  // At the last collective the giver has heard of all that the receiver had been given to do before it: what comes may lie there.
  if (!are_peers(from, to)) return add_given(part, transfer_to(source, lane, part, to, phase_, last_collective_), position);
  return add_given(part, {source, lane, from, to, part, part, dense_bytes(part.info), PlannedTransfer::Way::read}, position);
}

// The same for a place on the receiver, by a kernel of the receiver.
std::uint32_t SessionPlanner::give_into(const Source& source, std::uint32_t lane, const Operand& part, const Operand& dest, std::size_t position) {
  const std::uint32_t from = plan_.storages[part.storage].place, to = plan_.storages[dest.storage].place;
  PlannedOp copy{source.node, lane, to, {op_id(HEDDLE_OP_COPY), {}, {part}, {dest}}, nullptr, -1};
  choose_kernel(copy, last_collective_);
  uses_[dest.storage].add(phase_, last_collective_);
  if (copy.workspace >= 0) given_.push_back(copy.workspace);
  return add_given(part, {source, lane, from, to, part, dest, dense_bytes(part.info), PlannedTransfer::Way::kernel, copy.kernel, copy.workspace}, position);
}

namespace {

// Whether all that `inner` covers lies in the rows [begin, begin + count) of `whole` along an axis. No for a form that cannot be
// told apart; strides that are not multiples of each other are one.
bool lies_in(const Operand& inner, const Operand& whole, std::uint32_t axis, std::int64_t begin, std::int64_t count) {
  const std::int64_t item = std::int64_t(dtype_size(DType(whole.info.dtype))), row = whole.info.stride[axis];
  if (inner.info.dtype != whole.info.dtype || row <= 0 || element_count(inner.info) == 0) return false;
  std::int64_t period = std::numeric_limits<std::int64_t>::max();  // after which the same rows come again
  for (std::uint32_t i = 0; i < whole.info.rank; ++i) {
    const std::int64_t stride = whole.info.stride[i];
    if (i == axis || whole.info.shape[i] == 1) continue;
    if (stride >= row * whole.info.shape[axis]) period = std::min(period, stride);
    else if (stride * (whole.info.shape[i] - 1) >= row) return false;
  }
  for (std::uint32_t i = 0; i < whole.info.rank; ++i)
    if (whole.info.shape[i] > 1 && whole.info.stride[i] >= period && whole.info.stride[i] % period != 0) return false;
  const std::int64_t bytes = std::int64_t(inner.offset_bytes) - std::int64_t(whole.offset_bytes);
  if (bytes < 0 || bytes % item != 0) return false;
  std::int64_t first = bytes / item % period, last = first;
  for (std::uint32_t i = 0; i < inner.info.rank; ++i) {
    const std::int64_t stride = inner.info.stride[i];
    if (inner.info.shape[i] == 1 || stride % period == 0) continue;
    if (stride < 0 || stride > period) return false;
    last += stride * (inner.info.shape[i] - 1);
  }
  return first >= begin * row && last < (begin + count) * row;
}

}  // namespace

bool SessionPlanner::waits_for_collective(const Member& member, NodeIndex n, const ProgramOp& op) const {
  if (!under_way_) return false;
  const Collective::Out& out = under_way_->out[member.block.group.rank];
  const auto waits = [&](const Operand& local) {
    if (local.storage < 0 || member.base[local.storage].storage != out.whole.storage) return false;
    return !out.kept || !lies_in(global(member, n, local), out.whole, out.kept->axis, out.kept->begin, out.kept->count);
  };
  return std::ranges::any_of(op.in, waits) || std::ranges::any_of(op.out, waits);
}

void SessionPlanner::finish_collective(std::uint32_t rank) {
  if (!under_way_ || under_way_->rest[rank].empty()) return;
  for (const auto& step : std::exchange(under_way_->rest[rank], {})) step();
}

// Every member has waited for every other one, so what was given in the collective before this one has been taken.
void SessionPlanner::finish_collective() {
  if (!under_way_) return;
  for (std::uint32_t rank = 0; rank < under_way_->rest.size(); ++rank) finish_collective(rank);
  if (under_way_->all_hear_of_all) {
    for (const std::int32_t storage : given_before_) uses_[storage].add(phase_, now());
    given_before_ = std::exchange(given_, {});
    last_collective_ = under_way_->begun;
  }
  under_way_.reset();
}

void SessionPlanner::collective(std::vector<Member>& members, NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops) {
  const auto count = std::uint32_t(members.size());
  std::vector<Operand> in, out;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    in.push_back(global(members[rank], n, ops[rank]->in.at(0)));
    out.push_back(global(members[rank], n, ops[rank]->out.at(0)));
  }
  plan_.collectives.push_back({n, lane, ops[0]->op, {}});
  under_way_.emplace();
  under_way_->rest.resize(count);
  for (const Operand& whole : out) under_way_->out.push_back({whole});
  if (ops[0]->op == op_id(HEDDLE_OP_ALL_TO_ALL)) return exchange(n, lane, ops, in, out);
  gather_or_reduce(members, n, lane, ops, in, out);
}

// All copies start together; each member goes on when it has all of them.
void SessionPlanner::gather_or_reduce(std::vector<Member>& members, NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops,
                                      const std::vector<Operand>& in, const std::vector<Operand>& out) {
  const auto count = std::uint32_t(members.size());
  const std::size_t position = plan_.phases[int(phase_)].size();
  under_way_->begun = now();
  for (std::uint32_t to = 0; to < count; ++to) {
    std::vector<Operand> parts;
    std::vector<std::uint32_t> sent;
    for (std::uint32_t from = 0; from < count; ++from) {
      parts.push_back(in[from]);
      // Its own, or a share of what is whole here, read in shared memory.
      if (plan_.storages[in[from].storage].place == to) {
        under_way_->all_hear_of_all = under_way_->all_hear_of_all && from == to;
        continue;
      }
      const Source* const part = find_input(members[from], n, in[from]);
      const bool is_part = part != nullptr && (divided_.contains(key(*part, lane)) || shares_.contains({key(*part, lane), from}));
      sent.push_back(is_part ? send_part(*part, lane, from, in[from], to, position) : give({n, 0}, lane, in[from], to, position));
      parts.back() = plan_.transfers[sent.back()].dest;
      if (!is_part) continue;
      plan_.collectives.back().transfers.push_back(sent.back());
      under_way_->all_hear_of_all = false;  // it may have been sent before
    }
    const auto wait = [this, sent] {
      for (const std::uint32_t transfer : sent) await(transfer, phase_);
    };
    if (ops[to]->op == op_id(HEDDLE_OP_ALL_GATHER)) {
      under_way_->rest[to] = {wait, [=, this] {
        for (std::uint32_t from = 0; from < count; ++from) {
          const auto attrs = attrs_of<heddle_all_gather_attrs>(*ops[from]);
          const auto axis = std::uint32_t(attrs.axis);
          launch(n, lane, to, op_id(HEDDLE_OP_COPY), {parts[from]}, {part_of(out[to], axis, attrs.begin, parts[from].info.shape[axis])});
        }
      }};
      continue;
    }
    under_way_->rest[to] = {wait, [=, this] {
      Operand sum = parts[0];
      for (std::uint32_t from = 1; from < count; ++from) {
        const heddle_tensor_info info = dense(out[to].info, "partial sum");
        const Operand next = from + 1 == count ? out[to] : Operand{add_scratch(to, dense_bytes(info)), 0, info};
        launch(n, lane, to, op_id(HEDDLE_OP_ADD), {sum, parts[from]}, {next});
        sum = next;
      }
    }};
  }
}

// A peer takes what it wants from where it lies. For others it is put together first, so that no more crosses than is wanted.
void SessionPlanner::exchange(NodeIndex n, std::uint32_t lane, const std::vector<const ProgramOp*>& ops, const std::vector<Operand>& in,
                              const std::vector<Operand>& out) {
  const auto count = std::uint32_t(ops.size());
  std::vector<heddle_all_to_all_attrs> attrs;
  for (const ProgramOp* op : ops) attrs.push_back(attrs_of<heddle_all_to_all_attrs>(*op));
  const auto parts = std::uint32_t(attrs[0].part_axis), joined = std::uint32_t(attrs[0].join_axis);
  // A share of what is whole on another place of the same memory lies there.
  const auto is_read = [&](std::uint32_t from, std::uint32_t to) { return are_peers(plan_.storages[in[from].storage].place, to); };
  std::vector<std::vector<Operand>> given(count);  // by receiver and giver
  for (std::uint32_t to = 0; to < count; ++to)
    for (std::uint32_t from = 0; from < count; ++from) {
      given[to].push_back(part_of(in[from], parts, attrs[to].part_begin, attrs[to].part_end - attrs[to].part_begin));
      if (from == to || is_read(from, to)) continue;
      const heddle_tensor_info info = dense(given[to][from].info, "exchanged part");
      const Operand packed{add_scratch(from, dense_bytes(info)), 0, info};
      launch(n, lane, from, op_id(HEDDLE_OP_COPY), {given[to][from]}, {packed});
      given[to][from] = packed;
    }
  const std::size_t position = plan_.phases[int(phase_)].size();
  under_way_->begun = now();
  const auto put = [=, this](std::uint32_t to, const Operand& what, const Operand& dest) {
    launch(n, lane, to, op_id(HEDDLE_OP_COPY), {what}, {dest});
  };
  for (std::uint32_t to = 0; to < count; ++to) {
    const auto dest_of = [&](std::uint32_t from) { return part_of(out[to], joined, attrs[from].begin, given[to][from].info.shape[joined]); };
    auto& rest = under_way_->rest[to];
    const Operand own = dest_of(to);
    if (attrs[to].keeps_own != 0)
      under_way_->out[to].kept = Collective::Rows{joined, attrs[to].begin, own.info.shape[joined]};
    else  // while those of the others are on their way
      rest.push_back([=, part = given[to][to]] { put(to, part, own); });
    for (std::uint32_t from = 0; from < count; ++from) {
      if (from == to) continue;
      const Operand part = given[to][from], dest = dest_of(from);
      const bool is_there = is_read(from, to);
      const std::uint32_t transfer = is_there ? give_into({n, 0}, lane, part, dest, position) : give({n, 0}, lane, part, to, position);
      rest.push_back([=, this] {
        await(transfer, phase_);
        if (!is_there) put(to, plan_.transfers[transfer].dest, dest);
      });
    }
  }
}

}  // namespace heddle::core
