#include "engine/program/session_values.h"

#include <algorithm>
#include <numeric>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/call.h"
#include "engine/tensor/shape.h"
#include "heddle/abi/model.h"
#include "heddle/abi/ops.h"

namespace heddle::core {

std::uint32_t token_axis(const heddle_tensor_info& info) {
  if (info.rank < 2)
    throw Error(Code::invalid_argument,
                cat(describe(info), " holds no tokens: it has less than two axes"));
  return info.rank - 2;
}

Source SessionValues::maker_of(const Source& source, std::uint32_t lane) const {
  const auto held = handed_on_.find({source.node, source.port, lane});
  return held != handed_on_.end() ? held->second : source;
}

SessionValues::Known& SessionValues::known(const Source& source, std::uint32_t lane) {
  const Source maker = maker_of(source, lane);
  return known_[{maker.node, maker.port, lane}];
}

const SessionValues::Known* SessionValues::find(const Source& source, std::uint32_t lane) const {
  const Source maker = maker_of(source, lane);
  const auto found = known_.find({maker.node, maker.port, lane});
  return found == known_.end() ? nullptr : &found->second;
}

Rate SessionValues::rate_of(const Source& source) const {
  return source.node == kGraphInputs ? input_rate(graph_.inputs[source.port]) : rates_[source.node];
}

bool SessionValues::is_external(const Source& source) const {
  return source.node == kGraphInputs && input_rate(graph_.inputs[source.port]) != Rate::step;
}

// An input of the graph that stays the same during the loop: brought to a place before it.
std::optional<Operand> SessionValues::external_at(const Source& source, std::uint32_t lane,
                                                  std::uint32_t place) {
  const GraphInput& input = graph_.inputs[source.port];
  const Rate rate = input_rate(input);
  lane = inputs_.first_equal(input, lane);
  const auto found = externals_.find({source.port, lane, place});
  if (found != externals_.end()) return found->second;
  const auto info = inputs_.info(input, lane);
  if (!info) return {};
  const auto kind =
      rate == Rate::constant ? SessionStorage::Kind::constant : SessionStorage::Kind::schedule;
  const Operand value{
      builder_.add_storage({kind, place, dense_bytes(*info), 0, lane, 0, 0, input.name}), 0, *info};
  externals_[{source.port, lane, place}] = value;
  return value;
}

// Where a value is made, whole; nothing for an optional input that was not given. Not for constant
// and scheduled inputs.
std::optional<Operand> SessionValues::origin(const Source& source, std::uint32_t lane) {
  const Known* const found = find(source, lane);
  if (found != nullptr && found->divided && !found->origin) gather(source, lane);
  if (found != nullptr && found->origin) return found->origin;
  if (source.node != kGraphInputs)
    throw Error(Code::internal,
                cat("block ", graph_.nodes[source.node].id, " was read before it was planned"));
  const GraphInput& input = graph_.inputs[source.port];
  const auto given = inputs_.info(input, lane);
  if (!given) return {};
  // Copied to a fixed place: row-major there.
  const heddle_tensor_info info = dense(*given, "step input");
  const Operand value{builder_.add_storage({SessionStorage::Kind::step_input, spec_.home,
                                            dense_bytes(info), 0, lane, 0, 0, input.name}),
                      0, info};
  known(source, lane).origin = value;
  return value;
}

std::optional<Operand> SessionValues::value_at(Source source, std::uint32_t lane,
                                               std::uint32_t place) {
  source = maker_of(source, lane);
  if (is_external(source)) return external_at(source, lane, place);
  const auto value = origin(source, lane);
  if (!value || builder_.place_of(*value) == place) return value;
  Known& of = known(source, lane);
  if (const auto replica = of.replicas.find(place); replica != of.replicas.end())
    return replica->second;
  const auto [at, is_new] = of.arrivals.try_emplace(place, 0);
  if (is_new)
    at->second = builder_.send(source, lane, *value, place, rate_of(source), made_by(source, lane));
  builder_.await(at->second, rate_of(source));
  return builder_.plan().transfers[at->second].dest;
}

// How many actions of its phase stand before a value is there whole.
std::size_t SessionValues::made_by(const Source& source, std::uint32_t lane) {
  if (const Known* const of = find(source, lane); of != nullptr && of->gathered)
    return *of->gathered;
  const auto end = block_ends_.find({source.node, lane});
  return end == block_ends_.end() ? 0 : end->second;
}

std::optional<Operand> SessionValues::read_at(Source source, std::uint32_t lane,
                                              std::uint32_t place) {
  source = maker_of(source, lane);
  if (builder_.phase() != Rate::step || rate_of(source) != Rate::scheduled)
    return value_at(source, lane, place);
  if (is_external(source)) lane = inputs_.first_equal(graph_.inputs[source.port], lane);
  Known& of = known(source, lane);
  if (const auto found = of.slices.find(place); found != of.slices.end()) return found->second;
  const auto value = value_at(source, lane, place);
  if (!value) return {};
  return of.slices[place] = builder_.add_slice(*value, lane, place);
}

std::optional<Operand> SessionValues::shape_of(Source source, std::uint32_t lane) {
  source = maker_of(source, lane);
  std::optional<heddle_tensor_info> info;
  if (source.node == kGraphInputs) {
    info = inputs_.info(graph_.inputs[source.port], lane);
  } else {
    const Known* const of = find(source, lane);
    if (of == nullptr || !of->origin)
      throw Error(Code::unsupported,
                  cat("block ", graph_.nodes[source.node].id,
                      ": its shape is read in an earlier phase than it runs in"));
    info = of->origin->info;
  }
  if (!info) return {};
  if (rate_of(source) == Rate::step && source.node == kGraphInputs)
    info = dense(*info, "step input");
  return Operand{-1, 0, rate_of(source) == Rate::scheduled ? one_row(*info) : *info};
}

std::optional<std::vector<std::int64_t>> SessionValues::token_counts(Source source,
                                                                     std::uint32_t lane) {
  source = maker_of(source, lane);
  if (const Known* const of = find(source, lane); of != nullptr && of->divided)
    return of->divided->counts;
  if (is_external(source)) return {};  // an input that every one of the group has whole
  const auto whole = origin(source, lane);
  if (!whole) return {};
  std::vector<std::int64_t> counts =
      divide(whole->info.shape[token_axis(whole->info)], spec_.placement.shares);
  const bool all_have_some =
      std::ranges::all_of(counts, [](std::int64_t count) { return count > 0; });
  return all_have_some ? std::optional(std::move(counts)) : std::nullopt;
}

Operand SessionValues::share_at(const Source& source, std::uint32_t lane, std::uint32_t rank,
                                const std::vector<std::int64_t>& counts) {
  if (const Known* const of = find(source, lane); of != nullptr && of->divided)
    return of->divided->parts[rank];
  const Operand made = *origin(source, lane);
  Known& of = known(source, lane);
  if (const auto found = of.shares.find(rank); found != of.shares.end()) return found->second;
  const auto there = of.arrivals.find(rank);
  const Operand whole =
      there == of.arrivals.end() ? made : builder_.plan().transfers[there->second].dest;
  const std::int64_t begin =
      std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t(0));
  Operand part = part_of(whole, token_axis(whole.info), begin, counts[rank]);
  if (builder_.place_of(part) != rank) {
    const std::uint32_t transfer = builder_.send(maker_of(source, lane), lane, part, rank,
                                                 rate_of(source), made_by(source, lane));
    builder_.await(transfer, rate_of(source));
    part = builder_.plan().transfers[transfer].dest;
  }
  return of.shares[rank] = part;
}

