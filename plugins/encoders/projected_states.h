// The states of all layers of a language model as the projection behind it (text_projection.h)
// makes them into a conditioning. One call's thread.
#pragma once

#include <heddle/model.hpp>

namespace heddle::encoders {

// states (1, S, L D) f32, without padding -> (1, S, P) f32. Where the projection takes them,
// factors and addends bring each layer to a mean of 0 and a range of 8, over tokens and elements.
Tensor projected_states(Context& ctx, const Value& projection, const Tensor& states);

// The inputs of that call.
Infer::Set projection_shapes(const Value& projection, std::int64_t tokens);

}  // namespace heddle::encoders
