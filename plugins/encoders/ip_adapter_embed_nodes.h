// Nodes that make embeddings of pictures for an IP-Adapter, combine them, and apply it to them: by
// the names and inputs of ComfyUI_IPAdapter_plus. EMBEDS: a tensor (n, D) or (n, S, D) f32, a row
// for each picture. Stateless.
#pragma once

#include "ip_adapter_nodes.h"

namespace heddle::encoders {

struct IPAdapterEncoder {
  static constexpr Info info{"IPAdapterEncoder", 1, "IPAdapter Encoder", "ipadapter/embeds",
                             "What an IP-Adapter reads of pictures."};
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> image = ip_adapter_ports::picture("image");
  static constexpr Input<double> weight{"weight",
                                        Widget{.number = 1, .min = -1, .max = 3, .step = 0.01}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_PASS | HEDDLE_PORT_OPTIONAL,
                                      "What is seen of the pictures: 1.", "MASK"};
  static constexpr Input<Value> clip_vision = ip_adapter_ports::clip_vision();
  static constexpr Output<Tensor> positive{"pos_embed", 0, "", "EMBEDS"};
  static constexpr Output<Tensor> negative{"neg_embed", 0, "", "EMBEDS"};
  static constexpr auto ports =
      heddle::ports(ipadapter, image, weight, mask, clip_vision, positive, negative);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct IPAdapterCombineEmbeds {
  static constexpr const char* kMethods[] = {"concat",       "add", "subtract", "average",
                                             "norm average", "max", "min",      nullptr};
  static constexpr Info info{"IPAdapterCombineEmbeds", 1, "IPAdapter Combine Embeds",
                             "ipadapter/embeds", "Embeddings as one, or beside each other."};
  static constexpr Input<Tensor> first = ip_adapter_ports::embeds("embed1");
  static constexpr Input<std::string> method{"method", Widget{.choices = kMethods}};
  static constexpr Input<Tensor> second = ip_adapter_ports::embeds("embed2", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> third = ip_adapter_ports::embeds("embed3", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> fourth = ip_adapter_ports::embeds("embed4", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> fifth = ip_adapter_ports::embeds("embed5", HEDDLE_PORT_OPTIONAL);
  static constexpr Output<Tensor> out{"EMBEDS", 0, "", "EMBEDS"};
  static constexpr auto ports = heddle::ports(first, method, second, third, fourth, fifth, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

template <bool kOfItems>
struct AppliesEmbeds {
  static constexpr Info info{kOfItems ? "IPAdapterEmbedsBatch" : "IPAdapterEmbeds", 1,
                             kOfItems ? "IPAdapter Embeds Batch" : "IPAdapter Embeds",
                             "ipadapter/embeds", "Draws like pictures that were encoded before."};
  static constexpr Input<Value> model = ip_adapter_ports::model();
  static constexpr Input<Value> ipadapter = ip_adapter_ports::ipadapter();
  static constexpr Input<Tensor> positive = ip_adapter_ports::embeds("pos_embed");
  static constexpr Input<double> weight{"weight", ip_adapter_ports::weight(3)};
  static constexpr Input<std::string> weight_type{"weight_type", ip_adapter_ports::kWeightType};
  static constexpr Input<double> start_at{"start_at", ip_adapter_ports::percent(0)};
  static constexpr Input<double> end_at{"end_at", ip_adapter_ports::percent(1)};
  static constexpr Input<std::string> embeds_scaling{"embeds_scaling", ip_adapter_ports::kScaling};
  static constexpr Input<Tensor> negative =
      ip_adapter_ports::embeds("neg_embed", HEDDLE_PORT_OPTIONAL);
  static constexpr Input<Tensor> attn_mask = ip_adapter_ports::attn_mask();
  static constexpr Input<Value> clip_vision = ip_adapter_ports::clip_vision();
  static constexpr Output<Value> out = ip_adapter_ports::changed();
  static constexpr auto ports =
      heddle::ports(model, ipadapter, positive, weight, weight_type, start_at, end_at,
                    embeds_scaling, negative, attn_mask, clip_vision, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};
using IPAdapterEmbeds = AppliesEmbeds<false>;
using IPAdapterEmbedsBatch = AppliesEmbeds<true>;

}  // namespace heddle::encoders
