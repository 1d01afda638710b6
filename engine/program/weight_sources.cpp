#include "engine/program/weight_sources.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/memory/weight_factors.h"
#include "engine/program/call_placement.h"
#include "engine/program/session_plan.h"
#include "engine/program/weight_slot.h"

namespace heddle::engine {

std::vector<std::optional<WeightSource>> weight_sources(const Model& model, const Node& node) {
  std::vector<std::optional<WeightSource>> sources(node.weights.size());
  for (std::uint32_t slot = 0; slot < node.weights.size(); ++slot) {
    if (node.weights[slot].empty()) continue;
    WeightSource source;
    source.use = node.type->slot(slot).use;
    source.patches = model.patches;
    source.frame = node.weights[slot].front().frame;
    for (const WeightPart& part : node.weights[slot]) {
      const TensorView& tensor = model.checkpoint->at(part.tensor);
      const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
      source.parts.push_back({&tensor, part.begin, part.end < 0 ? rows : part.end});
    }
    sources[slot] = std::move(source);
  }
  return sources;
}

std::vector<WeightSource> weights_of(const Model& model, const Node& node) {
  const std::vector<std::optional<WeightSource>> sources = weight_sources(model, node);
  std::vector<WeightSource> all;
  for (std::uint32_t slot = 0; slot < sources.size(); ++slot)
    for (const WeightPiece piece :
         {WeightPiece::whole, WeightPiece::down, WeightPiece::up, WeightPiece::scale}) {
      const std::uint32_t number = weight_number(node, {slot, piece});
      if (auto source = numbered_source(sources, node, number, {}, kWholeWeight))
        all.push_back(std::move(*source));
    }
  return all;
}

namespace {

std::vector<WeightSource::Range> rank_ranges(const WeightShard& shard,
                                             const std::vector<double>& shares,
                                             std::uint32_t rank) {
  std::vector<WeightSource::Range> ranges;
  std::int64_t begin = 0;
  for (const WeightShard::Segment& segment : shard.segments) {
    const std::vector<std::int64_t> units = shard_sizes(segment.length / segment.unit, shares);
    std::int64_t first = begin;
    for (std::uint32_t m = 0; m < rank; ++m) first += units[m] * segment.unit;
    ranges.push_back({first, first + units[rank] * segment.unit});
    begin += segment.length;
  }
  return ranges;
}

// Rows of the joined parts, as rows of the parts.
std::vector<WeightSource::Part> rows_of(const std::vector<WeightSource::Part>& parts,
                                        const std::vector<WeightSource::Range>& ranges) {
  std::vector<WeightSource::Part> rows;
  for (const WeightSource::Range& range : ranges) {
    std::int64_t at = 0;  // the part's first row among all
    for (const WeightSource::Part& part : parts) {
      const std::int64_t size = part.end - part.begin;
      const std::int64_t begin = std::max(range.begin, at), end = std::min(range.end, at + size);
      if (begin < end)
        rows.push_back({part.tensor, part.begin + begin - at, part.begin + end - at});
      at += size;
    }
  }
  return rows;
}

}  // namespace

std::string weights_name(const Model& model) {
  const std::filesystem::path path =
      model.checkpoint == nullptr ? std::filesystem::path() : model.checkpoint->path();
  return cat(model.family, " ", (path.parent_path().filename() / path.filename()).string());
}

WeightSource rank_source(const WeightSource& whole, const WeightShard& shard,
                         const std::vector<double>& shares, std::uint32_t rank) {
  if (shard.axis < 0) return whole;
  const heddle_tensor_info info = whole.info();
  std::int64_t length = 0;
  for (const WeightShard::Segment& segment : shard.segments) length += segment.length;
  if (std::uint32_t(shard.axis) >= info.rank || info.shape[shard.axis] != length)
    throw Error(Code::invalid_argument,
                cat(quote(whole.parts[0].tensor->name), " has ", info.shape[shard.axis],
                    " entries along axis ", shard.axis, ", its stretches add up to ", length));
  const std::vector<WeightSource::Range> ranges = rank_ranges(shard, shares, rank);
  WeightSource part = whole;
  if (shard.axis == 0)
    part.parts = rows_of(whole.parts, ranges);
  else
    part.columns = ranges;
  return part;
}

std::optional<WeightSource> numbered_source(const std::vector<std::optional<WeightSource>>& sources,
                                            const Node& node, std::uint32_t number,
                                            const std::vector<double>& shares, std::uint32_t rank) {
  const WeightSlot slot = weight_slot(node, number);
  if (!sources[slot.slot]) return {};
  const bool is_whole = rank == kWholeWeight || slot.slot >= node.shards.size();
  const WeightSource source =
      is_whole ? *sources[slot.slot]
               : rank_source(*sources[slot.slot], node.shards[slot.slot], shares, rank);
  if (slot.piece == WeightPiece::whole) return source;
  if (slot.piece == WeightPiece::scale) return column_scale(source);
  auto factors = weight_factors(source);
  if (!factors) return {};
  return slot.piece == WeightPiece::down ? factors->down : factors->up;
}

}  // namespace heddle::engine
