#include "kept_references.h"

#include <heddle/ops.hpp>

#include "joint_attention.h"

namespace heddle::denoisers {

std::int64_t KeptReferences::given(Context& ctx) const {
  return input != nullptr && ctx.has(*input) ? ctx[*input].size(1) : 0;
}

void KeptReferences::pass(Context& ctx, const Tensor& qkv, std::int64_t length,
                          std::int64_t shown) const {
  if (output == nullptr) return;
  if (ctx.group().kind != HEDDLE_GROUP_NONE)
    throw Error(HEDDLE_UNSUPPORTED,
                "keys and values of reference pictures are kept whole (FluxKVCache), which does "
                "not go together with parallel modes that divide blocks. Use layers, cfg or data, "
                "or leave out FluxKVCache.");
  const std::int64_t width = qkv.size(2) / 3;
  const Tensor keys_and_values = qkv.slice(2, width, 3 * width);
  if (const std::int64_t count = given(ctx); count > 0)
    ops::copy_into(ctx, ctx[*input], tokens(keys_and_values, {length, length + count}));
  ctx[*output] = shown > 0 ? ops::contiguous(ctx, tokens(keys_and_values, {length - shown, length}))
                           : ctx.make({qkv.size(0), 0, 2 * width});
}

}  // namespace heddle::denoisers
