// What Stable Zero123 is shown of a picture, and from where the thing in it is to be seen.
// Formulas: ComfyUI's nodes of these names. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

namespace view_ports {
constexpr Input<Value> tower() {
  return Input<Value>("clip_vision", 0, "The vision tower.", "CLIP_VISION");
}
constexpr Input<Tensor> picture() {
  return Input<Tensor>("init_image", HEDDLE_PORT_HOST, "(B, H, W, C) f32, 0 to 1", "IMAGE");
}
constexpr Input<Value> vae() {
  return Input<Value>("vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE");
}
inline constexpr Widget kSide{.number = 256, .min = 16, .max = 16384, .step = 8},
    kBatch{.number = 1, .min = 1, .max = 4096},
    kAngle{.min = -180, .max = 180, .step = 0.1, .extra = R"({"round": false})"},
    kStep{.min = -180, .max = 180, .step = 0.1, .extra = R"({"advanced": true, "round": false})"};
constexpr Output<Value> told(const char* name) {
  return Output<Value>(name, 0, "", "CONDITIONING");
}
constexpr Output<Value> latent() { return Output<Value>("latent", 0, "", "LATENT"); }
}  // namespace view_ports

// Behind the tower's embedding stand four numbers: the angle from above less that of the picture,
// sine and cosine of the angle around, and the picture's own angle. The negative conditioning is of
// zeros without these.
struct StableZero123_Conditioning {
  static constexpr Info info{"StableZero123_Conditioning", 1, "", "conditioning/3d_models",
                             "A picture of a thing, and from where it is to be seen."};
  static constexpr Input<Value> clip_vision = view_ports::tower();
  static constexpr Input<Tensor> init_image = view_ports::picture();
  static constexpr Input<Value> vae = view_ports::vae();
  static constexpr Input<std::int64_t> width{"width", view_ports::kSide};
  static constexpr Input<std::int64_t> height{"height", view_ports::kSide};
  static constexpr Input<std::int64_t> batch_size{"batch_size", view_ports::kBatch};
  static constexpr Input<double> elevation{"elevation", view_ports::kAngle, "Degrees."};
  static constexpr Input<double> azimuth{"azimuth", view_ports::kAngle, "Degrees."};
  static constexpr Output<Value> positive = view_ports::told("positive");
  static constexpr Output<Value> negative = view_ports::told("negative");
  static constexpr Output<Value> latent = view_ports::latent();
  static constexpr auto ports =
      heddle::ports(clip_vision, init_image, vae, width, height, batch_size, elevation, azimuth,
                    positive, negative, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// The same for each item of a batch, by angles that grow from one to the next; all items have the
// noise of the first one.
struct StableZero123_Conditioning_Batched {
  static constexpr Info info{"StableZero123_Conditioning_Batched", 1, "",
                             "model/conditioning/stable zero123",
                             "A picture of a thing, and from where each item is to show it."};
  static constexpr Input<Value> clip_vision = view_ports::tower();
  static constexpr Input<Tensor> init_image = view_ports::picture();
  static constexpr Input<Value> vae = view_ports::vae();
  static constexpr Input<std::int64_t> width{"width", view_ports::kSide};
  static constexpr Input<std::int64_t> height{"height", view_ports::kSide};
  static constexpr Input<std::int64_t> batch_size{"batch_size", view_ports::kBatch};
  static constexpr Input<double> elevation{"elevation", view_ports::kAngle, "Degrees."};
  static constexpr Input<double> azimuth{"azimuth", view_ports::kAngle, "Degrees."};
  static constexpr Input<double> elevation_step{"elevation_batch_increment", view_ports::kStep};
  static constexpr Input<double> azimuth_step{"azimuth_batch_increment", view_ports::kStep};
  static constexpr Output<Value> positive = view_ports::told("positive");
  static constexpr Output<Value> negative = view_ports::told("negative");
  static constexpr Output<Value> latent = view_ports::latent();
  static constexpr auto ports =
      heddle::ports(clip_vision, init_image, vae, width, height, batch_size, elevation, azimuth,
                    elevation_step, azimuth_step, positive, negative, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
