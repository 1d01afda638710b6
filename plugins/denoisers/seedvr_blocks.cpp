#include "seedvr_blocks.h"

#include <cmath>
#include <limits>

#include <heddle/norm_ops.hpp>

#include "embed_number.h"
#include "even_sides.h"
#include "joint_attention.h"
#include "plugins/blocks/heads.h"
#include "plugins/blocks/wide.h"
#include "seedvr_windows.h"

namespace heddle::denoisers {
namespace {

constexpr heddle_timestep_embedding_attrs kSeedvrSines{1, 10000, 0, 0, 0};  // sines first
constexpr double kSeedvrEps = 1e-5;
constexpr std::int64_t kSeedvrModulations = 6;  // of a layer: of attention and MLP three each

// Row i of a modulation (1, 1, R D), as (1, 1, D).
Tensor mod_row(const Tensor& mod, std::int64_t i, std::int64_t width) {
  return mod.slice(2, i * width, (i + 1) * width);
}

// A norm, scaled and shifted by rows i and i + 1.
Tensor seedvr_normed(Context& ctx, const Tensor& x, const Tensor& mod, std::int64_t i) {
  const Tensor out = ctx.make(x.shape());
  ops::modulated_rms_norm_into(ctx, x, mod_row(mod, i + 1, x.size(2)), mod_row(mod, i, x.size(2)),
                               kSeedvrEps, out);
  return out;
}

// A latent (B, C, F, H, W), or of pictures (B, C, H, W), each item as (C, F, h, 2, w, 2), to
// channels [begin, begin + C) of tokens (B, F, h, w, 2, 2, all).
void put_pixels(Context& ctx, const Tensor& from, std::int64_t begin, const Tensor& to) {
  const std::int64_t channels = from.size(1), frames = to.size(1), rows = to.size(2),
                     columns = to.size(3);
  const Tensor place = to.slice(6, begin, begin + channels);
  for (std::int64_t b = 0; b < to.size(0); ++b) {
    const std::int64_t item = from.size(0) == 1 ? 0 : b;
    ops::copy_into(ctx,
                   from.slice(0, item, item + 1)
                       .reshape({channels, frames, rows, 2, columns, 2})
                       .permute({1, 2, 4, 3, 5, 0}),
                   place.slice(0, b, b + 1).reshape({frames, rows, columns, 2, 2, channels}));
  }
}

// The latent with sides that squares cover, (B, C, F, H, W).
Tensor even_video(Context& ctx, const Tensor& x) {
  const Tensor even = even_sides(
      ctx, x.reshape({x.size(0), x.size(1) * frame_count(x), height_of(x), width_of(x)}), kPatch);
  return even.reshape({x.size(0), x.size(1), frame_count(x), even.size(2), even.size(3)});
}

// The windows of one size at one place of the three axes.
struct WindowGroup {
  SeedvrRun frames, rows, columns;
  std::int64_t count() const { return frames.count * rows.count * columns.count; }
  std::int64_t tokens() const { return frames.size * rows.size * columns.size; }

  // The tokens of a grid (F, H, W, N), window by window: (f, h, w, tokens along each axis, N).
  Tensor in_grid(const Tensor& grid) const {
    const std::int64_t numbers = grid.size(3);
    const auto part = [](const Tensor& t, int axis, const SeedvrRun& run) {
      return t.slice(axis, run.begin, run.begin + run.length());
    };
    return part(part(part(grid, 0, frames), 1, rows), 2, columns)
        .reshape({frames.count, frames.size, rows.count, rows.size, columns.count,
                  columns.size * numbers})
        .permute({0, 2, 4, 1, 3, 5});
  }
  // The same of tokens that lie one after another, (count, tokens, N).
  Tensor in_row(const Tensor& row) const {
    return row.reshape({frames.count, rows.count, columns.count, frames.size, rows.size,
                        columns.size * row.size(2)});
  }
};

// Attention of one item of a batch in windows: qkv (L, 3 D) of the video, (T, 3 D) of the text,
// all already normed and turned -> seen (L, D) and, where it is asked, the text's (T, D).
class WindowAttention {
 public:
  WindowAttention(Context& ctx, const SeedvrGrid& grid, std::int64_t heads, bool shifted)
      : ctx_(ctx), grid_(grid), heads_(heads) {
    const auto runs = seedvr_windows(grid, shifted);
    for (const SeedvrRun& frames : runs[0])
      for (const SeedvrRun& rows : runs[1])
        for (const SeedvrRun& columns : runs[2]) {
          groups_.push_back({frames, rows, columns});
          windows_ += groups_.back().count();
        }
  }

