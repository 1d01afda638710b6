#include "plugins/vae/ltxv_nodes.h"

#include <algorithm>

#include <heddle/ops.hpp>

#include "plugins/blocks/entry_shapes.h"
#include "plugins/vae/ltxv_pictures.h"

namespace heddle::vae {
namespace {

template <class In, class Out>
void infer_same_entries(Infer& question, const In& in, const Out& out) {
  blocks::infer_entries(question, out, blocks::entry_shapes(question, in));
}

}  // namespace

void LTXVImgToVideo::execute(Context& ctx) {
  const Tensor pictures = ctx[image];
  const std::int64_t count = whole_ltxv_frames(pictures.rank() == 4 ? pictures.size(0) : 0);
  Record made = encoded_ltxv_pictures(ctx, ctx[vae], pictures, {count}, {ctx[height], ctx[width]});
  const Tensor first = made.value().get<Tensor>("samples", {});

  const std::int64_t frames = ltxv_latent_frames(ctx[length]), items = ctx[batch_size],
                     known = first.size(2);
  if (known > frames)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: " + std::to_string(count) + " pictures are " + std::to_string(known) +
                    " frames of the latent, and a video of length " + std::to_string(ctx[length]) +
                    " has " + std::to_string(frames) + ". Give a longer one, or fewer pictures.");
  const Tensor all =
      ctx.make({items, first.size(1), frames, first.size(3), first.size(4)}, HEDDLE_F32);
  ops::fill(ctx, all, 0);
  for (std::int64_t i = 0; i < items; ++i)
    ops::copy_into(ctx, first, all.slice(0, i, i + 1).slice(2, 0, known));
  const Tensor mask = ctx.make_host({items, 1, frames, 1, 1}, HEDDLE_F32);
  for (std::int64_t i = 0; i < items * frames; ++i)
    mask.data<float>()[i] = i % frames < known ? float(1 - ctx[strength]) : 1.0f;
  made.set("samples", value_of(all)).set("noise_mask", value_of(mask));
  ctx[latent] = made.value();
  ctx[positive_out] = ctx[positive];
  ctx[negative_out] = ctx[negative];
}

void LTXVImgToVideo::infer(Infer& question) {
  infer_same_entries(question, positive, positive_out);
  infer_same_entries(question, negative, negative_out);
  const auto shape = question.shape(image);
  const std::optional<Value> value = question[vae];
  const auto w = question[width], h = question[height], frames = question[length],
             items = question[batch_size];
  if (!shape || shape->size() != 4 || !value || !w || !h || !frames || !items) return;
  const std::optional<Autoencoder> autoencoder = usable(*value);
  if (!autoencoder || autoencoder->channels == 0) return;
  const std::int64_t rows = autoencoder->cells(*h), columns = autoencoder->cells(*w),
                     count = whole_ltxv_frames((*shape)[0]);
  if (rows == 0 || columns == 0 || count == 0) return;
  const std::int64_t all = ltxv_latent_frames(*frames);
  question.out(latent, "samples", HEDDLE_F32, {*items, autoencoder->channels, all, rows, columns});
  question.out(latent, "noise_mask", HEDDLE_F32, {*items, 1, all, 1, 1});
  tell_ltxv_pictures(question, *value, *autoencoder, count, {rows, columns});
}

}  // namespace heddle::vae
