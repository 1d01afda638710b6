// VAEDecodeTiled and VAEEncodeTiled: what VAEDecode and VAEEncode do, by overlapping tiles that are
// averaged (tiles.h), so that the model's memory does not grow with the picture. The result is put
// together in host memory. Videos go through an autoencoder that has stages for them by tiles of
// frames, too (video_tiles.h).
#pragma once

#include <heddle/abi/parts.h>
#include <heddle/node.hpp>

#include "plugins/blocks/autoencoder.h"

namespace heddle::vae {

inline constexpr Widget kOverlap{
    .number = 64, .min = 0, .max = 4096, .step = 32, .extra = R"({"advanced": true})"};
// Of videos: how many frames a tile has, and how many it shares with the next.
inline constexpr Widget kTemporalSize{
    .number = 64, .min = 8, .max = 4096, .step = 4, .extra = R"({"advanced": true})"};
inline constexpr Widget kTemporalOverlap{
    .number = 8, .min = 4, .max = 4096, .step = 4, .extra = R"({"advanced": true})"};

struct VaeDecodeTiled {
  static constexpr Info info{"VAEDecodeTiled", 1, "VAE Decode (Tiled)", "model/latent",
                             "Decodes latent pictures tile by tile."};
  static constexpr Input<Value> samples{"samples", 0, "The latent to decode.", "LATENT"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<std::int64_t> tile_size{
      "tile_size",
      Widget{.number = 512, .min = 64, .max = 4096, .step = 32, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::int64_t> overlap{"overlap", kOverlap};
  static constexpr Input<std::int64_t> temporal_size{"temporal_size", kTemporalSize};
  static constexpr Input<std::int64_t> temporal_overlap{"temporal_overlap", kTemporalOverlap};
  static constexpr Output<Tensor> image{"IMAGE", HEDDLE_PORT_PARTS, "(B, H, W, 3) f32, 0 to 1",
                                        "IMAGE"};
  static constexpr auto ports =
      heddle::ports(samples, vae, tile_size, overlap, temporal_size, temporal_overlap, image);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct VaeEncodeTiled {
  static constexpr Info info{"VAEEncodeTiled", 1, "VAE Encode (Tiled)", "model/latent",
                             "Encodes pictures tile by tile."};
  static constexpr Input<Tensor> pixels{"pixels", 0, "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<std::int64_t> tile_size{
      "tile_size",
      Widget{.number = 512, .min = 64, .max = 4096, .step = 64, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::int64_t> overlap{"overlap", kOverlap};
  static constexpr Input<std::int64_t> temporal_size{"temporal_size", kTemporalSize};
  static constexpr Input<std::int64_t> temporal_overlap{"temporal_overlap", kTemporalOverlap};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(pixels, vae, tile_size, overlap, temporal_size, temporal_overlap, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Pictures (B, H, W, 3) from 0 to 1, in host memory. `latent`: a LATENT; sizes in pixels.
Tensor decode_in_tiles(Context& ctx, const Value& vae, const Value& latent, std::int64_t tile_size,
                       std::int64_t overlap);
// Tells of its calls the largest of each kind, as those that are made where there is no room for
// all of the latents, of this shape, at once.
void tell_least_tiles(Infer& question, const Value& decoder, const Shape& latents,
                      const Autoencoder& autoencoder, std::int64_t tile_size);

}  // namespace heddle::vae
