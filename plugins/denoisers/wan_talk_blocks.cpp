#include "wan_talk_blocks.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "joint_attention.h"
#include "plugins/blocks/wide.h"
#include "wan_speakers.h"

namespace heddle::denoisers {
namespace {

constexpr std::int64_t kTwoSpeakers = 2;

// One item of a tensor.
Tensor one_item(const Tensor& of, std::int64_t item) { return of.slice(0, item, item + 1); }

// What one speaker's moments (1, M, N) are in each frame, in groups of as many as are heard there:
// (1, 1, 5 N) and (1, F - 1, 8 N).
struct HeardFrames {
  Tensor first, later;
};
HeardFrames heard_frames(Context& ctx, const Tensor& moments, std::int64_t frames) {
  const std::int64_t numbers = moments.size(2);
  HeardFrames made{ctx.make({1, kFirstMoments, numbers}),
                   ctx.make({1, (frames - 1) * kLaterMoments, numbers})};
  ops::copy_into(ctx, moments.slice(1, 0, kFirstMoments), made.first);
  for (std::int64_t k = 0; k + 1 < frames; ++k) {
    const std::int64_t from = 1 + k * kMomentsOfStep, to = k * kLaterMoments;
    ops::copy_into(ctx, moments.slice(1, from, from + kLaterMoments),
                   made.later.slice(1, to, to + kLaterMoments));
  }
  made.first = made.first.reshape({1, 1, kFirstMoments * numbers});
  made.later = made.later.reshape({1, frames - 1, kLaterMoments * numbers});
  return made;
}

// The keys (F, 2 T, D), of the first speaker and of the second, turned to their places.
void turn_keys(Context& ctx, const Tensor& k, std::int64_t heads) {
  const std::int64_t each = k.size(1) / kTwoSpeakers;
  const Tensor places = ctx.make({k.size(1), 1}, HEDDLE_F32);
  ops::fill(ctx, places.slice(0, 0, each), kSpeakerSpan / 2);
  ops::fill(ctx, places.slice(0, each, k.size(1)), kSecondSpeaker + kSpeakerSpan / 2);
  const Tensor of_heads = blocks::split_heads(k, heads);
  const auto [cos, sin] = speaker_table(ctx, places, of_heads.size(3));
  ops::norm_rope_into(ctx, of_heads, {}, cos, sin, 0, of_heads);
}

// Their regions are read off the attention of all tokens.
void refuse_divided_speakers(Context& ctx) {
  if (ctx.group().kind != HEDDLE_GROUP_NONE)
    throw Error(HEDDLE_UNSUPPORTED,
                "two speakers (WanInfiniteTalkToVideo) do not go together with parallel modes that "
                "divide blocks. Use layers, cfg or data.");
}

void check_heard(std::int64_t frames, std::int64_t heard) {
  if (frames == heard) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "a sound for " + std::to_string(heard) + " frames of a latent, and this one has " +
                  std::to_string(frames) + ". Take both from one WanInfiniteTalkToVideo.");
}
void check_regions(std::int64_t cells, std::int64_t marked) {
  if (cells == marked) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, "regions of speakers of " + std::to_string(marked) +
                                           " tokens, and the latent has " + std::to_string(cells) +
                                           " in a frame. Take both from one "
                                           "WanInfiniteTalkToVideo.");
}

}  // namespace

void WanTalkIn::execute(Context& ctx) {
  const std::int64_t width = ctx[norm].size(0), each = ctx[last].size(0) / width;
  if (!ctx.has(heard)) {
    ctx[out] = ctx.make({1, 0, width}, HEDDLE_F32);
    return;
  }
  const Tensor given = ctx[heard];
  const std::int64_t speakers = given.size(0), moments = given.size(1),
                     frames = (moments - 1) / kMomentsOfStep;
  if (frames < 1 || moments != frames * kMomentsOfStep + 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::to_string(moments) +
                    " moments of a sound: four for each frame of the latent and one are heard. "
                    "Take them from WanInfiniteTalkToVideo.");
  const Tensor all = ctx.make({frames, speakers * each, width}, HEDDLE_F32);
  for (std::int64_t speaker = 0; speaker < speakers; ++speaker) {
    const HeardFrames in = heard_frames(ctx, one_item(given, speaker), frames);
    const Tensor raised = ctx.make({1, frames, ctx[first].size(0)});
    ops::linear_into(ctx, in.first, ctx[first], ctx[first_bias], HEDDLE_ACT_RELU, {},
                     tokens(raised, {0, 1}));
    if (frames > 1)
      ops::linear_into(ctx, in.later, ctx[later], ctx[later_bias], HEDDLE_ACT_RELU, {},
                       tokens(raised, {1, frames}));
    const Tensor again = ops::linear(ctx, raised, ctx[middle], ctx[middle_bias], HEDDLE_ACT_RELU);
    const Tensor made =
        blocks::wide_linear(ctx, again, ctx[last], ctx[last_bias]).reshape({frames, each, width});
    const Tensor normed = ctx.make(made.shape(), HEDDLE_F32);
    ops::layer_norm_into(ctx, made, ctx[norm], ctx[norm_bias], ctx[eps], normed);
    ops::copy_into(ctx, normed, tokens(all, {speaker * each, (speaker + 1) * each}));
  }
  ctx[out] = all;
}

