#include "qwen21_names.h"

#include <string_view>

#include "plugins/blocks/slots.h"

namespace heddle::denoisers {

std::optional<Qwen21Names> Qwen21Names::find(const Checkpoint& file) {
  const auto prefix = blocks::prefix_before(file, "transformer_blocks.0.img_mlp.gate_layer.weight");
  if (!prefix || !file.has(*prefix + "modulation.1.weight") ||
      !file.has(*prefix + "txt_in.text_norm.weight"))
    return std::nullopt;
  return Qwen21Names(file, *prefix);
}

int Qwen21Names::layers() const {
  return blocks::layer_count(file_, prefix_ + "transformer_blocks.");
}

void Qwen21Names::each_module(const Visit& visit) const {
  constexpr std::string_view kTail = ".weight";
  for (std::uint32_t i = 0; i < file_.size(); ++i) {
    const std::string name = file_.name(i);
    if (name.starts_with(prefix_) && name.ends_with(kTail))
      visit(name.substr(prefix_.size(), name.size() - prefix_.size() - kTail.size()), "weight",
            {{name}});
  }
}

}  // namespace heddle::denoisers
