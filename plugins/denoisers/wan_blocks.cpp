#include "wan_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>
#include <heddle/ops.hpp>

#include "embed_number.h"
#include "even_sides.h"
#include "frame_rows.h"
#include "joint_attention.h"
#include "patches.h"
#include "plugins/blocks/wide.h"

namespace heddle::denoisers {
namespace {

// The nth of `count` pieces of mod (1, F, count D), as (1, F, D).
Tensor piece(const Tensor& mod, int n, int count) {
  const std::int64_t width = mod.size(2) / count;
  return mod.slice(2, n * width, (n + 1) * width);
}

// Frames as further channels: what is done to each picture is done to them alike.
Tensor frames_as_channels(const Tensor& x) {
  return x.reshape({x.size(0), x.size(1) * x.size(2), x.size(3), x.size(4)});
}

// The nth of `count` parts of x (B, S, count D), in heads.
Tensor heads_of(const Tensor& x, int n, int count, std::int64_t heads) {
  const std::int64_t width = x.size(2) / count;
  return blocks::split_heads(x.slice(2, n * width, (n + 1) * width), heads);
}

// The attention of these queries (n B, S, H, d) to keys and values (B, T, 2 D) that they do not
// turn with: n items in a row to the same.
Tensor look_at(Context& ctx, const Tensor& q, const Tensor& kv) {
  const std::int64_t heads = q.size(2), items = q.size(0), each = items / kv.size(0);
  const double scale = 1 / std::sqrt(double(q.size(3)));
  const Tensor k = heads_of(kv, 0, 2, heads), v = heads_of(kv, 1, 2, heads);
  if (each == 1) return ops::attention(ctx, q, k, v, {}, scale);
  const Tensor found = ctx.make(q.shape());
  for (std::int64_t i = 0; i < items; ++i) {
    const auto one = [](const Tensor& of, std::int64_t item) {
      return of.slice(0, item, item + 1);
    };
    ops::attention_into(ctx, one(q, i), one(k, i / each), one(v, i / each), {}, scale,
                        ops::Mask::none, one(found, i));
  }
  return found;
}

// Queries, keys and values of this device's tokens, (B, l, 3 D).
Tensor project(Context& ctx, const Tensor& x, const heddle_shard& shard) {
  using B = WanLayer;
  const std::int64_t width = ctx[B::v].size(0);
  const Tensor qk = ops::linear(ctx, x, ctx[B::qk], ctx[B::qk_bias]);
  const Tensor all = ctx.make({x.size(0), x.size(1), 3 * width});
  const Tensor cos = ctx[B::cos].slice(0, shard.begin, shard.end),
               sin = ctx[B::sin].slice(0, shard.begin, shard.end);
  for (int i = 0; i < 2; ++i) {
    const Tensor to = all.slice(2, i * width, (i + 1) * width);
    ops::rms_norm_into(ctx, qk.slice(2, i * width, (i + 1) * width),
                       ctx[i == 0 ? B::q_norm : B::k_norm], ctx[B::eps], to);
    const Tensor heads = blocks::split_heads(to, ctx[B::heads]);
    ops::norm_rope_into(ctx, heads, {}, cos, sin, ctx[B::eps], heads);
  }
  ops::linear_into(ctx, x, ctx[B::v], ctx[B::v_bias], HEDDLE_ACT_NONE, {},
                   all.slice(2, 2 * width, 3 * width));
  return all;
}

// The attention of the video's tokens, `cell` of each frame, to each other, and from the second
// frame on to those of the poses' frame before: seen (B, L, H, d).
void attend_with_poses(Context& ctx, const Tensor& own, const WanKept& poses, const Tensor& seen) {
  const std::int64_t width = own.size(2) / 3, length = own.size(1), cell = poses.cell,
                     heads = seen.size(2), count = poses.kept.size(1) / cell;
  if (length % cell != 0 || poses.kept.size(1) % cell != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, "poses of " + std::to_string(poses.kept.size(1)) +
                                             " tokens beside a latent of frames of " +
                                             std::to_string(cell) +
                                             ". Make both of one size, by one WanAnimate2ToVideo.");
  const double scale = 1 / std::sqrt(double(seen.size(3)));
  const Tensor q = heads_of(own, 0, 3, heads);
  const Tensor both = ctx.make({own.size(0), length + cell, 2 * width});
  ops::copy_into(ctx, own.slice(2, width, 3 * width), tokens(both, {0, length}));
  for (std::int64_t frame = 0; frame < length / cell; ++frame) {
    const bool follows = frame > 0 && frame <= count;
    const Range here{frame * cell, (frame + 1) * cell};
    if (follows)
      ops::copy_into(ctx, tokens(poses.kept, {here.begin - cell, here.begin}),
                     tokens(both, {length, length + cell}));
    const Tensor kv = tokens(both, {0, follows ? length + cell : length});
    ops::attention_into(ctx, tokens(q, here), heads_of(kv, 0, 2, heads), heads_of(kv, 1, 2, heads),
                        {}, scale, ops::Mask::none, tokens(seen, here));
  }
}

// The attention of all tokens to those of the frames before, then to each other.
void attend_behind(Context& ctx, const Tensor& own, const Tensor& before, const Tensor& seen) {
  const std::int64_t width = own.size(2) / 3, length = own.size(1), first = before.size(1),
                     heads = seen.size(2);
  const Tensor all = ctx.make({own.size(0), first + length, 2 * width});
  ops::copy_into(ctx, before, tokens(all, {0, first}));
  ops::copy_into(ctx, own.slice(2, width, 3 * width), tokens(all, {first, first + length}));
  ops::attention_into(ctx, heads_of(own, 0, 3, heads), heads_of(all, 0, 2, heads),
                      heads_of(all, 1, 2, heads), {}, 1 / std::sqrt(double(seen.size(3))),
                      ops::Mask::none, seen);
}

}  // namespace

void WanVector::execute(Context& ctx) {
  const Tensor levels = ctx[timestep];
  const std::int64_t steps = levels.size(0);
  std::int64_t frames = 1;
  Tensor told = levels;
  if (ctx.has(frame_noise)) {
    const Tensor noise = ctx[frame_noise];
    frames = noise.size(0);
    told = ctx.make({steps, frames}, HEDDLE_F32);
    ops::mul_into(ctx, levels.reshape({steps, 1}), noise.reshape({1, frames}), told);
    told = told.reshape({steps * frames});
  } else if (ctx[clean]) {
    const Tensor none = ctx.make({1}, HEDDLE_F32);
    ops::fill(ctx, none, 0);
    frames = 2;
    told = with_reference_level(ctx, levels, none);
  }
  const Tensor time = embed_number(ctx, told, {ctx[time_scale], ctx[max_period], 0, 1, 0},
                                   {time_in, time_in_bias, time_out, time_out_bias});
  ctx[out] = time.reshape({steps, frames, time.size(1)});
}

void WanSharedModulation::execute(Context& ctx) {
  const Tensor activated = ops::activate(ctx, ctx[vector], HEDDLE_ACT_SILU);
  ctx[out] = blocks::wide_linear(ctx, activated, ctx[weight], ctx[bias]);
}

void WanModulation::execute(Context& ctx) {
  const Tensor given = ctx[shared], added = ctx[table];
  const std::int64_t all = added.count();
  const Tensor made = ctx.make({given.size(0), given.size(1), all}, HEDDLE_F32);
  const std::int64_t each = given.size(2);
  for (std::int64_t at = 0; at < all; at += each)
    ops::add_into(ctx, given, added.reshape({1, 1, all}).slice(2, at, at + each),
                  made.slice(2, at, at + each));
  ctx[out] = made;
}

void WanTextIn::execute(Context& ctx) {
  if (!ctx.has(context)) {
    ctx[out] = ctx.make({1, 0, ctx[last].size(0)});
    return;
  }
  const Tensor raised = ops::linear(ctx, ctx[context], ctx[in], ctx[in_bias], HEDDLE_ACT_GELU_TANH);
  ctx[out] = ops::linear(ctx, raised, ctx[last], ctx[last_bias]);
}

void WanVisionIn::execute(Context& ctx) {
  if (!ctx.has(vision)) {
    ctx[out] = ctx.make({1, 0, ctx[last].size(0)});
    return;
  }
  Tensor states = ctx[vision];
  if (const Tensor places = ctx[positions]) {
    states = states.slice(1, 0, std::min(places.size(1), states.size(1)));
    const Tensor moved = ctx.make(states.shape(), HEDDLE_F32);
    ops::add_into(ctx, states, places.slice(1, 0, states.size(1)), moved);
    states = moved;
  }
  const Tensor normed = ops::layer_norm(ctx, states, ctx[norm1], ctx[norm1_bias], ctx[eps]);
  const Tensor raised = ops::linear(ctx, normed, ctx[in], ctx[in_bias], HEDDLE_ACT_GELU);
  const Tensor made = blocks::wide_linear(ctx, raised, ctx[last], ctx[last_bias]);
  ctx[out] = ops::layer_norm(ctx, made, ctx[norm2], ctx[norm2_bias], ctx[eps]);
}

void WanKeys::execute(Context& ctx) {
  const Tensor tokens = ctx[seen];
  const std::int64_t width = ctx[v].size(0), items = tokens.size(0), batch = ctx[x].size(0);
  if (tokens.size(1) == 0) {
    ctx[out] = ctx.make({batch, 0, 2 * width});
    return;
  }
  const Tensor made = ctx.make({items, tokens.size(1), 2 * width});
  ops::rms_norm_into(ctx, ops::linear(ctx, tokens, ctx[k], ctx[k_bias]), ctx[norm], ctx[eps],
                     made.slice(2, 0, width));
  ops::linear_into(ctx, tokens, ctx[v], ctx[v_bias], HEDDLE_ACT_NONE, {},
                   made.slice(2, width, 2 * width));
  if (items == batch) {
    ctx[out] = made;
    return;
  }
  const Tensor all = ctx.make({batch, tokens.size(1), 2 * width});
  for (std::int64_t item = 0; item < batch; ++item)
    ops::copy_into(ctx, made, all.slice(0, item, item + 1));
  ctx[out] = all;
}

void WanLatentIn::execute(Context& ctx) {
  ctx[out] = wan_latent_tokens(ctx, ctx[weight], ctx[bias]);
}

Tensor wan_latent_tokens(Context& ctx, const Tensor& filter, const Tensor& bias) {
  using B = WanLatentIn;
  const Tensor latent = ctx[B::x];
  const std::int64_t batch = latent.size(0), own = latent.size(1), frames = latent.size(2),
                     more = ctx.has(B::concat) ? ctx[B::concat].size(1) : 0, channels = own + more;
  if (channels != filter.size(1))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the model takes " + std::to_string(filter.size(1)) + " channels, got " +
                    std::to_string(channels) +
                    ". What a model reads beside the latent, such as a first picture, comes with "
                    "the conditioning (WanImageToVideo)");
  // Each frame is a picture, channels last.
  const Tensor even = even_sides(ctx, frames_as_channels(latent), ctx[B::patch]);
  const std::int64_t height = even.size(2), width = even.size(3);
  const Tensor pictures = ctx.make({batch * frames, height, width, channels});
  const auto put = [&](const Tensor& from, std::int64_t first, std::int64_t count) {
    for (std::int64_t item = 0; item < batch; ++item) {
      const std::int64_t given = from.size(0) == 1 ? 0 : item;
      ops::copy_into(
          ctx,
          from.slice(0, given, given + 1)
              .reshape({count, frames, height, width})
              .permute({1, 2, 3, 0}),
          pictures.slice(0, item * frames, (item + 1) * frames).slice(3, first, first + count));
    }
  };
  put(even, 0, own);
  if (more > 0) put(even_sides(ctx, frames_as_channels(ctx[B::concat]), ctx[B::patch]), own, more);
  const auto step = checked_cast<std::int32_t>(ctx[B::patch], "patch");
  const Tensor made = blocks::wide_conv2d(ctx, pictures, filter, bias,
                                          heddle_conv2d_attrs{{step, step}, {0, 0, 0, 0}});
  return made.reshape({batch, frames * made.size(1) * made.size(2), made.size(3)});
}

