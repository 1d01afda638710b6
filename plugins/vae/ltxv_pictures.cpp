#include "plugins/vae/ltxv_pictures.h"

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/video_pieces.h"

namespace heddle::vae {
namespace {

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

Tensor with_first_repeated(Context& ctx, const Tensor& pictures) {
  const Tensor moved = ctx.make(pictures.shape(), HEDDLE_F32);
  ops::copy_into(ctx, pictures.slice(0, 0, 1), moved.slice(0, 0, 1));
  const std::int64_t count = pictures.size(0);
  if (count > 1) ops::copy_into(ctx, pictures.slice(0, 0, count - 1), moved.slice(0, 1, count));
  return moved;
}

}  // namespace

Record encoded_ltxv_pictures(Context& ctx, const Value& vae, const Tensor& image,
                             const LtxvPictures& which, const blocks::GridSize& to) {
  if (image.rank() != 4 || image.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "image: an IMAGE is (pictures, height, width, channels) with at least one pixel. "
                "Link an IMAGE.");
  const Autoencoder autoencoder(vae);
  Tensor sized = beginning(ctx, image, which.count, to);
  if (which.repeats_first) sized = with_first_repeated(ctx, sized);
  const Tensor seen = covered_by_cells(ctx, sized, autoencoder);
  const Tensor mean = mean_of_pictures(ctx, vae, seen, autoencoder);
  if (mean.rank() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: this autoencoder is of pictures. Link that of LTX-Video.");
  return latent_of(ctx, mean, autoencoder);
}

void tell_ltxv_pictures(Infer& question, const Value& vae, const Autoencoder& autoencoder,
                        std::int64_t count, const blocks::GridSize& cells) {
  const Shape picture{count, checked_product({cells.height, autoencoder.downscale}, "the height"),
                      checked_product({cells.width, autoencoder.downscale}, "the width"),
                      autoencoder.colours};
  tell_mean_of_pictures(question, vae, picture, autoencoder);
}

}  // namespace heddle::vae