  // The mean of what the text saw, or nothing.
  Tensor run(const Tensor& video, const Tensor& text, const Tensor& seen, bool asks_text) const {
    Tensor mean;
    for (const WindowGroup& group : groups_) {
      const Tensor all = attended(group, video, text);
      const std::int64_t own = group.tokens();
      ops::copy_into(ctx_, group.in_row(all.slice(1, 0, own)), group.in_grid(on_grid(seen)));
      if (!asks_text) continue;
      const Tensor part = mean_over_windows(all.slice(1, own, all.size(1)));
      const double share = double(group.count()) / double(windows_);
      mean = mean ? ops::combine(ctx_, {{1, mean}, {share, part}})
                  : ops::combine(ctx_, {{share, part}});
    }
    return mean;
  }

 private:
  Tensor on_grid(const Tensor& t) const {
    return t.reshape({grid_[0], grid_[1], grid_[2], t.size(1)});
  }

  // (windows, tokens + T, D) of what all tokens of each window, and the text behind them, saw.
  Tensor attended(const WindowGroup& group, const Tensor& video, const Tensor& text) const {
    const std::int64_t count = group.count(), own = group.tokens(), words = text.size(0),
                       width = text.size(1);
    const Tensor qkv = ctx_.make({count, own + words, width});
    ops::copy_into(ctx_, group.in_grid(on_grid(video)), group.in_row(qkv.slice(1, 0, own)));
    const Tensor zeros = ctx_.make({count, 1, 1});
    ops::fill(ctx_, zeros, 0);
    ops::add_into(ctx_, text.reshape({1, words, width}), zeros, qkv.slice(1, own, own + words));
    const double scale = 1 / std::sqrt(double(width / 3 / heads_));
    return blocks::join_heads(ops::attention(ctx_, part_of_heads(qkv, 0, heads_),
                                             part_of_heads(qkv, 1, heads_),
                                             part_of_heads(qkv, 2, heads_), {}, scale));
  }

  // x (windows, T, D) -> (T, D): of heads that ask nothing, attention weighs all windows alike.
  Tensor mean_over_windows(const Tensor& x) const {
    const std::int64_t count = x.size(0), words = x.size(1), width = x.size(2),
                       head = width / heads_;
    if (count == 1) return ops::contiguous(ctx_, x).reshape({words, width});
    const Tensor all = x.reshape({1, count, words * heads_, head}),
                 nothing = ctx_.make({1, 1, words * heads_, head});
    ops::fill(ctx_, nothing, 0);
    return ops::attention(ctx_, nothing, all, all, {}, 1).reshape({words, width});
  }

