#include "attention_nodes.h"

#include <vector>

#include "clip_value.h"
#include "model_merge.h"

namespace heddle::loaders {
namespace {

// The names of one attention's weights: what stands before each, and each of the four.
std::vector<Factor> factors(const std::vector<std::pair<std::string, double>>& modules) {
  std::vector<Factor> list;
  for (const auto& [module, factor] : modules)
    for (const char* kind : {".weight", ".bias"}) list.push_back({module + kind, factor});
  return list;
}

template <class Node>
Value unet_attention(Context& ctx, const std::string& name) {
  return multiplied(ctx[Node::model], factors({{name + ".to_q", ctx[Node::q]},
                                               {name + ".to_k", ctx[Node::k]},
                                               {name + ".to_v", ctx[Node::v]},
                                               {name + ".to_out.0", ctx[Node::result]}}));
}

}  // namespace

void CLIPAttentionMultiply::execute(Context& ctx) {
  const std::vector<Factor> wanted = factors({{"self_attn.q_proj", ctx[q]},
                                              {"self_attn.k_proj", ctx[k]},
                                              {"self_attn.v_proj", ctx[v]},
                                              {"self_attn.out_proj", ctx[result]}});
  const Value value = ctx[clip], list = value.field("encoders");
  std::vector<Value> encoders;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    encoders.push_back(
        with_models(encoder, [&](const Value& model) { return multiplied(model, wanted); }));
  }
  ctx[out] = Record(value).set("encoders", list_of(encoders)).value();
}

void UNetSelfAttentionMultiply::execute(Context& ctx) {
  ctx[out] = unet_attention<UNetSelfAttentionMultiply>(ctx, "attn1");
}

void UNetCrossAttentionMultiply::execute(Context& ctx) {
  ctx[out] = unet_attention<UNetCrossAttentionMultiply>(ctx, "attn2");
}

void UNetTemporalAttentionMultiply::execute(Context& ctx) {
  std::vector<Factor> wanted;
  const auto add = [&](const char* attention, bool is_of_frames, double factor) {
    for (const char* kind : {".weight", ".bias"})
      wanted.push_back({std::string(attention) + ".to_out.0" + kind, factor, is_of_frames});
  };
  add("attn1", false, ctx[self_structural]);
  add("attn1", true, ctx[self_temporal]);
  add("attn2", false, ctx[cross_structural]);
  add("attn2", true, ctx[cross_temporal]);
  ctx[out] = multiplied(ctx[model], wanted);
}

}  // namespace heddle::loaders
