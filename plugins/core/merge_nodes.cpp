#include "merge_nodes.h"

#include "model_merge.h"

namespace heddle::loaders {
void ModelMergeSimple::execute(Context& ctx) {
  const Share share = share_of(ctx[ratio]);
  ctx[out] = merged_models(ctx[model1], ctx[model2], [&](std::string_view) { return share; });
}

void ModelMergeAdd::execute(Context& ctx) {
  ctx[out] = merged_models(ctx[model1], ctx[model2], [](std::string_view) { return Share{1, 1}; });
}

void ModelMergeSubtract::execute(Context& ctx) {
  const double times = ctx[multiplier];
  ctx[out] = merged_models(ctx[model1], ctx[model2], [&](std::string_view) {
    return Share{times, -times};
  });
}

void ModelMergeBlocks::execute(Context& ctx) {
  ctx[out] = merged_by_blocks(ctx[model1], ctx[model2],
                              {{"input", ctx[input]}, {"middle", ctx[middle]}, {"out", ctx[last]}});
}

void CLIPMergeSimple::execute(Context& ctx) {
  ctx[out] = merged_clips(ctx[clip1], ctx[clip2], share_of(ctx[ratio]));
}
void CLIPMergeAdd::execute(Context& ctx) {
  ctx[out] = merged_clips(ctx[clip1], ctx[clip2], {1, 1});
}
void CLIPMergeSubtract::execute(Context& ctx) {
  const double times = ctx[multiplier];
  ctx[out] = merged_clips(ctx[clip1], ctx[clip2], {times, -times});
}

}  // namespace heddle::loaders
