#include "gemma4_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/ops.hpp>

#include "half_rotation.h"
#include "language_attention.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"

namespace heddle::encoders {
namespace {

using L = Gemma4Layer;

Tensor times(Context& ctx, const Tensor& x, double factor) {
  constexpr double kFree = std::numeric_limits<double>::infinity();
  return ops::scale_clamp(ctx, x, {factor, 0, -kFree, kFree});
}

// x + y, y normed before.
Tensor plus_normed(Context& ctx, const Tensor& x, const Tensor& y, const Weight& norm) {
  const Tensor normed = ctx.make(y.shape(), HEDDLE_F32);
  ops::rms_norm_into(ctx, y, ctx[norm], ctx[L::eps], normed);
  return ops::add(ctx, x, normed);
}

// What a layer has besides; nothing in one that encodes.
struct Gemma4Kept {
  const Input<Tensor>* own = nullptr;  // keys and values of another layer
  const Input<Tensor>* given = nullptr;
  const Input<Tensor>* seen = nullptr;
  const Output<Tensor>* made = nullptr;
};

// Queries (B, S, H, d), keys (B, S, K, d), and values (B, S, K d).
struct Gemma4Heads {
  Tensor q, k, v;
};

Gemma4Heads gemma4_heads(Context& ctx, const Tensor& normed) {
  const std::int64_t heads = ctx[L::heads], kv_heads = ctx[L::kv_heads];
  const Tensor all = blocks::wide_linear(ctx, normed, ctx[L::qkv], {}), apart = ctx[L::v];
  const bool has_values = ctx[L::own_values] && !apart;
  const std::int64_t head = all.size(2) / (heads + (has_values ? 2 : 1) * kv_heads),
                     keys = heads * head, values = keys + kv_heads * head;
  const Tensor raw = all.slice(2, keys, values);
  const Tensor v = apart        ? blocks::wide_linear(ctx, normed, apart, {})
                   : has_values ? all.slice(2, values, all.size(2))
                                : raw;
  const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], false};
  const Tensor even = ops::rms_norm(ctx, blocks::split_heads(v, kv_heads), {}, ctx[L::eps]);
  return {rotated(ctx, all.slice(2, 0, keys), heads, ctx[L::q_norm], rotation),
          rotated(ctx, raw, kv_heads, ctx[L::k_norm], rotation), blocks::join_heads(even)};
}

Tensor gemma4_attended(Context& ctx, const Tensor& normed, const Gemma4Kept& kept) {
  const ScoreRules rules{ctx[L::window], 1, 0, ctx.has(L::groups) ? ctx[L::groups] : Tensor()};
  const std::int64_t kv_heads = ctx[L::kv_heads], length = normed.size(1);
  const auto before = [&] { return TokensBefore{ctx[*kept.given], ctx[*kept.seen], kv_heads}; };
  if (kept.own != nullptr) {
    const Rotation rotation{ctx[L::cos], ctx[L::sin], ctx[L::eps], false};
    const Tensor q = rotated(ctx, blocks::wide_linear(ctx, normed, ctx[L::qkv], {}), ctx[L::heads],
                             ctx[L::q_norm], rotation),
                 own = ctx[*kept.own];
    if (ctx.has(*kept.given)) return attended_by_one(ctx, q, own, before(), rules);
    const std::int64_t width = own.size(2) / 2;
    return attended_before(ctx, q, blocks::split_heads(own.slice(2, 0, width), kv_heads),
                           own.slice(2, width, 2 * width), length, rules);
  }
  const auto [q, k, v] = gemma4_heads(ctx, normed);
  if (kept.made != nullptr) {
    const Tensor own = keys_and_values(ctx, k, v);
    ctx[*kept.made] = own;
    if (ctx.has(*kept.given)) return attended_by_one(ctx, q, own, before(), rules);
  }
  return attended_before(ctx, q, k, v, length, rules);
}

Tensor gemma4_mlp(Context& ctx, const Tensor& x) {
  const Tensor both = blocks::wide_linear(ctx, x, ctx[L::up], {});
  const std::int64_t width = both.size(2) / 2;
  const Tensor raised = ctx.make({both.size(0), both.size(1), width});
  ops::gated_activation_into(ctx, both.slice(2, 0, width), both.slice(2, width, 2 * width),
                             HEDDLE_ACT_GELU_TANH, raised);
  return blocks::wide_linear(ctx, raised, ctx[L::down], {});
}

// x with what the layer is told of each token.
Tensor with_told(Context& ctx, const Tensor& x) {
  if (!ctx.has(L::told)) return x;
  const Tensor gate =
      blocks::wide_linear(ctx, ops::cast(ctx, x, ctx.compute()), ctx[L::told_gate], {});
  const std::int64_t begin = ctx[L::told_at], width = gate.size(2);
  const Tensor chosen = ctx.make(gate.shape());
  ops::gated_activation_into(ctx, gate, ctx[L::told].slice(2, begin, begin + width),
                             HEDDLE_ACT_GELU_TANH, chosen);
  return plus_normed(ctx, x, blocks::wide_linear(ctx, chosen, ctx[L::told_proj], {}), L::told_norm);
}

void run_gemma4_layer(Context& ctx, const Gemma4Kept& kept) {
  const Tensor x = ctx[L::hidden];
  const double epsilon = ctx[L::eps];
  const Tensor seen = gemma4_attended(ctx, ops::rms_norm(ctx, x, ctx[L::norm1], epsilon), kept);
  const Tensor middle =
      plus_normed(ctx, x, blocks::wide_linear(ctx, seen, ctx[L::proj], {}), L::after1);
  const Tensor last = plus_normed(
      ctx, middle, gemma4_mlp(ctx, ops::rms_norm(ctx, middle, ctx[L::norm2], epsilon)), L::after2);
  const Tensor wide = ops::cast(ctx, ctx[L::scalar], HEDDLE_F32);
  ctx[L::out] = ops::mul(ctx, with_told(ctx, last), wide.reshape({1, 1, 1}));
}

}  // namespace

void Gemma4Told::execute(Context& ctx) {
  const Tensor x = ctx[hidden], weight = ctx[norm];
  const std::int64_t width = weight.size(0);
  const Tensor rows =
      times(ctx, blocks::wide_embedding(ctx, ctx[tokens], ctx[ids]), std::sqrt(double(width)));
  const Tensor seen =
      times(ctx, blocks::wide_linear(ctx, ops::cast(ctx, x, ctx.compute()), ctx[projection], {}),
            1 / std::sqrt(double(x.size(2))));
  const Shape by_layer{x.size(0), x.size(1), seen.size(2) / width, width};
  const Tensor normed = ctx.make(by_layer, HEDDLE_F32);
  ops::rms_norm_into(ctx, seen.reshape(by_layer), weight, ctx[eps], normed);
  ctx[out] = times(ctx, ops::add(ctx, normed.reshape(rows.shape()), rows), std::sqrt(0.5));
}

void Gemma4Layer::execute(Context& ctx) { run_gemma4_layer(ctx, {}); }

void Gemma4KeptLayer::execute(Context& ctx) {
  run_gemma4_layer(ctx, {nullptr, &kept, &seen, &kept_out});
}

void Gemma4SharingLayer::execute(Context& ctx) {
  run_gemma4_layer(ctx, {&own, &kept, &seen, nullptr});
}

}  // namespace heddle::encoders
