#include "engine/program/session_values.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

namespace heddle::engine {

std::uint32_t token_axis(const heddle_tensor_info& info) {
  if (info.rank < 2)
    throw Error(Code::invalid_argument,
                cat(describe(info), " holds no tokens: it has less than two axes"));
  return info.rank - 2;
}

Source SessionValues::maker_of(const Source& source, std::uint32_t branch) const {
  const auto held = handed_on_.find({source.node, source.port, branch});
  return held != handed_on_.end() ? held->second : source;
}

SessionValues::Known& SessionValues::known(const Source& source, std::uint32_t branch) {
  const Source maker = maker_of(source, branch);
  return known_[{maker.node, maker.port, branch}];
}

const SessionValues::Known* SessionValues::find(const Source& source, std::uint32_t branch) const {
  const Source maker = maker_of(source, branch);
  const auto found = known_.find({maker.node, maker.port, branch});
  return found == known_.end() ? nullptr : &found->second;
}

Phase SessionValues::phase_of(const Source& source) const {
  return source.node == kGraphInputs ? input_phase(graph_.inputs[source.port])
                                     : phases_[source.node];
}

bool SessionValues::is_external(const Source& source) const {
  return source.node == kGraphInputs && input_phase(graph_.inputs[source.port]) != Phase::per_step;
}

// An input of the graph that stays the same during the loop: brought to a device slot before it.
std::optional<Operand> SessionValues::external_at(const Source& source, std::uint32_t branch,
                                                  std::uint32_t device_slot) {
  const GraphInput& input = graph_.inputs[source.port];
  const Phase phase = input_phase(input);
  branch = inputs_.first_equal(input, branch);
  const auto found = externals_.find({source.port, branch, device_slot});
  if (found != externals_.end()) return found->second;
  const auto info = inputs_.info(input, branch);
  if (!info) return {};
  const auto kind = phase == Phase::loop_invariant ? SessionStorage::Kind::loop_invariant
                                                   : SessionStorage::Kind::precomputed;
  const Operand value{
      builder_.add_storage({kind, device_slot, dense_bytes(*info), 0, branch, 0, 0, input.name}), 0,
      *info};
  externals_[{source.port, branch, device_slot}] = value;
  return value;
}

// Where a value is made, whole; nothing for an optional input that was not given. Not for constant
// and precomputed inputs.
std::optional<Operand> SessionValues::origin(const Source& source, std::uint32_t branch) {
  const Known* const found = find(source, branch);
  if (found != nullptr && found->sharded && !found->origin) gather(source, branch);
  if (found != nullptr && found->origin) return found->origin;
  if (source.node != kGraphInputs)
    throw Error(Code::internal,
                cat("block ", graph_.nodes[source.node].id, " was read before it was planned"));
  const GraphInput& input = graph_.inputs[source.port];
  const auto given = inputs_.info(input, branch);
  if (!given) return {};
  // Copied to a fixed place: row-major there.
  const heddle_tensor_info info = dense(*given, "step input");
  const Operand value{builder_.add_storage({SessionStorage::Kind::step_input, spec_.home,
                                            dense_bytes(info), 0, branch, 0, 0, input.name}),
                      0, info};
  known(source, branch).origin = value;
  return value;
}

std::optional<Operand> SessionValues::value_at(Source source, std::uint32_t branch,
                                               std::uint32_t device_slot) {
  source = maker_of(source, branch);
  if (is_external(source)) return external_at(source, branch, device_slot);
  const auto value = origin(source, branch);
  if (!value || builder_.device_slot_of(*value) == device_slot) return value;
  Known& of = known(source, branch);
  if (const auto replica = of.replicas.find(device_slot); replica != of.replicas.end())
    return replica->second;
  const auto [at, is_new] = of.arrivals.try_emplace(device_slot, 0);
  if (is_new)
    at->second = builder_.send(source, branch, *value, device_slot, phase_of(source),
                               made_by(source, branch));
  builder_.await(at->second, phase_of(source));
  return builder_.plan().transfers[at->second].dest;
}

// How many actions of its phase stand before a value is there whole.
std::size_t SessionValues::made_by(const Source& source, std::uint32_t branch) {
  if (const Known* const of = find(source, branch); of != nullptr && of->gathered)
    return *of->gathered;
  const auto end = block_ends_.find({source.node, branch});
  return end == block_ends_.end() ? 0 : end->second;
}

std::optional<Operand> SessionValues::read_at(Source source, std::uint32_t branch,
                                              std::uint32_t device_slot) {
  source = maker_of(source, branch);
  if (builder_.phase() != Phase::per_step || phase_of(source) != Phase::precomputed)
    return value_at(source, branch, device_slot);
  if (is_external(source)) branch = inputs_.first_equal(graph_.inputs[source.port], branch);
  Known& of = known(source, branch);
  if (const auto found = of.slices.find(device_slot); found != of.slices.end())
    return found->second;
  const auto value = value_at(source, branch, device_slot);
  if (!value) return {};
  return of.slices[device_slot] = builder_.add_slice(*value, branch, device_slot);
}

std::optional<Operand> SessionValues::shape_of(Source source, std::uint32_t branch) {
  source = maker_of(source, branch);
  std::optional<heddle_tensor_info> info;
  if (source.node == kGraphInputs) {
    info = inputs_.info(graph_.inputs[source.port], branch);
  } else {
    const Known* const of = find(source, branch);
    if (of == nullptr || !of->origin)
      throw Error(Code::unsupported,
                  cat("block ", graph_.nodes[source.node].id,
                      ": its shape is read in an earlier phase than it runs in"));
    info = of->origin->info;
  }
  if (!info) return {};
  if (phase_of(source) == Phase::per_step && source.node == kGraphInputs)
    info = dense(*info, "step input");
  return Operand{-1, 0, phase_of(source) == Phase::precomputed ? one_row(*info) : *info};
}

std::optional<std::vector<std::int64_t>> SessionValues::token_counts(Source source,
                                                                     std::uint32_t branch) {
  source = maker_of(source, branch);
  if (const Known* const of = find(source, branch); of != nullptr && of->sharded)
    return of->sharded->counts;
  if (is_external(source)) return {};  // an input that every one of the group has whole
  const auto whole = origin(source, branch);
  if (!whole) return {};
  std::vector<std::int64_t> counts =
      shard_sizes(whole->info.shape[token_axis(whole->info)], spec_.placement.rank_fractions);
  const bool all_have_some =
      std::ranges::all_of(counts, [](std::int64_t count) { return count > 0; });
  return all_have_some ? std::optional(std::move(counts)) : std::nullopt;
}

Operand SessionValues::shard_at(const Source& source, std::uint32_t branch, std::uint32_t rank,
                                const std::vector<std::int64_t>& counts) {
  if (const Known* const of = find(source, branch); of != nullptr && of->sharded)
    return of->sharded->parts[rank];
  const Operand made = *origin(source, branch);
  Known& of = known(source, branch);
  if (const auto found = of.shards.find(rank); found != of.shards.end()) return found->second;
  const std::uint32_t here = first_of_group(branch) + rank;
  const auto there = of.arrivals.find(here);
  const Operand whole =
      there == of.arrivals.end() ? made : builder_.plan().transfers[there->second].dest;
  const std::int64_t begin =
      std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t(0));
  Operand part = part_of(whole, token_axis(whole.info), begin, counts[rank]);
  if (builder_.device_slot_of(part) != here) {
    const std::uint32_t transfer = builder_.send(maker_of(source, branch), branch, part, here,
                                                 phase_of(source), made_by(source, branch));
    builder_.await(transfer, phase_of(source));
    part = builder_.plan().transfers[transfer].dest;
  }
  return of.shards[rank] = part;
}

