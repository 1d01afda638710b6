// A large matrix on its way to a device, in groups of rows: one is copied while the next comes into
// a pinned buffer, and it needs buffers of a group's size, not of its own.
#pragma once

#include <vector>

#include "engine/memory/weight_source.h"

namespace heddle::engine {

// The rows in order, in groups of at most HostWeights::group_bytes() in the file (or of one row).
// Only the source itself where it is no larger, where it is no matrix of f32 or 16 bits that lies
// in the file as it is, where rows are no multiple of 512 bytes, and where the device does not take
// bytes from pinned memory.
std::vector<WeightSource> row_groups(const WeightSource& source, const DeviceState& state);

// The parts of files in the order in which a store of weights asks for them.
std::vector<FilePart> loaded_parts(const WeightSource& source, const DeviceState& state);

// Whether layouts of groups, one after another, are that of the whole: dense rows of one type.
bool are_rows(const heddle_weight_layout& whole, const std::vector<heddle_weight_layout>& groups);

}  // namespace heddle::engine
