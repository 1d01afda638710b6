#include "qwen21_names.h"

#include <string_view>

#include "plugins/blocks/slots.h"
#include "renamed_modules.h"

namespace heddle::denoisers {
namespace {

constexpr const char* kGate = "transformer_blocks.0.img_mlp.gate_layer.weight";
constexpr const char* kGateUp = "transformer_blocks.0.img_mlp.gate_up.weight";

}  // namespace

std::optional<Qwen21Names> Qwen21Names::find(const Checkpoint& file) {
  auto prefix = blocks::prefix_before(file, kGate);
  if (!prefix) prefix = blocks::prefix_before(file, kGateUp);
  if (!prefix || !file.has(*prefix + "modulation.1.weight") ||
      !file.has(*prefix + "txt_in.text_norm.weight"))
    return std::nullopt;
  return Qwen21Names(file, *prefix);
}

int Qwen21Names::layers() const {
  return blocks::layer_count(file_, prefix_ + "transformer_blocks.");
}

std::int64_t Qwen21Names::mlp_width() const {
  return file_.has(prefix_ + kGate) ? file_.size(prefix_ + kGate, 0)
                                    : file_.size(prefix_ + kGateUp, 0) / 2;
}

void Qwen21Names::each_module(const Visit& visit) const {
  constexpr std::string_view kGated = ".gate_layer.weight", kJoined = ".gate_up.weight";
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string name = file_.name(i);
    if (!name.starts_with(prefix_)) continue;
    const std::string here = name.substr(prefix_.size());
    const auto [module, kind] = named_module(here);
    visit(module, kind, {{name}});
    // ComfyUI has the gate and what is gated as one matrix.
    if (here.ends_with(kJoined)) {
      const std::string at = here.substr(0, here.size() - kJoined.size());
      const std::int64_t width = mlp_width();
      visit(at + ".gate_layer", "weight", {{name, 0, width}});
      visit(at + ".proj", "weight", {{name, width, 2 * width}});
    } else if (here.ends_with(kGated)) {
      const std::string at = here.substr(0, here.size() - kGated.size());
      visit(at + ".gate_up", "weight", {{name}, {prefix_ + at + ".proj.weight"}});
    }
  }
}

}  // namespace heddle::denoisers