  Context& ctx_;
  const SeedvrGrid grid_;
  const std::int64_t heads_;
  std::vector<WindowGroup> groups_;
  std::int64_t windows_ = 0;
};

// Weights of a stream: those of the text, or the video's where it has none.
struct StreamWeights {
  const Weight &qkv, &norm_q, &norm_k, &proj, &proj_bias, &gate, &up, &up_bias, &down, &down_bias;
};

// Queries, keys and values (B, S, 3 D) of what is normed, the former two normed and turned.
Tensor turned_heads(Context& ctx, const Tensor& normed, const StreamWeights& w, std::int64_t heads,
                    const Tensor& cos, const Tensor& sin) {
  const Tensor qkv = ops::linear(ctx, normed, ctx[w.qkv], {});
  const Tensor q = part_of_heads(qkv, 0, heads), k = part_of_heads(qkv, 1, heads);
  ops::norm_rope_into(ctx, q, ctx[w.norm_q], cos, sin, kSeedvrEps, q);
  ops::norm_rope_into(ctx, k, ctx[w.norm_k], cos, sin, kSeedvrEps, k);
  return qkv;
}

// x with what a stream saw and what its MLP makes of it.
Tensor stream_behind(Context& ctx, const Tensor& x, const Tensor& seen, const Tensor& mod,
                     const StreamWeights& w) {
  const std::int64_t width = x.size(2);
  const Tensor first = ops::gated_add(ctx, x, mod_row(mod, 2, width),
                                      ops::linear(ctx, seen, ctx[w.proj], ctx[w.proj_bias]));
  const Tensor normed = seedvr_normed(ctx, first, mod, 3);
  Tensor raised;
  if (ctx[w.gate]) {
    const Tensor up = ops::linear(ctx, normed, ctx[w.up], {});
    raised =
        ops::gated_activation(ctx, ops::linear(ctx, normed, ctx[w.gate], {}), up, HEDDLE_ACT_SILU);
  } else {
    raised = ops::linear(ctx, normed, ctx[w.up], ctx[w.up_bias], HEDDLE_ACT_GELU_TANH);
  }
  return ops::gated_add(ctx, first, mod_row(mod, 5, width),
                        ops::linear(ctx, raised, ctx[w.down], ctx[w.down_bias]));
}

}  // namespace

void SeedvrVector::execute(Context& ctx) {
  const Tensor levels = ctx[timestep];
  const Tensor waves = ctx.make({levels.size(0), ctx[in].size(1)}, HEDDLE_F32);
  ops::timestep_embedding_into(ctx, levels, kSeedvrSines, waves);
  const Tensor first = blocks::wide_linear(ctx, waves, ctx[in], ctx[in_bias], HEDDLE_ACT_SILU),
               second =
                   blocks::wide_linear(ctx, first, ctx[middle], ctx[middle_bias], HEDDLE_ACT_SILU),
               made = blocks::wide_linear(ctx, second, ctx[last], ctx[last_bias]);
  // The numbers of one channel lie beside each other.
  const std::int64_t width = made.size(1) / kSeedvrModulations;
  ctx[out] = ops::contiguous(
      ctx, made.reshape({levels.size(0), width, kSeedvrModulations}).permute({0, 2, 1}));
}

void SeedvrModulation::execute(Context& ctx) {
  const Tensor all = ctx[vector], own = ctx[added];
  const std::int64_t width = all.size(2), rows = own.size(0) / width;
  const Tensor made = ctx.make({all.size(0), rows, width}, HEDDLE_F32);
  ops::add_into(ctx, all.slice(1, 0, rows), own.reshape({1, rows, width}), made);
  ctx[out] = made.reshape({all.size(0), 1, rows * width});
}

void SeedvrVideoIn::execute(Context& ctx) {
  const Tensor point = even_video(ctx, ctx[x]), shown = even_video(ctx, ctx[concat]);
  const std::int64_t channels = point.size(1) + shown.size(1), rows = point.size(3) / kPatch,
                     columns = point.size(4) / kPatch, frames = point.size(2);
  if (shown.size(2) != frames || shown.size(3) != point.size(3) || shown.size(4) != point.size(4))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "what is made sharper has " + std::to_string(shown.size(2)) + " frames of " +
                    std::to_string(shown.size(4)) + " x " + std::to_string(shown.size(3)) +
                    " cells, the latent that is drawn " + std::to_string(frames) + " of " +
                    std::to_string(point.size(4)) + " x " + std::to_string(point.size(3)) +
                    ". Give SeedVR2Conditioning and the sampler the same latent.");
  const Tensor pixels =
      ctx.make({point.size(0), frames, rows, columns, kPatch, kPatch, channels}, HEDDLE_F32);
  put_pixels(ctx, point, 0, pixels);
  put_pixels(ctx, shown, point.size(1), pixels);
  ctx[out] = blocks::wide_linear(
      ctx, pixels.reshape({point.size(0), frames * rows * columns, kPatchArea * channels}),
      ctx[weight], ctx[bias]);
}

void SeedvrTextIn::execute(Context& ctx) {
  const Tensor made = blocks::wide_linear(ctx, ctx[context], ctx[weight], ctx[bias]);
  const std::int64_t batch = ctx[x].size(0);
  if (made.size(0) == batch) {
    ctx[out] = made;
    return;
  }
  const Tensor all = ctx.make({batch, made.size(1), made.size(2)}, HEDDLE_F32);
  for (std::int64_t b = 0; b < batch; ++b) ops::copy_into(ctx, made, all.slice(0, b, b + 1));
  ctx[out] = all;
}

