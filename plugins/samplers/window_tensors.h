// Tensors cut by context windows, and put together again. On the device of the call; one call's
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include <heddle/node.hpp>

#include "attention_pairs.h"
#include "context_windows.h"

namespace heddle::samplers {

// The tensor with these places of an axis, in this order.
Tensor with_places(Context& ctx, const Tensor& tensor, std::size_t axis,
                   const std::vector<std::int64_t>& places);

// What a window sees of what a model reads besides the point, for an axis of `full` places: along
// the batch, texts and pictures that have a row for each item; along a side, the picture beside the
// point; along time, that and how noisy each frame is. The rest as it is.
Value constants_in(Context& ctx, const Value& constants, const WindowRule& rule,
                   const ContextWindow& window, std::int64_t full);
Constants constants_in(Constants constants, const WindowRule& rule, const ContextWindow& window,
                       std::int64_t full);

// What the windows made, each of the places that it sees, as one tensor of `shape`.
Tensor joined(Context& ctx, const std::vector<Tensor>& made, const ContextWindows& windows,
              std::size_t axis, const Shape& shape);

}  // namespace heddle::samplers
