// Loaders of vision towers, style models, ControlNets, model patches, upscalers and MoGe, under
// ComfyUI's names; as loader_nodes.h.
#pragma once

#include "loader_nodes.h"

namespace heddle::loaders {

struct CLIPVisionLoader {
  static constexpr Info info{"CLIPVisionLoader",
                             1,
                             "Load CLIP Vision",
                             "loaders",
                             "A vision tower: CLIP's or SigLIP's.",
                             kLoader};
  static constexpr Input<std::string> clip_name{"clip_name", Widget{.source = "clip_vision"}};
  static constexpr Output<Value> clip_vision{"CLIP_VISION", 0, "", "CLIP_VISION"};
  static constexpr auto ports = heddle::ports(clip_name, clip_vision);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct StyleModelLoader {
  static constexpr Info info{"StyleModelLoader",
                             1,
                             "Load Style Model",
                             "loaders",
                             "A style model: FLUX.1 Redux.",
                             kLoader};
  static constexpr Input<std::string> style_model_name{"style_model_name",
                                                       Widget{.source = "style_models"}};
  static constexpr Output<Value> style_model{"STYLE_MODEL", 0, "", "STYLE_MODEL"};
  static constexpr auto ports = heddle::ports(style_model_name, style_model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct ControlNetLoader {
  static constexpr Info info{"ControlNetLoader",
                             1,
                             "Load ControlNet Model",
                             "loaders",
                             "A ControlNet: of FLUX.1, Qwen-Image, Stable Diffusion.",
                             kLoader};
  static constexpr Input<std::string> control_net_name{"control_net_name",
                                                       Widget{.source = "controlnet"}};
  static constexpr Output<Value> control_net{"CONTROL_NET", 0, "", "CONTROL_NET"};
  static constexpr auto ports = heddle::ports(control_net_name, control_net);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct DiffControlNetLoader {
  static constexpr Info info{"DiffControlNetLoader",
                             1,
                             "Load ControlNet Model (diff)",
                             "loaders",
                             "A ControlNet of a UNet out of a file of its differences to it.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> control_net_name{"control_net_name",
                                                       Widget{.source = "controlnet"}};
  static constexpr Output<Value> control_net{"CONTROL_NET", 0, "", "CONTROL_NET"};
  static constexpr auto ports = heddle::ports(model, control_net_name, control_net);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct UpscaleModelLoader {
  static constexpr Info info{"UpscaleModelLoader",
                             1,
                             "Load Upscale Model",
                             "loaders",
                             "A model that makes pictures larger: ESRGAN, Real-ESRGAN.",
                             kLoader};
  static constexpr Input<std::string> model_name{
      "model_name", Widget{.source = "upscale_models", .type = "COMBO"}};
  static constexpr Output<Value> upscale_model{"UPSCALE_MODEL", 0, "", "UPSCALE_MODEL"};
  static constexpr auto ports = heddle::ports(model_name, upscale_model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct HypernetworkLoader {
  static constexpr Info info{"HypernetworkLoader",
                             1,
                             "HypernetworkLoader",
                             "loaders",
                             "A UNet whose attentions a hypernetwork changes.",
                             kLoader};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> hypernetwork_name{"hypernetwork_name",
                                                        Widget{.source = "hypernetworks"}};
  static constexpr Input<double> strength{"strength",
                                          Widget{.number = 1, .min = -10, .max = 10, .step = 0.01}};
  static constexpr Output<Value> out{"MODEL", 0, "", "MODEL"};
  static constexpr auto ports = heddle::ports(model, hypernetwork_name, strength, out);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct GLIGENLoader {
  static constexpr Info info{
      "GLIGENLoader", 1, "GLIGENLoader", "loaders", "A GLIGEN model: phrases in boxes.", kLoader};
  static constexpr Input<std::string> gligen_name{"gligen_name", Widget{.source = "gligen"}};
  static constexpr Output<Value> gligen{"GLIGEN", 0, "", "GLIGEN"};
  static constexpr auto ports = heddle::ports(gligen_name, gligen);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct PhotoMakerLoader {
  static constexpr Info info{"PhotoMakerLoader",
                             1,
                             "",
                             "_for_testing/photomaker",
                             "PhotoMaker, version 1: persons of pictures, for SDXL.",
                             kLoader | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> photomaker_model_name{
      "photomaker_model_name", Widget{.source = "photomaker", .type = "COMBO"}};
  static constexpr Output<Value> photomaker{"PHOTOMAKER", 0, "", "PHOTOMAKER"};
  static constexpr auto ports = heddle::ports(photomaker_model_name, photomaker);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct LoadMoGeModel {
  static constexpr Info info{"LoadMoGeModel",
                             1,
                             "Load MoGe Model",
                             "model/loaders",
                             "MoGe 1 or 2: depths, points and normals of pictures.",
                             kLoader};
  static constexpr Input<std::string> model_name{
      "model_name", Widget{.source = "geometry_estimation", .type = "COMBO"}};
  static constexpr Output<Value> model{"MOGE_MODEL", 0, "", "MOGE_MODEL"};
  static constexpr auto ports = heddle::ports(model_name, model);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct ModelPatchLoader {
  static constexpr Info info{
      "ModelPatchLoader",
      1,
      "ModelPatchLoader",
      "advanced/loaders",
      "A model patch: Z-Image's union ControlNet, DiffSynth's for Qwen-Image.",
      kLoader | HEDDLE_NODE_EXPERIMENTAL};
  static constexpr Input<std::string> name{"name", Widget{.source = "model_patches"}};
  static constexpr Output<Value> model_patch{"MODEL_PATCH", 0, "", "MODEL_PATCH"};
  static constexpr auto ports = heddle::ports(name, model_patch);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
