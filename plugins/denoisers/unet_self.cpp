#include "unet_self.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "plugins/blocks/heads.h"
#include "unet_filler.h"
#include "unet_hyper.h"
#include "weighed_sum.h"

namespace heddle::denoisers {

void UnetSelfIn::execute(Context& ctx) {
  const Tensor normed = ops::layer_norm(ctx, ctx[tokens], ctx[norm], ctx[norm_bias], ctx[eps]);
  const Tensor made = ops::linear(ctx, normed, ctx[qk], {});
  if (ctx.has(keys_of)) {
    const std::int64_t width = made.size(2) / 2;
    const auto keys = [&](const Tensor& all) { return all.slice(2, width, 2 * width); };
    ops::copy_into(ctx, keys(ops::linear(ctx, ctx[keys_of], ctx[qk], {})), keys(made));
  }
  ctx[asked] = made;
  ctx[attended] = ops::linear(ctx, ctx.has(values_of) ? ctx[values_of] : normed, ctx[v], {});
}

void UnetSelf::execute(Context& ctx) {
  const Tensor both = ctx[asked];
  const std::int64_t width = both.size(2) / 2;
  ctx[out] = attend_in_tiles(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             ctx[values], ctx[heads], tiles_at(ctx, both.size(1)));
}

// Attention to unit vectors gives the weights themselves, for some tokens at a time.
void UnetSelfAttended::execute(Context& ctx) {
  constexpr std::int64_t kAtOnce = 64;
  const Tensor both = ctx[asked];
  const std::int64_t items = both.size(0), tokens = both.size(1), width = both.size(2) / 2,
                     count = ctx[heads];
  const Tensor q = blocks::split_heads(both.slice(2, 0, width), count),
               k = blocks::split_heads(both.slice(2, width, 2 * width), count);
  const Tensor unit = ctx.make({tokens, tokens + 1}, HEDDLE_F32);
  ops::fill(ctx, unit, 0);
  ops::fill(ctx, unit.slice(1, 0, 1), 1);  // a diagonal of rows that are one shorter
  const Tensor diagonal = unit.reshape({tokens * (tokens + 1)})
                              .slice(0, 0, tokens * tokens)
                              .reshape({1, tokens, 1, tokens});
  const Tensor all = ctx.make({items, tokens}, HEDDLE_F32);
  for (std::int64_t first = 0; first < tokens; first += kAtOnce) {
    const std::int64_t seen = std::min(kAtOnce, tokens - first);
    const Tensor values = ctx.make({items, tokens, count, seen}, HEDDLE_F32),
                 weights = ctx.make(values.shape(), HEDDLE_F32),
                 shares = ctx.make({tokens, count, seen}, HEDDLE_F32);
    ops::fill(ctx, values, 0);
    ops::add_into(ctx, values, diagonal.slice(3, first, first + seen), values);
    ops::attention_into(ctx, q, k, values, {}, 1 / std::sqrt(double(width / count)),
                        ops::Mask::none, weights);
    ops::fill(ctx, shares, 1 / double(count));
    ops::copy_into(ctx, weighed_sum(ctx, weights, shares).reshape({items, seen}),
                   all.slice(1, first, first + seen));
  }
  ctx[out] = all;
}

void check_middle(const Checkpoint& file, const UnetNames& names) {
  const auto attends = [](const UnetPart& part) {
    return part.kind == UnetPart::Kind::transformer;
  };
  if (std::ranges::none_of(names.middle(), attends))
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() +
                    ": SelfAttentionGuidance sees where the middle of a UNet attends to, and this "
                    "one's has no attention. Leave the node out.");
}

Source add_self_blocks(const UnetSelfPlace& place, Blocks& graph) {
  const auto& [file, names, part, path, at, heads, width, tokens, x, patches] = place;
  const auto filler = [&](Block& block, const std::string& of) {
    return UnetFiller{place.names, &place.part, blocks::Slots(place.file, block, of)};
  };
  Block made = graph.add<UnetSelfIn>(path + ".asked");
  made.link(UnetSelfIn::tokens, tokens);
  UnetFiller fill = filler(made, path + ".asked");
  fill.both(UnetSelfIn::norm, UnetSelfIn::norm_bias, at + "norm1", {width});
  fill.matrix(UnetSelfIn::qk, {at + "attn1.to_q", at + "attn1.to_k"}, {2 * width, width});
  fill.matrix(UnetSelfIn::v, {at + "attn1.to_v"}, {width, width});
  if (has_hypernetwork(patches.hypernetworks, file, width)) {
    Block norm = graph.add<UnetSelfNorm>(path + ".normed");
    norm.link(UnetSelfNorm::tokens, tokens);
    filler(norm, path + ".normed")
        .both(UnetSelfNorm::norm, UnetSelfNorm::norm_bias, at + "norm1", {width});
    const auto changed =
        add_hypernetworks(patches.hypernetworks, file, path, norm[UnetSelfNorm::out], width, graph);
    made.link(UnetSelfIn::keys_of, changed->keys).link(UnetSelfIn::values_of, changed->values);
  }
  Block self = graph.add<UnetSelf>(path + ".self");
  self.link(UnetSelf::asked, made[UnetSelfIn::asked])
      .link(UnetSelf::values, made[UnetSelfIn::attended])
      .set(UnetSelf::heads, heads);
  set_tiles(self, patches.tiles, x, path);
  if (patches.tells_attended && path == "middle.1.transformer.0") {
    Block told = graph.add<UnetSelfAttended>(path + ".attended");
    told.link(UnetSelfAttended::asked, made[UnetSelfIn::asked]).set(UnetSelfAttended::heads, heads);
    graph.output("attended", told[UnetSelfAttended::out]);
  }
  return self[UnetSelf::out];
}

}  // namespace heddle::denoisers
