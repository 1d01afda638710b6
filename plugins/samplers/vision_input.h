// What a vision tower saw of pictures, as models read it: its states before the last layer, or
// behind it where the settings say vision_states. One call's thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

// seen: a CLIP_VISION_OUTPUT. (1 or items, tokens, W), W being the setting vision_width. Throws
// where it has no such states or others.
Tensor vision_states(Context& ctx, const Value& seen, const Value& settings, std::int64_t items);

}  // namespace heddle::samplers