Tensor wan_grid_places(Context& ctx, const Tensor& latent, std::int64_t frames) {
  const std::int64_t rows = tokens_along(latent.size(3)), columns = tokens_along(latent.size(4));
  const Tensor ids = ctx.make({frames * rows * columns, 3}, HEDDLE_F32);
  ops::grid_ids_into(ctx, heddle_grid_ids_attrs{{frames, rows, columns}, {0, 0, 0}}, ids);
  return ids;
}

std::pair<Tensor, Tensor> wan_rope_table(Context& ctx, const Tensor& places) {
  using B = WanRope;
  const heddle_rope_table_attrs attrs{3,
                                      0,
                                      {checked_cast<std::int32_t>(ctx[B::axis_0], "axis_0"),
                                       checked_cast<std::int32_t>(ctx[B::axis_1], "axis_1"),
                                       checked_cast<std::int32_t>(ctx[B::axis_2], "axis_2"), 0},
                                      ctx[B::theta]};
  return ops::rope_table(ctx, places, attrs);
}

void WanRope::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const std::int64_t more = ctx.has(before) && ctx[before].size(1) > 0 ? 1 : 0;
  const auto [c, s] = wan_rope_table(ctx, wan_grid_places(ctx, latent, latent.size(2) + more));
  ctx[cos] = c;
  ctx[sin] = s;
}

