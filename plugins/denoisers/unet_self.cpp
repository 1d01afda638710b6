#include "unet_self.h"

#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"

namespace heddle::denoisers {

void UnetSelfIn::execute(Context& ctx) {
  const Tensor normed = ops::layer_norm(ctx, ctx[tokens], ctx[norm], ctx[norm_bias], ctx[eps]);
  ctx[asked] = ops::linear(ctx, normed, ctx[qk], {});
  ctx[attended] = ops::linear(ctx, normed, ctx[v], {});
}

void UnetSelf::execute(Context& ctx) {
  const Tensor both = ctx[asked];
  const std::int64_t width = both.size(2) / 2, count = ctx[heads];
  const auto split = [&](const Tensor& x) { return blocks::split_heads(x, count); };
  ctx[out] = blocks::join_heads(
      ops::attention(ctx, split(both.slice(2, 0, width)), split(both.slice(2, width, 2 * width)),
                     split(ctx[values]), {}, 1 / std::sqrt(double(width / count))));
}

}  // namespace heddle::denoisers
