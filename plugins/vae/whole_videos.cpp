#include "plugins/vae/whole_videos.h"

#include <heddle/checked.hpp>
#include <heddle/model.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/video_pieces.h"

namespace heddle::vae {

bool codes_whole_videos(const Value& side, bool has_chunks) {
  return !has_chunks && side.is(HEDDLE_KIND_MODEL) &&
         model_settings(side).get<std::int64_t>("frame_downscale", 0) > 0;
}

std::optional<Shape> whole_video_shape(const Shape& samples, const Value& vae,
                                       const Autoencoder& autoencoder) {
  const Value decoder = vae.field("decoder");
  if (samples.size() != 5 || !codes_whole_videos(decoder, vae.has("decoder_chunks"))) return {};
  const auto step = model_settings(decoder).get<std::int64_t>("frame_downscale", 0);
  const std::int64_t frames = checked_product({samples[2] - 1, step}, "the frames") + 1;
  return Shape{checked_product({samples[0], frames}, "the frames"),
               checked_product({samples[3], autoencoder.downscale}, "the height"),
               checked_product({samples[4], autoencoder.downscale}, "the width"),
               autoencoder.colours};
}

Tensor decoded_whole_video(Context& ctx, const Value& vae, const Value& latent,
                           heddle_port_index output) {
  const Tensor samples = latent.get<Tensor>("samples", {});
  if (!samples || samples.rank() != 5) return {};
  const Autoencoder autoencoder(vae);
  if (!whole_video_shape(samples.shape(), vae, autoencoder)) return {};
  if (decodes_pieces(vae, samples.shape())) return decoded_pieces(ctx, vae, latent, output);
  check_channels(samples.size(1), autoencoder);
  const Tensor z = raw_of(ctx, samples, latent, autoencoder);
  return ops::scale_clamp(ctx, decoded(ctx, model_of(vae, "decoder"), z), {0.5, 0.5, 0, 1});
}

}  // namespace heddle::vae