void WanLayer::execute(Context& ctx) { run_wan_layer(ctx, {}); }

Tensor run_wan_layer(Context& ctx, const WanKept& besides, std::int64_t lead, const WanLook& look) {
  using B = WanLayer;
  const Tensor x = ctx[B::hidden], given = ctx[B::mod], added = ctx[B::table];
  const Tensor told = added ? ops::add(ctx, given, added.reshape({1, 1, given.size(2)})) : given;
  const heddle_shard shard = ctx.shard(B::hidden);
  const FrameRows rows = FrameRows::of(told, shard.begin, shard.total, lead);
  const std::int64_t count = ctx[B::heads], head = ctx[B::v].size(0) / count;
  const auto normed = [&](const Tensor& of, int first) {
    const Tensor made = ctx.make(of.shape());
    rows.modulate_into(ctx, of, piece(told, first, 6), piece(told, first + 1, 6), ctx[B::eps],
                       made);
    return made;
  };
  const auto linear = [&](const Tensor& of, const Weight& matrix, const Weight& bias,
                          heddle_activation f = HEDDLE_ACT_NONE) {
    return ops::linear(ctx, of, ctx[matrix], ctx[bias], f);
  };
  const Tensor own = project(ctx, normed(x, 0), shard);
  const Tensor seen = ctx.make({x.size(0), x.size(1), count, head});
  if (besides.kept && besides.cell > 0) {
    attend_with_poses(ctx, own, besides, seen);
  } else if (besides.kept) {
    attend_behind(ctx, own, besides.kept, seen);
  } else {
    const JointShard joint = joint_shard(ctx, shard.begin, shard.total, count);
    const Tensor gathered = make_gathered(ctx, own, joint, count);
    gather_tokens(ctx, own, 0, joint, count, gathered);
    attend(ctx, gathered, joint, seen);
  }
  const Tensor first = rows.gated(ctx, x, piece(told, 2, 6),
                                  linear(blocks::join_heads(seen), B::proj, B::proj_bias));

  const Tensor asked =
      ctx[B::norm] ? ops::layer_norm(ctx, first, ctx[B::norm], ctx[B::norm_bias], ctx[B::eps])
                   : first;
  const Tensor q = blocks::split_heads(ops::rms_norm(ctx, linear(asked, B::text_q, B::text_q_bias),
                                                     ctx[B::text_q_norm], ctx[B::eps]),
                                       count);
  Tensor found = look_at(ctx, q, ctx[B::text_kv]);
  if (ctx.has(B::vision_kv) && ctx[B::vision_kv].size(1) > 0)
    found = ops::add(ctx, found, look_at(ctx, q, ctx[B::vision_kv]));
  Tensor second = blocks::wide_linear(ctx, blocks::join_heads(found), ctx[B::text_proj],
                                      ctx[B::text_proj_bias], HEDDLE_ACT_NONE, first);
  if (look) second = look(own, second);

  const Tensor raised = linear(normed(second, 3), B::up, B::up_bias, HEDDLE_ACT_GELU_TANH);
  ctx[B::out] = rows.gated(ctx, second, piece(told, 5, 6), linear(raised, B::down, B::down_bias));
  return own.slice(2, ctx[B::v].size(0), own.size(2));
}