bool SessionValues::is_share(const Source& source, std::uint32_t branch, std::uint32_t rank) const {
  const Known* const of = find(source, branch);
  return of != nullptr && (of->sharded || of->shards.contains(rank));
}

std::uint32_t SessionValues::send_part(const Source& source, std::uint32_t branch,
                                       std::uint32_t rank, const Operand& part,
                                       std::uint32_t device_slot, std::size_t position) {
  const auto [at, is_new] = known(source, branch).parts.try_emplace({rank, device_slot}, 0);
  if (is_new)
    at->second = builder_.send(maker_of(source, branch), branch, part, device_slot,
                               builder_.phase(), position);
  return at->second;
}

// Puts a divided value together on the first device slot of its group.
void SessionValues::gather(const Source& source, std::uint32_t branch) {
  Known& of = known(source, branch);
  const Sharded& sharded = *of.sharded;
  heddle_tensor_info info = sharded.parts[0].info;
  const std::uint32_t axis = token_axis(info);
  info.shape[axis] = std::accumulate(sharded.counts.begin(), sharded.counts.end(), std::int64_t(0));
  info = dense(info, "gathered value");
  const std::uint32_t first = first_of_group(branch);
  const Operand whole{builder_.add_scratch(first, dense_bytes(info)), 0, info};
  std::int64_t begin = 0;
  for (std::uint32_t rank = 0; rank < sharded.parts.size(); ++rank) {
    Operand part = sharded.parts[rank];
    if (builder_.device_slot_of(part) != first) {
      const std::uint32_t transfer =
          send_part(source, branch, rank, part, first, builder_.position());
      builder_.await(transfer, builder_.phase());
      part = builder_.plan().transfers[transfer].dest;
    }
    builder_.launch(source.node, branch, first, op_id(HEDDLE_OP_COPY), {part},
                    {part_of(whole, axis, begin, sharded.counts[rank])});
    begin += sharded.counts[rank];
  }
  of.origin = whole;
  of.gathered = builder_.position();
}

void SessionValues::add(const Source& made, std::uint32_t branch, const Operand& where) {
  known(made, branch).origin = where;
}

void SessionValues::add_replica(const Source& made, std::uint32_t branch, std::uint32_t device_slot,
                                const Operand& where) {
  known(made, branch).replicas[device_slot] = where;
}

void SessionValues::add_divided(const Source& made, std::uint32_t branch, Sharded sharded) {
  known(made, branch).sharded = std::move(sharded);
}

void SessionValues::hand_on(const Source& made, std::uint32_t branch, const Source& held) {
  handed_on_[{made.node, made.port, branch}] = maker_of(held, branch);
}

void SessionValues::end_block(NodeIndex n, std::uint32_t branch) {
  block_ends_[{n, branch}] = builder_.position();
}

}  // namespace heddle::engine
