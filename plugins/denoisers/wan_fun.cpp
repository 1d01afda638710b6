#include "wan_fun.h"

#include "patches.h"
#include "plugins/blocks/slots.h"
#include "wan_fun_blocks.h"

namespace heddle::denoisers {
namespace {

constexpr std::uint32_t kFunInput =
    HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH | HEDDLE_INPUT_OPTIONAL;

}  // namespace

Source WanFun::embed_reference() const {
  using B = WanReferenceIn;
  Block block = graph_.add<B>("embed.reference");
  block.link(B::reference, graph_.input("reference", kFunInput));
  blocks::Slots slots(file_, block, "embed.reference");
  slots.fill(B::weight, names_.one("ref_conv.weight"),
             {s_.width, s_.fun.reference, kPatch, kPatch});
  slots.fill(B::bias, names_.one("ref_conv.bias"), {s_.width});
  return block[B::out];
}

Source WanFun::embed_camera() const {
  using B = WanCameraIn;
  Block block = graph_.add<B>("embed.camera");
  block.link(B::camera, graph_.input("camera", kFunInput));
  blocks::Slots slots(file_, block, "embed.camera");
  const std::string at = "control_adapter.";
  const auto filter = [&](const Weight& weight, const Weight& bias, const std::string& module,
                          const Shape& shape) {
    slots.fill(weight, names_.one(at + module + ".weight"), shape);
    slots.fill(bias, names_.one(at + module + ".bias"), {s_.width});
  };
  const Shape around{s_.width, s_.width, 3, 3};
  filter(B::weight, B::bias, "conv", {s_.width, s_.fun.camera, kPatch, kPatch});
  filter(B::first, B::first_bias, "residual_blocks.0.conv1", around);
  filter(B::second, B::second_bias, "residual_blocks.0.conv2", around);
  return block[B::out];
}

Source WanFun::join(const Source& hidden, const std::optional<Source>& reference) const {
  using B = WanFunJoin;
  Block block = graph_.add<B>("embed.fun_join");
  block.link(B::hidden, hidden);
  if (s_.fun.camera > 0) block.link(B::camera, embed_camera());
  if (reference) block.link(B::reference, *reference);
  return block[B::out];
}

}  // namespace heddle::denoisers