void WanTalkRegions::execute(Context& ctx) {
  const std::int64_t count = ctx[heads], all = ctx[width], head = all / count;
  if (!ctx.has(regions)) {
    const Tensor none = ctx.make({kTwoSpeakers, 1}, HEDDLE_F32);
    ops::fill(ctx, none, 1);
    ctx[marks] = ctx.make({1, 0, all});
    ctx[shares] = none;
    return;
  }
  const Tensor given = ctx[regions];
  const std::int64_t cells = given.size(1) - 1;
  if (given.size(0) != kTwoSpeakers || cells < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "regions of " + std::to_string(given.size(0)) +
                    " speakers: two are told apart. Take them from WanInfiniteTalkToVideo.");
  const Tensor made = ctx.make({1, cells, all});
  ops::fill(ctx, made, 0);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t speaker = 0; speaker < kTwoSpeakers; ++speaker) {
      const std::int64_t at = i * head + speaker;
      ops::copy_into(ctx, one_item(given, speaker).slice(1, 0, cells).reshape({1, cells, 1}),
                     made.slice(2, at, at + 1));
    }
  ctx[marks] = made;
  const Tensor last = ctx.make({kTwoSpeakers, 1}, HEDDLE_F32);
  ops::copy_into(ctx, given.slice(1, cells, cells + 1), last);
  ctx[shares] = last;
}

void WanTalkLayer::execute(Context& ctx) {
  const Tensor sound = ctx[heard], marked = ctx[marks], latent = ctx[x];
  if (sound.size(1) == 0) {
    run_wan_layer(ctx, {});
    return;
  }
  const std::int64_t frames = latent.size(2), count = ctx[B::heads], width = ctx[B::v].size(0),
                     cell = tokens_along(latent.size(3)) * tokens_along(latent.size(4)),
                     begin = ctx.shard(B::hidden).begin;
  check_heard(frames, sound.size(0));
  const bool is_apart = marked.size(1) > 0;
  if (is_apart) {
    refuse_divided_speakers(ctx);
    check_regions(cell, marked.size(1));
  }
  const Tensor kv = ops::linear(ctx, sound, ctx[talk_kv], ctx[talk_kv_bias]);
  if (is_apart) turn_keys(ctx, kv.slice(2, 0, width), count);
  const Tensor k = blocks::split_heads(kv.slice(2, 0, width), count),
               v = blocks::split_heads(kv.slice(2, width, 2 * width), count);
  run_wan_layer(ctx, {}, 0, [&](const Tensor& own, const Tensor& hidden) {
    const Tensor asking =
        ops::layer_norm(ctx, hidden, ctx[talk_norm], ctx[talk_norm_bias], ctx[talk_eps]);
    const Tensor q = blocks::split_heads(ops::linear(ctx, asking, ctx[talk_q], ctx[talk_q_bias]),
                                         count),
                 found = ctx.make(q.shape());
    const double scale = 1 / std::sqrt(double(q.size(3)));
    for (std::int64_t item = 0; item < q.size(0); ++item) {
      const Tensor asked = one_item(q, item), seen = one_item(found, item);
      if (is_apart) {
        const auto [cos, sin] = speaker_table(
            ctx, speaker_places(ctx, one_item(own, item), marked, ctx[shares], count), q.size(3));
        ops::norm_rope_into(ctx, asked, {}, cos, sin, 0, asked);
      }
      // Of a frame this device's tokens.
      for (std::int64_t frame = 0; frame < frames; ++frame) {
        const Range here{std::max(frame * cell - begin, std::int64_t{0}),
                         std::min((frame + 1) * cell - begin, q.size(1))};
        if (here.begin < here.end)
          ops::attention_into(ctx, tokens(asked, here), one_item(k, frame), one_item(v, frame), {},
                              scale, ops::Mask::none, tokens(seen, here));
      }
    }
    const Tensor added =
        blocks::wide_linear(ctx, blocks::join_heads(found), ctx[talk_proj], ctx[talk_proj_bias]);
    return ops::combine(ctx, {{1, hidden}, {ctx[strength], added}});
  });
}

}  // namespace heddle::denoisers
