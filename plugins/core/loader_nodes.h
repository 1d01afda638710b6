// Loaders of model files, under ComfyUI's names. They read headers and configurations only; weights
// are read when a model runs. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

#include "plugins/blocks/port_types.h"

namespace heddle::loaders {

inline constexpr std::uint32_t kLoader = HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES;

struct DiffusersLoader {
  static constexpr Widget kFolder{.source = "diffusers", .kind = HEDDLE_WIDGET_FOLDER};

  static constexpr Info info{
      "DiffusersLoader",
      1,
      "Load Diffusers Model (DEPRECATED)",
      "model/loaders",
      "A model in a diffusers pipeline folder: model_index.json and a folder "
      "for each part.",
      kLoader | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<std::string> model_path{"model_path", kFolder};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(model_path, model, clip, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct CheckpointLoaderSimple {
  static constexpr Info info{"CheckpointLoaderSimple",
                             1,
                             "Load Checkpoint",
                             "loaders",
                             "Diffusion model, text encoders and autoencoder out of one file.",
                             kLoader};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(ckpt_name, model, clip, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// The config beside a checkpoint says what its tensors do not (checkpoint_config.h).
struct CheckpointLoader {
  static constexpr Info info{"CheckpointLoader",
                             1,
                             "Load Checkpoint With Config (DEPRECATED)",
                             "advanced/loaders",
                             "As CheckpointLoaderSimple; of the config counts whether the model "
                             "predicts velocities and which layer of CLIP is read.",
                             kLoader | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<std::string> config_name{"config_name", Widget{.source = "configs"}};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(config_name, ckpt_name, model, clip, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct unCLIPCheckpointLoader {
  static constexpr Info info{
      "unCLIPCheckpointLoader",
      1,
      "unCLIPCheckpointLoader",
      "loaders",
      "Diffusion model, text encoder, autoencoder and vision tower out of one file.",
      kLoader};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr Output<Value> clip_vision{"CLIP_VISION", 0, "", "CLIP_VISION"};
  static constexpr auto ports = heddle::ports(ckpt_name, model, clip, vae, clip_vision);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct ImageOnlyCheckpointLoader {
  static constexpr Info info{"ImageOnlyCheckpointLoader",
                             1,
                             "Image Only Checkpoint Loader (img2vid model)",
                             "loaders/video_models",
                             "Diffusion model, vision tower and autoencoder out of one file.",
                             kLoader};
  static constexpr Input<std::string> ckpt_name{"ckpt_name", Widget{.source = "checkpoints"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr Output<Value> clip_vision{"CLIP_VISION", 0, "", "CLIP_VISION"};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(ckpt_name, model, clip_vision, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct UNETLoader {
  static constexpr const char* kTypes[] = {"default", "fp8_e4m3fn", "fp8_e4m3fn_fast", "fp8_e5m2",
                                           nullptr};

  static constexpr Info info{
      "UNETLoader", 1, "Load Diffusion Model", "model/loaders", "A diffusion model alone.",
      kLoader};
  static constexpr Input<std::string> unet_name{"unet_name", Widget{.source = "diffusion_models"}};
  static constexpr Input<std::string> weight_dtype{
      "weight_dtype", Widget{.choices = kTypes, .extra = R"({"advanced": true})"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(unet_name, weight_dtype, model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct VAELoader {
  // Latents that are pictures, of models that work on those.
  static constexpr const char* kPixelSpace = "pixel_space";
  // TAESD's are there where both of their files are.
  static constexpr const char* kBuiltIn[] = {
      "taesd|vae_approx/taesd_encoder.|vae_approx/taesd_decoder.",
      "taesdxl|vae_approx/taesdxl_encoder.|vae_approx/taesdxl_decoder.",
      "taesd3|vae_approx/taesd3_encoder.|vae_approx/taesd3_decoder.",
      "taef1|vae_approx/taef1_encoder.|vae_approx/taef1_decoder.",
      kPixelSpace,
      nullptr};

  static constexpr Info info{"VAELoader", 1, "Load VAE", "loaders", "An autoencoder alone.",
                             kLoader};
  static constexpr Input<std::string> vae_name{
      "vae_name", Widget{.choices = kBuiltIn, .source = "vae", .kind = HEDDLE_WIDGET_FILE}};
  static constexpr Output<Value> vae{"VAE", 0, "", "VAE"};
  static constexpr auto ports = heddle::ports(vae_name, vae);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// Where an encoder runs is the planner's; "cpu" is a wish that it reads from the node's hints.
inline constexpr const char* kEncoderDevices[] = {"default", "cpu", nullptr};
inline constexpr Widget kEncoderDevice{
    .choices = kEncoderDevices, .extra = R"({"advanced": true})", .flags = HEDDLE_PORT_OPTIONAL};

struct CLIPLoader {
  static constexpr const char* kTypes[] = {"stable_diffusion",
                                           "stable_cascade",
                                           "sd3",
                                           "stable_audio",
                                           "mochi",
                                           "ltxv",
                                           "pixart",
                                           "cosmos",
                                           "lumina2",
                                           "wan",
                                           "hidream",
                                           "chroma",
                                           "ace",
                                           "omnigen2",
                                           "qwen_image",
                                           "hunyuan_image",
                                           "flux2",
                                           "ovis",
                                           "longcat_image",
                                           "cogvideox",
                                           "lens",
                                           "pixeldit",
                                           "ideogram4",
                                           "boogu",
                                           "krea2",
                                           "joyimage",
                                           "mage",
                                           "minimax",
                                           "yue2",
                                           "flux3",
                                           "moss_image",
                                           "fibo2",
                                           nullptr};

  static constexpr Info info{"CLIPLoader",
                             1,
                             "Load CLIP",
                             "model/loaders",
                             "One text encoder. Type stable_diffusion: CLIP-L.",
                             kLoader};
  static constexpr Input<std::string> clip_name{"clip_name", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> type{"type", Widget{.choices = kTypes}};
  static constexpr Input<std::string> device{"device", kEncoderDevice};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name, type, device, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct DualCLIPLoader {
  static constexpr const char* kTypes[] = {"sdxl",
                                           "sd3",
                                           "flux",
                                           "hunyuan_video",
                                           "hidream",
                                           "hunyuan_image",
                                           "hunyuan_video_15",
                                           "kandinsky5",
                                           "kandinsky5_image",
                                           "ltxv",
                                           "newbie",
                                           "ace",
                                           nullptr};

  static constexpr Info info{"DualCLIPLoader",
                             1,
                             "Load CLIP (Dual)",
                             "model/loaders",
                             "Two text encoders, in any order. Type flux: CLIP-L and T5-XXL.",
                             kLoader};
  static constexpr Input<std::string> clip_name1{"clip_name1", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> clip_name2{"clip_name2", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> type{"type", Widget{.choices = kTypes}};
  static constexpr Input<std::string> device{"device", kEncoderDevice};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name1, clip_name2, type, device, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LTXAVTextEncoderLoader {
  static constexpr Info info{"LTXAVTextEncoderLoader",
                             1,
                             "Load LTXV Audio Text Encoder",
                             "model/loaders",
                             "Gemma 3, and the projection of its layers out of a checkpoint of LTX "
                             "2.",
                             kLoader};
  static constexpr Input<std::string> text_encoder{
      "text_encoder", Widget{.source = "text_encoders", .type = "COMBO"}};
  static constexpr Input<std::string> ckpt_name{"ckpt_name",
                                                Widget{.source = "checkpoints", .type = "COMBO"}};
  static constexpr Input<blocks::Choice> device{
      "device", Widget{.choices = kEncoderDevices, .extra = R"({"advanced": true})"}};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(text_encoder, ckpt_name, device, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct TripleCLIPLoader {
  static constexpr Widget kFile{.source = "text_encoders", .type = "COMBO"};

  static constexpr Info info{"TripleCLIPLoader",
                             1,
                             "",
                             "advanced/loaders",
                             "Three text encoders, in any order; refused where they are no set "
                             "that is known.",
                             kLoader};
  static constexpr Input<std::string> clip_name1{"clip_name1", kFile};
  static constexpr Input<std::string> clip_name2{"clip_name2", kFile};
  static constexpr Input<std::string> clip_name3{"clip_name3", kFile};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name1, clip_name2, clip_name3, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct QuadrupleCLIPLoader {
  static constexpr Info info{"QuadrupleCLIPLoader",
                             1,
                             "",
                             "advanced/loaders",
                             "Four text encoders, in any order; refused where they are no set "
                             "that is known.",
                             kLoader};
  static constexpr Input<std::string> clip_name1{"clip_name1", TripleCLIPLoader::kFile};
  static constexpr Input<std::string> clip_name2{"clip_name2", TripleCLIPLoader::kFile};
  static constexpr Input<std::string> clip_name3{"clip_name3", TripleCLIPLoader::kFile};
  static constexpr Input<std::string> clip_name4{"clip_name4", TripleCLIPLoader::kFile};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name1, clip_name2, clip_name3, clip_name4, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

// The nodes that people know from the extension ComfyUI-GGUF. The others open gguf files just as
// well.
struct UnetLoaderGGUF {
  static constexpr Info info{"UnetLoaderGGUF",
                             1,
                             "Unet Loader (GGUF)",
                             "bootleg",
                             "A diffusion model alone, quantised in a gguf file.",
                             kLoader};
  static constexpr Input<std::string> unet_name{"unet_name", Widget{.source = "diffusion_models"}};
  static constexpr Output<Value> model{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(unet_name, model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct CLIPLoaderGGUF {
  static constexpr Info info{"CLIPLoaderGGUF",
                             1,
                             "CLIPLoader (GGUF)",
                             "bootleg",
                             "One text encoder, of a gguf or another file.",
                             kLoader};
  static constexpr Input<std::string> clip_name{"clip_name", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> type{"type", Widget{.choices = CLIPLoader::kTypes}};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name, type, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct DualCLIPLoaderGGUF {
  static constexpr Info info{"DualCLIPLoaderGGUF",
                             1,
                             "DualCLIPLoader (GGUF)",
                             "bootleg",
                             "Two text encoders, in any order, of gguf or other files. Type flux: "
                             "CLIP-L and T5-XXL.",
                             kLoader};
  static constexpr Input<std::string> clip_name1{"clip_name1", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> clip_name2{"clip_name2", Widget{.source = "text_encoders"}};
  static constexpr Input<std::string> type{"type", Widget{.choices = DualCLIPLoader::kTypes}};
  static constexpr Output<Value> clip{"CLIP", 0, "", "CLIP"};
  static constexpr auto ports = heddle::ports(clip_name1, clip_name2, type, clip);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
