#include "unet_view.h"

#include <string>

#include <heddle/ops.hpp>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {
namespace {

const std::string kViewMatrix = std::string(kViewProjection) + "weight";

}  // namespace

void UnetView::execute(Context& ctx) {
  const Tensor told = ctx[context];
  if (told.size(2) == ctx[proj].size(1)) {
    ctx[out] = ops::linear(ctx, told, ctx[proj], ctx[proj_bias]);
    return;
  }
  if (told.size(2) != ctx[proj].size(0))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning is " + std::to_string(told.size(2)) + " wide, the model reads " +
                    std::to_string(ctx[proj].size(1)) + " with a view and " +
                    std::to_string(ctx[proj].size(0)) +
                    " without one. Link StableZero123_Conditioning.");
  ctx[out] = ops::cast(ctx, told, ctx.compute());
}

std::int64_t view_width(const Checkpoint& file) {
  return file.has(kViewMatrix) ? file.size(kViewMatrix, 1) : 0;
}

Source add_view(const Checkpoint& file, const Source& context, std::int64_t width, Blocks& graph) {
  const std::int64_t told = view_width(file);
  if (told == 0) return context;
  Block block = graph.add<UnetView>("view");
  block.link(UnetView::context, context);
  blocks::Slots slots(file, block, "view");
  slots.fill(UnetView::proj, kViewMatrix, {width, told});
  slots.fill(UnetView::proj_bias, std::string(kViewProjection) + "bias", {width});
  return block[UnetView::out];
}

}  // namespace heddle::denoisers
