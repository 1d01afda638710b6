// Nodes that have a picture change what a UNet draws, by an IP-Adapter: by the names and inputs of
// ComfyUI_IPAdapter_plus (ip_adapter_apply.h). Stateless.
#pragma once

#include <heddle/node.hpp>

#include "ip_adapter_weights.h"

namespace heddle::encoders {

namespace ip_adapter_ports {
inline constexpr const char* kCombinations[] = {"concat",  "add",          "subtract",
                                                "average", "norm average", nullptr};
inline constexpr const char* kScalings[] = {"V only", "K+V", "K+V w/ C penalty",
                                            "K+mean(V) w/ C penalty", nullptr};
constexpr Input<Value> model() { return Input<Value>("model", HEDDLE_PORT_PASS, "", "MODEL"); }
constexpr Input<Value> ipadapter() { return Input<Value>("ipadapter", 0, "", "IPADAPTER"); }
constexpr Input<Tensor> picture(const char* name, std::uint32_t flags = 0) {
  return Input<Tensor>(name, HEDDLE_PORT_HOST | flags, "", "IMAGE");
}
constexpr Input<Tensor> attn_mask() {
  return Input<Tensor>("attn_mask", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL,
                       "Where it is at work: 1.", "MASK");
}
constexpr Input<Value> clip_vision() {
  return Input<Value>("clip_vision", HEDDLE_PORT_OPTIONAL, "", "CLIP_VISION");
}
constexpr Input<Tensor> embeds(const char* name, std::uint32_t flags = 0) {
  return Input<Tensor>(name, flags, "", "EMBEDS");
}
constexpr Widget weight(double most) { return {.number = 1, .min = -1, .max = most, .step = 0.05}; }
constexpr Widget percent(double number) { return {.number = number, .max = 1, .step = 0.001}; }
inline constexpr Widget kWeightType{.choices = kWeightTypes};
inline constexpr Widget kScaling{.choices = kScalings};
inline constexpr Widget kBatch{.number = 0, .max = 4096};
constexpr Output<Value> changed() { return Output<Value>("MODEL", 0, "", "MODEL"); }
}  // namespace ip_adapter_ports

struct IPAdapter {
  static constexpr const char* kTypes[] = {"standard", "prompt is more important", "style transfer",
                                           nullptr};
  static constexpr Info info{"IPAdapter", 1, "IPAdapter", "ipadapter", "Draws like a picture."};
  static constexpr Input<Value> model = ip_adapter_ports::model();
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> image = ip_adapter_ports::picture("image");
  static constexpr Input<double> weight{"weight", ip_adapter_ports::weight(3)};
  static constexpr Input<double> start_at{"start_at", ip_adapter_ports::percent(0)};
  static constexpr Input<double> end_at{"end_at", ip_adapter_ports::percent(1)};
  static constexpr Input<std::string> weight_type{"weight_type", Widget{.choices = kTypes}};
  static constexpr Input<Tensor> attn_mask = ip_adapter_ports::attn_mask();
  static constexpr Output<Value> out = ip_adapter_ports::changed();
  static constexpr auto ports =
      heddle::ports(model, ipadapter, image, weight, start_at, end_at, weight_type, attn_mask, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct IPAdapterAdvanced {
  static constexpr Info info{"IPAdapterAdvanced", 1, "IPAdapter Advanced", "ipadapter",
                             "Draws like pictures."};
  static constexpr Input<Value> model = ip_adapter_ports::model();
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> image = ip_adapter_ports::picture("image");
  static constexpr Input<double> weight{"weight", ip_adapter_ports::weight(5)};
  static constexpr Input<std::string> weight_type{"weight_type", ip_adapter_ports::kWeightType};
  static constexpr Input<std::string> combine_embeds{
      "combine_embeds", Widget{.choices = ip_adapter_ports::kCombinations}};
  static constexpr Input<double> start_at{"start_at", ip_adapter_ports::percent(0)};
  static constexpr Input<double> end_at{"end_at", ip_adapter_ports::percent(1)};
  static constexpr Input<std::string> embeds_scaling{"embeds_scaling", ip_adapter_ports::kScaling};
  static constexpr Input<Tensor> image_negative =
      ip_adapter_ports::picture("image_negative", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> attn_mask = ip_adapter_ports::attn_mask();
  static constexpr Input<Value> clip_vision = ip_adapter_ports::clip_vision();
  static constexpr Output<Value> out = ip_adapter_ports::changed();
  static constexpr auto ports =
      heddle::ports(model, ipadapter, image, weight, weight_type, combine_embeds, start_at, end_at,
                    embeds_scaling, image_negative, attn_mask, clip_vision, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

// Each item of a batch has a picture of its own; of too few the last one serves all others.
struct IPAdapterBatch {
  static constexpr Info info{"IPAdapterBatch", 1, "IPAdapter Batch (Adv.)", "ipadapter",
                             "Draws each picture of a batch like one of several."};
  static constexpr Input<Value> model = ip_adapter_ports::model();
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> image = ip_adapter_ports::picture("image");
  static constexpr Input<double> weight{"weight", ip_adapter_ports::weight(5)};
  static constexpr Input<std::string> weight_type{"weight_type", ip_adapter_ports::kWeightType};
  static constexpr Input<double> start_at{"start_at", ip_adapter_ports::percent(0)};
  static constexpr Input<double> end_at{"end_at", ip_adapter_ports::percent(1)};
  static constexpr Input<std::string> embeds_scaling{"embeds_scaling", ip_adapter_ports::kScaling};
  // Pictures that are seen at once: the same result.
  static constexpr Input<std::int64_t> encode_batch_size{"encode_batch_size",
                                                         ip_adapter_ports::kBatch};
  static constexpr Input<Tensor> image_negative =
      ip_adapter_ports::picture("image_negative", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> attn_mask = ip_adapter_ports::attn_mask();
  static constexpr Input<Value> clip_vision = ip_adapter_ports::clip_vision();
  static constexpr Output<Value> out = ip_adapter_ports::changed();
  static constexpr auto ports =
      heddle::ports(model, ipadapter, image, weight, weight_type, start_at, end_at, embeds_scaling,
                    encode_batch_size, image_negative, attn_mask, clip_vision, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct IPAdapterStyleComposition {
  static constexpr Info info{"IPAdapterStyleComposition", 1, "IPAdapter Style & Composition SDXL",
                             "ipadapter/style_composition",
                             "Draws in the style of one picture what another one is composed of."};
  static constexpr Input<Value> model = ip_adapter_ports::model();
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> image = ip_adapter_ports::picture("image_style");
  static constexpr Input<Tensor> image_composition = ip_adapter_ports::picture("image_composition");
  static constexpr Input<double> weight{"weight_style", ip_adapter_ports::weight(5)};
  static constexpr Input<double> weight_composition{"weight_composition",
                                                    ip_adapter_ports::weight(5)};
  static constexpr Input<bool> expand_style{"expand_style", Widget{.number = 0}};
  static constexpr Input<std::string> combine_embeds{
      "combine_embeds", Widget{.text = "average", .choices = ip_adapter_ports::kCombinations}};
  static constexpr Input<double> start_at{"start_at", ip_adapter_ports::percent(0)};
  static constexpr Input<double> end_at{"end_at", ip_adapter_ports::percent(1)};
  static constexpr Input<std::string> embeds_scaling{"embeds_scaling", ip_adapter_ports::kScaling};
  static constexpr Input<Tensor> image_negative =
      ip_adapter_ports::picture("image_negative", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> attn_mask = ip_adapter_ports::attn_mask();
  static constexpr Input<Value> clip_vision = ip_adapter_ports::clip_vision();
  static constexpr Output<Value> out = ip_adapter_ports::changed();
  static constexpr auto ports =
      heddle::ports(model, ipadapter, image, image_composition, weight, weight_composition,
                    expand_style, combine_embeds, start_at, end_at, embeds_scaling, image_negative,
                    attn_mask, clip_vision, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::encoders
