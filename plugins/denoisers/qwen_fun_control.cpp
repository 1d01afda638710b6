#include "qwen_fun_control.h"

#include <optional>

#include "flux_blocks.h"
#include "patches.h"
#include "plugins/blocks/slots.h"
#include "qwen_names.h"
#include "wan_latent_settings.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kHintLayer = "control_img_in";
constexpr std::int64_t kFunLatentChannels = 16;

std::int64_t hint_channels(const Checkpoint& file, const std::string& prefix) {
  return file.size(prefix + kHintLayer + ".weight", 1) / kPatchArea;
}

Source fun_tokens(const Checkpoint& file, const std::string& prefix, const ControlBuilder& control,
                  Blocks& graph) {
  Block whole = graph.add<ControlHintZeros>("embed.hint_zeros");
  whole.link(ControlHintZeros::hint, control.hint())
      .set(ControlHintZeros::channels, hint_channels(file, prefix));
  return control.hint_tokens(whole[ControlHintZeros::out], kHintLayer);
}

}  // namespace

int QwenFunControl::match(const Checkpoint& file, const Value&) {
  return QwenNames::find_fun_control(file, "") ? 100 : 0;
}

void QwenFunControl::build(const Checkpoint& file, const Value&, Blocks& graph) {
  const std::int64_t hidden = file.size(std::string(kHintLayer) + ".weight", 0);
  const ControlBuilder control(file, "", hidden, graph);
  graph.output("hint", fun_tokens(file, "", control, graph));
  graph.setting("joined_control", std::string(kFunPrefix));
  control.add_settings("qwen-image", 0, 0);
  add_fun_settings(file, "", graph);
}

Source add_fun_hint(const Checkpoint& file, const std::string& prefix,
                    const ControlBuilder& control, const Source& img, std::int64_t hidden,
                    Blocks& graph) {
  using B = ControlBegin;
  Block block = graph.add<B>("embed.controlled");
  block.link(B::img, img).link(B::hint, fun_tokens(file, prefix, control, graph));
  blocks::Slots slots(file, block, "embed.controlled");
  const std::string module = prefix + "control_blocks.0.before_proj";
  slots.fill(B::weight, module + ".weight", {hidden, hidden});
  slots.fill(B::bias, module + ".bias", {hidden});
  return block[B::out];
}

void add_fun_settings(const Checkpoint& file, const std::string& prefix, Blocks& graph) {
  graph.setting("control_firsts",
                std::int64_t{blocks::layer_count(file, prefix + "control_blocks.")});
  // ComfyUI uses the square root of the strength for these files.
  graph.setting("strength_square_root", true);
  graph.setting("latent_channels", kFunLatentChannels);
  add_wan_latents(kFunLatentChannels, graph);
}

}  // namespace heddle::denoisers
