#include "skip_layer_nodes.h"

#include <algorithm>
#include <string_view>

#include "guide.h"

namespace heddle::samplers {
namespace {

// The numbers in a text, whatever stands between them, as paths of blocks.
void add_layers(std::vector<std::string>& paths, const char* stream, const std::string& text) {
  std::string digits;
  const auto flush = [&] {
    // As numbers: "07" means 7.
    const std::size_t first = digits.find_first_not_of('0');
    if (!digits.empty())
      paths.push_back(std::string(stream) + "." +
                      (first == std::string::npos ? "0" : digits.substr(first)));
    digits.clear();
  };
  for (const char c : text) {
    if (c >= '0' && c <= '9')
      digits += c;
    else
      flush();
  }
  flush();
}

// ComfyUI counts the layers of models of videos, which have one kind of them, as double ones.
const char* doubles_of(const Value& model) {
  constexpr std::string_view kOfOneKind[] = {"wan", "ltxv", "ltx2", "minimax-h3"};
  return std::ranges::count(kOfOneKind, std::string_view(model_family(model))) > 0 ? "layer"
                                                                                   : "double";
}

std::vector<std::string> layers_of(const Value& model, const std::string& doubles,
                                   const std::string& singles) {
  std::vector<std::string> paths;
  add_layers(paths, doubles_of(model), doubles);
  add_layers(paths, "single", singles);
  return paths;
}

struct Skipping {
  double scale, start_percent, end_percent, rescaling_scale;
};

Value skipping(const Value& model, const std::vector<std::string>& blocks, const Skipping& how) {
  if (blocks.empty() || how.scale == 0.0) return model;
  return with_skipping_patch(model, "skip_layers",
                             {{{"scale", how.scale},
                               {"start_percent", how.start_percent},
                               {"end_percent", how.end_percent},
                               {"rescaling_scale", how.rescaling_scale}},
                              {}},
                             blocks);
}

}  // namespace

void SkipLayerGuidanceDiT::execute(Context& ctx) {
  ctx[out] = skipping(ctx[model], layers_of(ctx[model], ctx[double_layers], ctx[single_layers]),
                      {ctx[scale], ctx[start_percent], ctx[end_percent], ctx[rescaling_scale]});
}

void SkipLayerGuidanceDiTSimple::execute(Context& ctx) {
  const std::vector<std::string> blocks =
      layers_of(ctx[model], ctx[double_layers], ctx[single_layers]);
  const Value from = ctx[model];
  ctx[out] = blocks.empty()
                 ? from
                 : with_less_for_negative(from, blocks, ctx[start_percent], ctx[end_percent]);
}

void SkipLayerGuidanceSD3::execute(Context& ctx) {
  ctx[out] = skipping(ctx[model], layers_of(ctx[model], ctx[layers], ""),
                      {ctx[scale], ctx[start_percent], ctx[end_percent], 0.0});
}

void PerturbedAttentionGuidance::execute(Context& ctx) {
  constexpr int kMostDeep =
      16;  // SDXL has 10 transformers there; what is not there is not left out
  std::vector<std::string> blocks;
  for (int i = 0; i < kMostDeep; ++i)
    blocks.push_back("middle.1.transformer." + std::to_string(i) + ".self");
  const Value from = ctx[model];
  ctx[out] =
      model_family(from) == "unet" ? skipping(from, blocks, {ctx[scale], 0.0, 1.0, 0.0}) : from;
}

}  // namespace heddle::samplers