void WanFinal::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  const Tensor told = ctx[leads] ? ctx[mod].slice(1, 0, 1) : ctx[mod];
  const std::int64_t own = latent.size(2) * tokens_along(latent.size(3)) *
                           tokens_along(latent.size(4)),
                     end = ctx[leads] ? own : ctx[hidden].size(1);
  ctx[out] = wan_velocity(ctx, told, ctx[hidden].slice(1, end - own, end), ctx[weight], ctx[bias]);
}

Tensor wan_velocity(Context& ctx, const Tensor& mod, const Tensor& hidden, const Tensor& matrix,
                    const Tensor& bias) {
  using B = WanFinal;
  const Tensor latent = ctx[B::x];
  const std::int64_t batch = latent.size(0), frames = latent.size(2), height = latent.size(3),
                     width = latent.size(4), rows = tokens_along(height),
                     columns = tokens_along(width), channels = matrix.size(0) / kPatchArea;
  const Tensor normed = ctx.make(hidden.shape(), HEDDLE_F32);
  FrameRows::of(mod, 0, hidden.size(1))
      .modulate_into(ctx, hidden, piece(mod, 0, 2), piece(mod, 1, 2), ctx[B::eps], normed);
  const Tensor packed = blocks::wide_linear(ctx, normed, matrix, bias);
  const Tensor even =
      ctx.make({batch, channels, frames, rows * kPatch, columns * kPatch}, latent.dtype());
  ops::copy_into(ctx, packed.reshape({batch, frames, rows, columns, kPatch, kPatch, channels}),
                 even.reshape({batch, channels, frames, rows, kPatch, columns, kPatch})
                     .permute({0, 2, 3, 5, 4, 6, 1}));
  const bool is_even = even.size(3) == height && even.size(4) == width;
  return is_even ? even : ops::contiguous(ctx, even.slice(3, 0, height).slice(4, 0, width));
}

}  // namespace heddle::denoisers
