// Loaders of IP-Adapters, by the names and inputs of ComfyUI_IPAdapter_plus; as loader_nodes.h.
#pragma once

#include "loader_nodes.h"

namespace heddle::loaders {

struct IPAdapterModelLoader {
  static constexpr Info info{"IPAdapterModelLoader",
                             1,
                             "IPAdapter Model Loader",
                             "ipadapter/loaders",
                             "An IP-Adapter of Stable Diffusion 1.5 or SDXL.",
                             kLoader};
  static constexpr Input<std::string> ipadapter_file{"ipadapter_file",
                                                     Widget{.source = "ipadapter"}};
  static constexpr Output<Value> ipadapter{"IPADAPTER", 0, "", "IPADAPTER"};
  static constexpr auto ports = heddle::ports(ipadapter_file, ipadapter);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

struct IPAdapterUnifiedLoader {
  static constexpr const char* kPresets[] = {"LIGHT - SD1.5 only (low strength)",
                                             "STANDARD (medium strength)",
                                             "VIT-G (medium strength)",
                                             "PLUS (high strength)",
                                             "PLUS FACE (portraits)",
                                             "FULL FACE - SD1.5 only (portraits stronger)",
                                             nullptr};
  static constexpr Info info{
      "IPAdapterUnifiedLoader",
      1,
      "IPAdapter Unified Loader",
      "ipadapter",
      "The IP-Adapter of a preset for this model, and the vision tower that goes with it, by the "
      "names that these files were published under.",
      kLoader};
  static constexpr Input<Value> model_in{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> preset{"preset", Widget{.choices = kPresets}};
  static constexpr Input<Value> before{"ipadapter", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL,
                                       "Changes nothing: what is loaded is shared anyway.",
                                       "IPADAPTER"};
  static constexpr Output<Value> model{"model", 0, "", "MODEL"};
  static constexpr Output<Value> ipadapter{"ipadapter", 0, "", "IPADAPTER"};
  static constexpr auto ports = heddle::ports(model_in, preset, before, model, ipadapter);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::loaders
