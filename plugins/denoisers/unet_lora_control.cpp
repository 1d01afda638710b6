#include "unet_lora_control.h"

#include <string>

#include "plugins/blocks/slots.h"
#include "unet_control.h"
#include "unet_names.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kMark = "lora_controlnet";
constexpr const char* kBegin = "input_hint_block.0.weight";

// How wide the texts are that it reads, by the first projection of one; 0: of none.
std::int64_t text_width(const Checkpoint& file) {
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (const std::string name = file.name(i);
        name.ends_with(".attn2.to_k.down") || name.ends_with(".attn2.to_k.weight"))
      return file.size(name, 1);
  return 0;
}

bool is_halving(const Checkpoint& file, int stage) {
  const std::string module = "input_blocks." + std::to_string(stage) + ".0.op.";
  return file.has(module + "down") || file.has(module + "weight") || file.has(module + "bias");
}

}  // namespace

int UnetLoraControl::match(const Checkpoint& file, const Value&) {
  return file.has(kMark) && file.has(kBegin) ? 100 : 0;
}

void UnetLoraControl::build(const Checkpoint& file, const Value&, Blocks& graph) {
  UnetControlPlaces places;
  UnetGrid grid;
  const auto channels = [&](const std::string& module) { return file.size(module + ".weight", 0); };
  const int stages = blocks::layer_count(file, "zero_convs.");
  for (int i = 0; i < stages; ++i) {
    const std::string number = std::to_string(i);
    if (is_halving(file, i)) ++grid.halvings;
    grid.channels = channels("zero_convs." + number + ".0");
    places.add("control.output." + number, grid);
  }
  grid.channels = channels("middle_block_out.0");
  places.add("control.middle", grid);
  const UnetControlBuilder control(file, "", false, graph);
  graph.output("hint", control.add_filters(channels("input_hint_block.14")));
  graph.setting("controls", std::string("unet"));
  graph.setting("hint_pixels", true);
  graph.setting("joined_control", std::string(kControlLoraPrefix));
  if (const std::int64_t width = text_width(file)) graph.setting("context_width", width);
  places.tell(graph);
}

void add_lora_targets(const Checkpoint& file, const std::string& prefix, bool is_difference,
                      const UnetNames& names, Blocks& graph) {
  const std::string own = prefix.substr(std::string(kControlLoraPrefix).size());
  Record targets;
  names.each_original([&](const std::string& tensor, const std::vector<Part>& parts) {
    constexpr std::string_view kWeight = ".weight";
    const Value target = value_of(parts.front().tensor);
    if (is_difference && file.has(prefix + tensor)) targets.set(own + tensor, target);
    if (is_difference || !tensor.ends_with(kWeight)) return;
    const std::string module = tensor.substr(0, tensor.size() - kWeight.size());
    if (file.has(prefix + module + ".up") && file.has(prefix + module + ".down"))
      targets.set(own + module, target);
  });
  graph.setting("control_lora_targets", targets.value());
}

}  // namespace heddle::denoisers
