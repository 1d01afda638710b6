// What fills the slots of a model's blocks: looked up in its checkpoint, whole or as one rank of a
// group gets it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "engine/graph/model.h"
#include "engine/memory/weights.h"

namespace heddle::engine {

// The weights of a node's slots; empty where a slot is not given.
std::vector<std::optional<WeightSource>> weight_sources(const Model& model, const Node& node);

// The rank's part: of each segment whole units, by fractions. A weight that may not be divided
// stays whole.
WeightSource rank_source(const WeightSource& whole, const WeightShard& shard,
                         const std::vector<double>& shares, std::uint32_t rank);

// The weight of a number (weight_slot.h) for a rank of a group, or whole (kWholeWeight), of
// the `sources` of the node's slots; nothing: not given, or no patch is added beside it.
std::optional<WeightSource> numbered_source(const std::vector<std::optional<WeightSource>>& sources,
                                            const Node& node, std::uint32_t number,
                                            const std::vector<double>& shares, std::uint32_t rank);

// All weights of a node's slots, whole, with what is added beside matrices.
std::vector<WeightSource> weights_of(const Model& model, const Node& node);

// What people know a model's weights by: "flux diffusion_models/flux1-dev.safetensors".
std::string weights_name(const Model& model);

}  // namespace heddle::engine
