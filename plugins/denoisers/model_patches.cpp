#include "model_patches.h"

namespace heddle::denoisers {

std::vector<ModelPatch> model_patches(const Value& config) {
  std::vector<ModelPatch> patches;
  if (!config.is(HEDDLE_KIND_RECORD)) return patches;
  const Value list = config.field("model_patches");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    const std::string path = "patch." + std::to_string(i);
    patches.push_back({told.get<std::string>("prefix", ""), told.get<std::string>("file", ""),
                       told.get<double>("strength", 1.0), told, path, path + ".hint"});
  }
  return patches;
}

Source add_hint_input(const ModelPatch& patch, Blocks& graph) {
  return graph.input(patch.input.c_str(),
                     HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_OPTIONAL | HEDDLE_INPUT_BATCH);
}

bool is_patch_tensor(const std::string& name) { return name.starts_with("model_patch."); }

void add_patched_settings(const Value& config, std::int64_t width, Blocks& graph) {
  graph.setting("patched_config", config.is(HEDDLE_KIND_RECORD) ? Value(config) : Record().value());
  graph.setting("patched_width", width);
}

void add_patch_settings(const char* family, std::int64_t width, std::int64_t latent_channels,
                        std::int64_t hint_channels, Blocks& graph) {
  graph.setting("patches", std::string(family));
  graph.setting("patch_width", width);
  graph.setting("latent_channels", latent_channels);
  graph.setting("hint_channels", hint_channels);
}

}  // namespace heddle::denoisers
