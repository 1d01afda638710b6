#include "plugins/vae/ltxv_nodes.h"

#include <algorithm>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/entry_shapes.h"
#include "plugins/blocks/resample.h"

namespace heddle::vae {
namespace {

constexpr std::int64_t kLtxvFrames = 8;  // of a video for each of the latent, but for the first

// Those that make whole frames of the latent; ComfyUI leaves out the rest, too.
std::int64_t whole_frames(std::int64_t pictures) {
  return pictures < 1 ? 0 : (pictures - 1) / kLtxvFrames * kLtxvFrames + 1;
}
std::int64_t latent_frames(std::int64_t pictures) { return (pictures - 1) / kLtxvFrames + 1; }

// The first pictures (T, H, W, C), cut in the middle and resized, on the device of the call.
Tensor beginning(Context& ctx, const Tensor& pictures, std::int64_t count,
                 const blocks::GridSize& to) {
  const std::int64_t colours = pictures.size(3);
  const HostFloats floats(ctx, pictures);
  HostMemory memory(ctx);
  const blocks::Source whole =
      blocks::Source::of(floats.data(), {count, {pictures.size(1), pictures.size(2)}, colours});
  std::pmr::vector<float> resized(std::size_t(count * to.height * to.width * colours), &memory);
  blocks::resample(blocks::centre_cropped(whole, to), to, blocks::Resampling::bilinear,
                   resized.data(), memory);
  return ctx.upload({count, to.height, to.width, colours}, HEDDLE_F32, resized.data());
}

template <class In, class Out>
void infer_same_entries(Infer& question, const In& in, const Out& out) {
  blocks::infer_entries(question, out, blocks::entry_shapes(question, in));
}

}  // namespace

void LTXVImgToVideo::execute(Context& ctx) {
  const Value value = ctx[vae];
  const Autoencoder autoencoder(value);
  const Tensor pictures = ctx[image];
  if (pictures.rank() != 4 || pictures.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: an IMAGE is (pictures, height, width, channels) with at least one pixel. "
                "Link an IMAGE.");
  const std::int64_t count = whole_frames(pictures.size(0));
  const Tensor sized = beginning(ctx, pictures, count, {ctx[height], ctx[width]});
  const Tensor seen = covered_by_cells(ctx, sized, autoencoder);
  const Tensor mean = mean_of(ctx, model_of(value, "encoder"), seen);
  if (mean.rank() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: this autoencoder is of pictures. Link that of LTX-Video.");
  Record made = latent_of(ctx, mean, autoencoder);
  const Tensor first = made.value().get<Tensor>("samples", {});

  const std::int64_t frames = latent_frames(ctx[length]), items = ctx[batch_size],
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
                     count = whole_frames((*shape)[0]);
  if (rows == 0 || columns == 0 || count == 0) return;
  const std::int64_t all = latent_frames(*frames);
  question.out(latent, "samples", HEDDLE_F32, {*items, autoencoder->channels, all, rows, columns});
  question.out(latent, "noise_mask", HEDDLE_F32, {*items, 1, all, 1, 1});
  const std::int64_t factor = autoencoder->downscale;
  const Shape picture{count, rows * factor, columns * factor, autoencoder->colours};
  if (const Value encoder = value->field("encoder"); encoder.is(HEDDLE_KIND_MODEL))
    question.call(encoder, {{.constants = {{"image", HEDDLE_F32, picture}}, .steps = {}}});
}

}  // namespace heddle::vae
