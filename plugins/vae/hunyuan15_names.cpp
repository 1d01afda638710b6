#include "hunyuan15_names.h"

namespace heddle::vae {

std::vector<Hunyuan15Step> steps_of(const Checkpoint& file, const Hunyuan15Names& names,
                                    bool decoder) {
  using Part = Hunyuan15Part;
  const int levels = names.levels(file);
  std::vector<Hunyuan15Step> steps{{Part::in, "in", names.conv_in(), 0}};
  const auto add_middle = [&](int stage) {
    steps.push_back({Part::resnet, "mid.0", names.mid_resnet(0), stage});
    steps.push_back({Part::attention, "mid.attention", names.attention(), stage});
    steps.push_back({Part::resnet, "mid.1", names.mid_resnet(1), stage});
  };
  if (decoder) add_middle(0);
  const int first = decoder ? 1 : 0;
  for (int level = 0; level < levels; ++level) {
    const std::string path = (decoder ? "up." : "down.") + std::to_string(level);
    for (int i = 0; i < names.resnets(file, level); ++i)
      steps.push_back(
          {Part::resnet, path + "." + std::to_string(i), names.resnet(level, i), first + level});
    if (file.has(names.resample(level) + ".weight"))
      steps.push_back({Part::resample, path + ".resample", names.resample(level), first + level});
  }
  if (!decoder) add_middle(levels);
  steps.push_back({Part::out, "out", names.conv_out(), levels});
  return steps;
}

}  // namespace heddle::vae
