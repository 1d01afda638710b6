#include "joined_texts.h"

#include <algorithm>

#include <heddle/ops.hpp>

namespace heddle::encoders {
namespace {

// Of the published encoders.
constexpr std::int64_t kWidthOfL = 768, kWidthOfG = 1280, kWidthOfT5 = 4096, kClipWindow = 77;

bool is_clip_encoder(const Asked& asked) { return asked.use.encoder.name() != "t5xxl"; }

void copy_part(Context& ctx, const Tensor& from, const Tensor& to) {
  if (from && from.count() > 0) ops::copy_into(ctx, from, to);
}

}  // namespace

bool has_vectors(const Windows& windows) {
  return windows.embeddings != nullptr && windows.embeddings->any();
}

bool are_joined(const std::vector<EncoderUse>& uses) {
  return std::ranges::any_of(uses, &EncoderUse::is_joined);
}

std::vector<Asked> ask(const std::vector<EncoderUse>& uses, const Prompt& prompt,
                       const Context* ctx) {
  std::vector<Asked> all;
  std::size_t most = 0;
  for (const EncoderUse& use : uses) {
    all.push_back({use, use.encoder.windows(prompt, ctx)});
    Windows& windows = all.back().windows;
    if (!use.is_joined() || !is_clip_encoder(all.back())) continue;
    if (prompt.leaves_out_empty && prompt.of(use.encoder.name()).empty()) windows.rows.clear();
    most = std::max(most, windows.rows.size());
  }
  for (Asked& asked : all)
    while (asked.use.is_joined() && is_clip_encoder(asked) && asked.windows.rows.size() < most)
      asked.windows.rows.push_back(asked.use.encoder.empty_window());
  std::erase_if(all, [](const Asked& asked) { return asked.windows.rows.empty(); });
  return all;
}

JoinedTexts::JoinedTexts(const std::vector<EncoderUse>& uses)
    : is_sdxl_(std::ranges::any_of(
          uses, [](const EncoderUse& use) { return use.joining == Joining::kSdxl; })) {}

void JoinedTexts::add(const std::string& name, TextPart part) {
  (name == "clip_l" ? l_ : name == "clip_g" ? g_ : t5_) = std::move(part);
}

std::int64_t JoinedTexts::clip_tokens() const {
  if (l_ && g_) return std::min(l_->hidden_shape[1], g_->hidden_shape[1]);
  return l_ ? l_->hidden_shape[1] : g_ ? g_->hidden_shape[1] : 0;
}

JoinedShapes JoinedTexts::sdxl_shapes() const {
  if (!g_)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "a CLIP of type 'sdxl' has no CLIP-G, whose pooled vector the models read. Load "
                "clip_l and clip_g with DualCLIPLoader.");
  const std::int64_t width = (l_ ? l_->hidden_shape[2] : 0) + g_->hidden_shape[2];
  return {{1, clip_tokens(), width}, {1, g_->pooled_shape[1]}};
}

JoinedShapes JoinedTexts::shapes() const {
  if (is_sdxl_) return sdxl_shapes();
  const std::int64_t l = l_ ? l_->hidden_shape[2] : kWidthOfL,
                     g = g_ ? g_->hidden_shape[2] : kWidthOfG,
                     width = t5_ ? t5_->hidden_shape[2] : kWidthOfT5;
  if ((l_ || g_) && l + (g_ ? g : 0) > width)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the states of CLIP-L and CLIP-G, " + std::to_string(l) + " and " +
                    std::to_string(g) +
                    " numbers wide, stand side by side in those of T5, which "
                    "are " +
                    std::to_string(width) + " wide. Load encoders that belong together.");
  const std::int64_t tokens = clip_tokens() + (t5_ ? t5_->hidden_shape[1] : 0);
  return {{1, l_ || g_ || t5_ ? tokens : kClipWindow, width},
          {1, (l_ ? l_->pooled_shape[1] : kWidthOfL) + (g_ ? g_->pooled_shape[1] : kWidthOfG)}};
}

Record JoinedTexts::join(Context& ctx) const {
  const auto [hidden_shape, pooled_shape] = shapes();
  const Tensor hidden = ctx.make(hidden_shape, HEDDLE_F32),
               pooled = ctx.make(pooled_shape, HEDDLE_F32);
  ops::fill(ctx, hidden, 0);
  ops::fill(ctx, pooled, 0);
  const std::int64_t tokens = clip_tokens(), l = l_         ? l_->hidden_shape[2]
                                                 : is_sdxl_ ? 0
                                                            : kWidthOfL;
  const Tensor beside = hidden.slice(1, 0, tokens);
  if (l_) {
    copy_part(ctx, l_->hidden.slice(1, 0, tokens), beside.slice(2, 0, l));
    if (!is_sdxl_) copy_part(ctx, l_->pooled, pooled.slice(1, 0, l_->pooled_shape[1]));
  }
  if (g_) {
    copy_part(ctx, g_->hidden.slice(1, 0, tokens), beside.slice(2, l, l + g_->hidden_shape[2]));
    copy_part(ctx, g_->pooled,
              pooled.slice(1, pooled_shape[1] - g_->pooled_shape[1], pooled_shape[1]));
  }
  if (t5_) copy_part(ctx, t5_->hidden, hidden.slice(1, tokens, hidden_shape[1]));
  Record entry;
  entry.set("cross_attn", value_of(hidden)).set("pooled_output", value_of(pooled));
  return entry;
}

}  // namespace heddle::encoders