bool SessionValues::is_share(const Source& source, std::uint32_t lane, std::uint32_t rank) const {
  const Known* const of = find(source, lane);
  return of != nullptr && (of->divided || of->shares.contains(rank));
}

std::uint32_t SessionValues::send_part(const Source& source, std::uint32_t lane, std::uint32_t rank,
                                       const Operand& part, std::uint32_t place,
                                       std::size_t position) {
  const auto [at, is_new] = known(source, lane).parts.try_emplace({rank, place}, 0);
  if (is_new)
    at->second =
        builder_.send(maker_of(source, lane), lane, part, place, builder_.phase(), position);
  return at->second;
}

// Puts a divided value together on the first place.
void SessionValues::gather(const Source& source, std::uint32_t lane) {
  Known& of = known(source, lane);
  const Divided& divided = *of.divided;
  heddle_tensor_info info = divided.parts[0].info;
  const std::uint32_t axis = token_axis(info);
  info.shape[axis] = std::accumulate(divided.counts.begin(), divided.counts.end(), std::int64_t(0));
  info = dense(info, "gathered value");
  const Operand whole{builder_.add_scratch(0, dense_bytes(info)), 0, info};
  std::int64_t begin = 0;
  for (std::uint32_t rank = 0; rank < divided.parts.size(); ++rank) {
    Operand part = divided.parts[rank];
    if (builder_.place_of(part) != 0) {
      const std::uint32_t transfer = send_part(source, lane, rank, part, 0, builder_.position());
      builder_.await(transfer, builder_.phase());
      part = builder_.plan().transfers[transfer].dest;
    }
    builder_.launch(source.node, lane, 0, op_id(HEDDLE_OP_COPY), {part},
                    {part_of(whole, axis, begin, divided.counts[rank])});
    begin += divided.counts[rank];
  }
  of.origin = whole;
  of.gathered = builder_.position();
}

void SessionValues::add(const Source& made, std::uint32_t lane, const Operand& where) {
  known(made, lane).origin = where;
}

void SessionValues::add_replica(const Source& made, std::uint32_t lane, std::uint32_t place,
                                const Operand& where) {
  known(made, lane).replicas[place] = where;
}

void SessionValues::add_divided(const Source& made, std::uint32_t lane, Divided divided) {
  known(made, lane).divided = std::move(divided);
}

void SessionValues::hand_on(const Source& made, std::uint32_t lane, const Source& held) {
  handed_on_[{made.node, made.port, lane}] = maker_of(held, lane);
}

void SessionValues::end_block(NodeIndex n, std::uint32_t lane) {
  block_ends_[{n, lane}] = builder_.position();
}

}  // namespace heddle::core
