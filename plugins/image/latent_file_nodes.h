// SaveLatent and LoadLatent: latents as files, in ComfyUI's form of safetensors. On the host.
#pragma once

#include <heddle/node.hpp>

namespace heddle::image {

struct SaveLatent {
  static constexpr Info info{"SaveLatent",
                             1,
                             "Save Latent",
                             "model/latent",
                             "Saves a latent in the output folder, as name_00001_.latent.",
                             HEDDLE_NODE_SINK | HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", HEDDLE_PORT_HOST, "", "LATENT"};
  static constexpr Input<std::string> filename_prefix{"filename_prefix",
                                                      {.text = "latents/ComfyUI"}};
  static constexpr Input<std::string> prompt{"prompt", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL,
                                             "", "PROMPT"};
  static constexpr Input<std::string> extra_pnginfo{
      "extra_pnginfo", HEDDLE_PORT_HIDDEN | HEDDLE_PORT_OPTIONAL, "", "EXTRA_PNGINFO"};
  static constexpr Output<Value> out{"samples", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, filename_prefix, prompt, extra_pnginfo, out);
  static void execute(Context& ctx);
};

struct LoadLatent {
  static constexpr Info info{"LoadLatent",
                             1,
                             "LoadLatent",
                             "_for_testing",
                             "Reads a latent that SaveLatent wrote.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> latent{"latent",
                                             Widget{.source = "input", .kind = HEDDLE_WIDGET_FILE}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(latent, out);
  static constexpr auto judged = heddle::judged(latent);
  static Refusal validate(Validation& question);
  static void execute(Context& ctx);
  std::uint64_t fingerprint(Context& ctx);
};

}  // namespace heddle::image
