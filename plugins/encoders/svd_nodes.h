// What Stable Video Diffusion is shown of the picture that a video begins with. Formulas: ComfyUI's
// node of this name. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

// CLIP's tower sees the middle of the picture, and its embedding stands in the place of a text; the
// autoencoder encodes it in the video's size, with noise where augmentation_level is above 0.
// ComfyUI draws that noise anew in each run; here it is the same in all (decoder_noise.h), so that
// a workflow gives the same bytes. The negative conditioning is of zeros. The latent has the frames
// as its batch.
struct SVD_img2vid_Conditioning {
  static constexpr Widget kWidth{.number = 1024, .min = 16, .max = 16384, .step = 8},
      kHeight{.number = 576, .min = 16, .max = 16384, .step = 8},
      kFrames{.number = 14, .min = 1, .max = 4096},
      kMotion{.number = 127, .min = 1, .max = 1023, .extra = R"({"advanced": true})"},
      kFps{.number = 6, .min = 1, .max = 1024},
      kNoise{.max = 10, .step = 0.01, .extra = R"({"advanced": true})"};

  static constexpr Info info{"SVD_img2vid_Conditioning", 1, "SVD_img2vid_Conditioning",
                             "model/conditioning/stable video",
                             "A picture that a video of Stable Video Diffusion begins with."};
  static constexpr Input<Value> clip_vision{"clip_vision", 0, "The vision tower.", "CLIP_VISION"};
  static constexpr Input<Tensor> init_image{"init_image", HEDDLE_PORT_HOST,
                                            "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<std::int64_t> width{"width", kWidth};
  static constexpr Input<std::int64_t> height{"height", kHeight};
  static constexpr Input<std::int64_t> video_frames{"video_frames", kFrames};
  static constexpr Input<std::int64_t> motion_bucket_id{"motion_bucket_id", kMotion,
                                                        "How much moves."};
  static constexpr Input<std::int64_t> fps{"fps", kFps, "Frames a second."};
  static constexpr Input<double> augmentation_level{"augmentation_level", kNoise,
                                                    "Noise in the picture."};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports =
      heddle::ports(clip_vision, init_image, vae, width, height, video_frames, motion_bucket_id,
                    fps, augmentation_level, positive, negative, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// As that one, of a thing that the camera goes around once, at one height, in even steps.
struct SV3D_Conditioning {
  static constexpr Widget kSide{.number = 576, .min = 16, .max = 16384, .step = 8},
      kViews{.number = 21, .min = 1, .max = 4096},
      kAngle{.min = -90, .max = 90, .step = 0.1, .extra = R"({"round": false})"};

  static constexpr Info info{"SV3D_Conditioning", 1, "", "conditioning/3d_models",
                             "A picture of a thing, around which a camera of SV3D goes."};
  static constexpr Input<Value> clip_vision{"clip_vision", 0, "The vision tower.", "CLIP_VISION"};
  static constexpr Input<Tensor> init_image{"init_image", HEDDLE_PORT_HOST,
                                            "(B, H, W, C) f32, 0 to 1", "IMAGE"};
  static constexpr Input<Value> vae{"vae", HEDDLE_PORT_PASS, "The autoencoder.", "VAE"};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<std::int64_t> video_frames{"video_frames", kViews};
  static constexpr Input<double> elevation{"elevation", kAngle, "Degrees above the thing."};
  static constexpr Output<Value> positive{"positive", 0, "", "CONDITIONING"};
  static constexpr Output<Value> negative{"negative", 0, "", "CONDITIONING"};
  static constexpr Output<Value> latent{"latent", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(clip_vision, init_image, vae, width, height,
                                              video_frames, elevation, positive, negative, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