void SeedvrLayer::execute(Context& ctx) {
  const Tensor video = ctx[vid], text = ctx[txt], latent = ctx[x];
  const bool asks_text = ctx.has(txt_mod);
  const std::int64_t batch = video.size(0), length = video.size(1), words = text.size(1),
                     width = video.size(2), count = ctx[heads];
  const StreamWeights own{qkv, norm_q, norm_k, proj, proj_bias, gate, up, up_bias, down, down_bias};
  const StreamWeights apart{txt_qkv,  txt_norm_q, txt_norm_k,  txt_proj, txt_proj_bias,
                            txt_gate, txt_up,     txt_up_bias, txt_down, txt_down_bias};
  const StreamWeights& of_text = ctx[txt_qkv] ? apart : own;
  const auto table = [&](const Tensor& t, std::int64_t begin, std::int64_t end) {
    return t.slice(0, begin, end);
  };
  const Tensor heads_of_video =
      turned_heads(ctx, seedvr_normed(ctx, video, ctx[vid_mod], 0), own, count,
                   table(ctx[cos], 0, length), table(ctx[sin], 0, length));
  const Tensor heads_of_text = turned_heads(ctx,
                                            asks_text ? seedvr_normed(ctx, text, ctx[txt_mod], 0)
                                                      : ops::rms_norm(ctx, text, {}, kSeedvrEps),
                                            of_text, count, table(ctx[cos], length, length + words),
                                            table(ctx[sin], length, length + words));
  const SeedvrGrid grid{frame_count(latent), tokens_along(height_of(latent)),
                        tokens_along(width_of(latent))};
  const WindowAttention windows(ctx, grid, count, ctx[shifted]);
  const Tensor seen = ctx.make({batch, length, width}), read = ctx.make({batch, words, width});
  const auto item = [&](const Tensor& t, std::int64_t b) {
    return t.slice(0, b, b + 1).reshape({t.size(1), t.size(2)});
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    const Tensor mean =
        windows.run(item(heads_of_video, b), item(heads_of_text, b), item(seen, b), asks_text);
    if (mean) ops::copy_into(ctx, mean, item(read, b));
  }
  ctx[vid_out] = stream_behind(ctx, video, seen, ctx[vid_mod], own);
  ctx[txt_out] = asks_text ? stream_behind(ctx, text, read, ctx[txt_mod], of_text) : text;
}

void SeedvrVideoOut::execute(Context& ctx) {
  const Tensor latent = ctx[x];
  Tensor tokens = ctx[vid];
  if (ctx.has(mod)) {
    tokens = ops::rms_norm(ctx, tokens, ctx[norm], kSeedvrEps);
    const Tensor scaled = ctx.make(tokens.shape(), HEDDLE_F32);
    ops::mul_into(ctx, tokens, mod_row(ctx[mod], 1, tokens.size(2)), scaled);
    ops::add_into(ctx, scaled, mod_row(ctx[mod], 0, tokens.size(2)), scaled);
    tokens = scaled;
  }
  const Tensor made = blocks::wide_linear(ctx, tokens, ctx[weight], ctx[bias]);
  const std::int64_t batch = made.size(0), frames = frame_count(latent),
                     channels = made.size(2) / kPatchArea, height = height_of(latent),
                     width = width_of(latent), rows = tokens_along(height),
                     columns = tokens_along(width);
  const Tensor whole =
      ctx.make({batch, channels, frames, rows * kPatch, columns * kPatch}, latent.dtype());
  for (std::int64_t b = 0; b < batch; ++b)
    ops::copy_into(
        ctx,
        made.slice(0, b, b + 1)
            .reshape({frames, rows, columns, kPatch, kPatch, channels})
            .permute({5, 0, 1, 3, 2, 4}),
        whole.slice(0, b, b + 1).reshape({channels, frames, rows, kPatch, columns, kPatch}));
  const Tensor cut = whole.slice(3, 0, height).slice(4, 0, width);
  ctx[out] = latent.rank() == 5
                 ? cut
                 : ops::contiguous(ctx, cut).reshape({batch, channels, height, width});
}

void SeedvrTexts::execute(Context& ctx) {
  const auto shown = [&](const Tensor& text) {
    return ops::cast(ctx, text.reshape({1, text.size(0), text.size(1)}), HEDDLE_F32);
  };
  ctx[positive_out] = shown(ctx[positive]);
  ctx[negative_out] = shown(ctx[negative]);
}

}  // namespace heddle::denoisers
