#include "engine/program/session_collectives.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/tensor/call.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

namespace {

template <class Attrs>
Attrs attrs_of(const ProgramOp& op) {
  Attrs attrs{};
  std::memcpy(&attrs, op.attrs.data(), std::min(op.attrs.size(), sizeof attrs));
  return attrs;
}

// Whether all that `inner` covers lies in the rows [begin, begin + count) of `whole` along an axis.
// No for a layout that cannot be told apart; strides that are not multiples of each other are one.
bool lies_in(const Operand& inner, const Operand& whole, std::uint32_t axis, std::int64_t begin,
             std::int64_t count) {
  const std::int64_t item = std::int64_t(dtype_size(DType(whole.info.dtype))),
                     row = whole.info.stride[axis];
  if (inner.info.dtype != whole.info.dtype || row <= 0 || element_count(inner.info) == 0)
    return false;
  std::int64_t period =
      std::numeric_limits<std::int64_t>::max();  // after which the same rows come again
  for (std::uint32_t i = 0; i < whole.info.rank; ++i) {
    const std::int64_t stride = whole.info.stride[i];
    if (i == axis || whole.info.shape[i] == 1) continue;
    if (stride >= row * whole.info.shape[axis])
      period = std::min(period, stride);
    else if (stride * (whole.info.shape[i] - 1) >= row)
      return false;
  }
  for (std::uint32_t i = 0; i < whole.info.rank; ++i)
    if (whole.info.shape[i] > 1 && whole.info.stride[i] >= period &&
        whole.info.stride[i] % period != 0)
      return false;
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

bool SessionCollectives::are_peers(std::uint32_t a, std::uint32_t b) const {
  const SessionSpec::DeviceSlot &x = spec_.device_slots[a], &y = spec_.device_slots[b];
  return x.peers != 0 && x.peers == y.peers && x.memory != y.memory;
}

std::uint32_t SessionCollectives::add_given(const Operand& given, PlannedTransfer transfer,
                                            std::size_t position) {
  group_->given.push_back(given.storage);
  const std::uint32_t number =
      builder_.add_transfer(std::move(transfer), builder_.phase(), position);
  builder_.plan().collectives.back().transfers.push_back(number);
  return number;
}

// What one rank has for another to read: where it lies, if that is a peer.
std::uint32_t SessionCollectives::give(const Source& source, std::uint32_t branch,
                                       const Operand& part, std::uint32_t to,
                                       std::size_t position) {
  const std::uint32_t from = builder_.device_slot_of(part);
  // At the last collective the giver has heard of all that the receiver had been given to do before
  // it: what comes may lie there.
  if (!are_peers(from, to))
    return add_given(
        part, builder_.transfer_to(source, branch, part, to, builder_.phase(), group_->last_begun),
        position);
  return add_given(
      part,
      {source, branch, from, to, part, part, dense_bytes(part.info), PlannedTransfer::Way::read},
      position);
}

// The same into a place on the receiver, by a kernel of the receiver.
std::uint32_t SessionCollectives::give_into(const Source& source, std::uint32_t branch,
                                            const Operand& part, const Operand& dest,
                                            std::size_t position) {
  const std::uint32_t from = builder_.device_slot_of(part), to = builder_.device_slot_of(dest);
  PlannedOp copy{source.node, branch, to, {op_id(HEDDLE_OP_COPY), {}, {part}, {dest}}, nullptr, -1};
  builder_.choose_kernel(copy, group_->last_begun);
  builder_.use(dest.storage, builder_.phase(), group_->last_begun);
  if (copy.workspace >= 0) group_->given.push_back(copy.workspace);
  return add_given(part,
                   {source, branch, from, to, part, dest, dense_bytes(part.info),
                    PlannedTransfer::Way::kernel, copy.kernel, copy.workspace},
                   position);
}

bool SessionCollectives::holds_back(const PlacedBlock& rank_block, const ProgramOp& op) const {
  if (!under_way_) return false;
  const UnderWay::Out& out = under_way_->out[rank_block.block.group.rank];
  const auto waits = [&](const Operand& local) {
    if (local.storage < 0 || rank_block.base[local.storage].storage != out.whole.storage)
      return false;
    return !out.kept || !lies_in(rank_block.in_plan(local), out.whole, out.kept->axis,
                                 out.kept->begin, out.kept->count);
  };
  return std::ranges::any_of(op.in, waits) || std::ranges::any_of(op.out, waits);
}

void SessionCollectives::finish(std::uint32_t rank) {
  if (!under_way_ || under_way_->rest[rank].empty()) return;
  for (const auto& step : std::exchange(under_way_->rest[rank], {})) step();
}

// Every rank has waited for every other one, so what was given in the collective before this one
// has been taken.
void SessionCollectives::finish() {
  if (!under_way_) return;
  for (std::uint32_t rank = 0; rank < under_way_->rest.size(); ++rank) finish(rank);
  if (under_way_->all_hear_of_all) {
    for (const std::int32_t storage : group_->given_before)
      builder_.use(storage, builder_.phase(), builder_.now());
    group_->given_before = std::exchange(group_->given, {});
    group_->last_begun = under_way_->begun;
  }
  under_way_.reset();
}

void SessionCollectives::close() {
  for (const auto& [first, group] : heard_)
    for (const auto* given : {&group.given_before, &group.given})
      for (const std::int32_t storage : *given)
        builder_.use(storage, Phase::per_step, builder_.now());
}

void SessionCollectives::begin(const std::vector<PlacedBlock>& rank_blocks, NodeIndex n,
                               std::uint32_t branch, const std::vector<const ProgramOp*>& ops) {
  const std::uint32_t first = branches_[branch].device_slot;
  group_ = &heard_[first];
  const auto issued = std::make_shared<Issued>(Issued{n, branch, first, ops, {}, {}});
  for (std::uint32_t rank = 0; rank < issued->count(); ++rank) {
    issued->in.push_back(rank_blocks[rank].in_plan(ops[rank]->in.at(0)));
    issued->out.push_back(rank_blocks[rank].in_plan(ops[rank]->out.at(0)));
  }
  builder_.plan().collectives.push_back({n, branch, ops[0]->op, {}});
  under_way_ = UnderWay{0, true, {}, {}};
  under_way_->rest.resize(issued->count());
  for (const Operand& whole : issued->out) under_way_->out.push_back({whole, {}});
  if (ops[0]->op == op_id(HEDDLE_OP_ALL_TO_ALL)) return exchange(issued);
  gather_or_reduce(issued, rank_blocks);
}

// All copies start together; each rank goes on when it has all of them.
void SessionCollectives::gather_or_reduce(const IssuedRef& issued,
                                          const std::vector<PlacedBlock>& rank_blocks) {
  const std::size_t position = builder_.position();
  under_way_->begun = builder_.now();
  for (std::uint32_t to = 0; to < issued->count(); ++to) {
    std::vector<std::uint32_t> sent;
    std::vector<Operand> parts = collect(*issued, rank_blocks, to, position, sent);
    const bool gathers = issued->ops[to]->op == op_id(HEDDLE_OP_ALL_GATHER);
    under_way_->rest[to] = {[this, sent = std::move(sent)] {
                              for (const std::uint32_t transfer : sent)
                                builder_.await(transfer, builder_.phase());
                            },
                            [this, issued, to, gathers, parts = std::move(parts)] {
                              gathers ? put_together(*issued, to, parts)
                                      : add_up(*issued, to, parts);
                            }};
  }
}

// The ranks' parts, as one of them reads them. `sent` gets the transfers.
std::vector<Operand> SessionCollectives::collect(const Issued& issued,
                                                 const std::vector<PlacedBlock>& rank_blocks,
                                                 std::uint32_t to, std::size_t position,
                                                 std::vector<std::uint32_t>& sent) {
  std::vector<Operand> parts;
  for (std::uint32_t from = 0; from < issued.count(); ++from) {
    const Operand& part = issued.in[from];
    parts.push_back(part);
    // Its own, or a part of what is whole here, read in shared memory.
    if (builder_.device_slot_of(part) == issued.slot_of(to)) {
      under_way_->all_hear_of_all = under_way_->all_hear_of_all && from == to;
      continue;
    }
    const Source* const input = rank_blocks[from].input_that_is(part);
    const bool is_share = input != nullptr && values_.is_share(*input, issued.branch, from);
    const std::uint32_t slot = issued.slot_of(to);
    sent.push_back(is_share ? values_.send_part(*input, issued.branch, from, part, slot, position)
                            : give({issued.node, 0}, issued.branch, part, slot, position));
    parts.back() = builder_.plan().transfers[sent.back()].dest;
    if (!is_share) continue;
    builder_.plan().collectives.back().transfers.push_back(sent.back());
    under_way_->all_hear_of_all = false;  // it may have been sent before
  }
  return parts;
}

void SessionCollectives::put_together(const Issued& issued, std::uint32_t to,
                                      const std::vector<Operand>& parts) {
  for (std::uint32_t from = 0; from < issued.count(); ++from) {
    const auto attrs = attrs_of<heddle_all_gather_attrs>(*issued.ops[from]);
    const auto axis = std::uint32_t(attrs.axis);
    builder_.launch(issued.node, issued.branch, issued.slot_of(to), op_id(HEDDLE_OP_COPY),
                    {parts[from]},
                    {part_of(issued.out[to], axis, attrs.begin, parts[from].info.shape[axis])});
  }
}

void SessionCollectives::add_up(const Issued& issued, std::uint32_t to,
                                const std::vector<Operand>& parts) {
  Operand sum = parts[0];
  for (std::uint32_t from = 1; from < issued.count(); ++from) {
    const heddle_tensor_info info = dense(issued.out[to].info, "partial sum");
    const bool is_last = from + 1 == issued.count();
    const std::uint32_t slot = issued.slot_of(to);
    const Operand next =
        is_last ? issued.out[to] : Operand{builder_.add_scratch(slot, dense_bytes(info)), 0, info};
    builder_.launch(issued.node, issued.branch, slot, op_id(HEDDLE_OP_ADD), {sum, parts[from]},
                    {next});
    sum = next;
  }
}

// A peer takes what it wants from where it lies. For others it is put together first, so that no
// more crosses than is wanted.
void SessionCollectives::exchange(const IssuedRef& issued) {
  const std::vector<std::vector<Operand>> given = pack(*issued);
  const std::size_t position = builder_.position();
  under_way_->begun = builder_.now();
  for (std::uint32_t to = 0; to < issued->count(); ++to) receive(issued, to, given[to], position);
}

// A part of what is whole on another device slot of the same memory lies there.
bool SessionCollectives::is_read(const Issued& issued, std::uint32_t from, std::uint32_t to) const {
  return are_peers(builder_.device_slot_of(issued.in[from]), issued.slot_of(to));
}

// By receiver and giver.
std::vector<std::vector<Operand>> SessionCollectives::pack(const Issued& issued) {
  std::vector<std::vector<Operand>> given(issued.count());
  const auto axis = std::uint32_t(attrs_of<heddle_all_to_all_attrs>(*issued.ops[0]).part_axis);
  for (std::uint32_t to = 0; to < issued.count(); ++to) {
    const auto attrs = attrs_of<heddle_all_to_all_attrs>(*issued.ops[to]);
    for (std::uint32_t from = 0; from < issued.count(); ++from) {
      given[to].push_back(
          part_of(issued.in[from], axis, attrs.part_begin, attrs.part_end - attrs.part_begin));
      if (from == to || is_read(issued, from, to)) continue;
      const heddle_tensor_info info = dense(given[to][from].info, "exchanged part");
      const std::uint32_t slot = issued.slot_of(from);
      const Operand packed{builder_.add_scratch(slot, dense_bytes(info)), 0, info};
      builder_.launch(issued.node, issued.branch, slot, op_id(HEDDLE_OP_COPY), {given[to][from]},
                      {packed});
      given[to][from] = packed;
    }
  }
  return given;
}

// `given`: by giver.
void SessionCollectives::receive(const IssuedRef& issued, std::uint32_t to,
                                 const std::vector<Operand>& given, std::size_t position) {
  const auto joined = std::uint32_t(attrs_of<heddle_all_to_all_attrs>(*issued->ops[0]).join_axis);
  const auto dest_of = [&](std::uint32_t from) {
    return part_of(issued->out[to], joined,
                   attrs_of<heddle_all_to_all_attrs>(*issued->ops[from]).begin,
                   given[from].info.shape[joined]);
  };
  const auto put = [this, issued, to](const Operand& what, const Operand& dest) {
    builder_.launch(issued->node, issued->branch, issued->slot_of(to), op_id(HEDDLE_OP_COPY),
                    {what}, {dest});
  };
  auto& rest = under_way_->rest[to];
  const auto attrs = attrs_of<heddle_all_to_all_attrs>(*issued->ops[to]);
  const Operand own = dest_of(to);
  if (attrs.keeps_own != 0)
    under_way_->out[to].kept = UnderWay::Rows{joined, attrs.begin, own.info.shape[joined]};
  else  // while those of the others are on their way
    rest.push_back([put, part = given[to], own] { put(part, own); });
  const Source source{issued->node, 0};
  for (std::uint32_t from = 0; from < issued->count(); ++from) {
    if (from == to) continue;
    const Operand part = given[from], dest = dest_of(from);
    const bool is_there = is_read(*issued, from, to);
    const std::uint32_t transfer =
        is_there ? give_into(source, issued->branch, part, dest, position)
                 : give(source, issued->branch, part, issued->slot_of(to), position);
    rest.push_back([this, put, dest, is_there, transfer] {
      builder_.await(transfer, builder_.phase());
      if (!is_there) put(builder_.plan().transfers[transfer].dest, dest);
    });
  }
}

}  // namespace heddle::engine
