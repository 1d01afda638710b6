#include "checkpoint_config.h"

#ifdef HEDDLE_WITH_YAML
#include <yaml-cpp/yaml.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>

#include <heddle/node.hpp>

namespace heddle::loaders {

#ifdef HEDDLE_WITH_YAML

namespace {

// Beyond the first layer of any CLIP: what lies there is taken for the last one, as in ComfyUI.
constexpr std::int64_t kFirstLayer = -1000;
constexpr std::size_t kMostConfigBytes = 1 << 20;  // published ones have 2 KiB

class ConfigReader {
 public:
  explicit ConfigReader(const std::filesystem::path& path) : name_(path.string()) {}

  CheckpointConfig read() const {
    const std::string text = whole_text();
    try {
      const YAML::Node params = in(in(YAML::Load(text), "model"), "params");
      const YAML::Node clip = in(params, "cond_stage_config");
      CheckpointConfig told;
      const YAML::Node kind = params["parameterization"];
      told.predicts_velocity = kind && kind.IsScalar() && kind.Scalar() == "v";
      const YAML::Node more = clip["params"];
      const YAML::Node layer = more && more.IsMap() ? more["layer_idx"] : YAML::Node();
      if (layer && !layer.IsNull()) told.stop_at_layer = layer_of(layer);
      return told;
    } catch (const YAML::Exception& error) {
      throw Error(HEDDLE_INVALID_ARGUMENT, at(error.mark) + ": this is no YAML: " + error.msg +
                                               ". Name a config of models/configs, such as "
                                               "v1-inference.yaml.");
    }
  }

 private:
  std::string whole_text() const {
    std::ifstream file(name_, std::ios::binary);
    std::string text(kMostConfigBytes + 1, '\0');
    file.read(text.data(), std::streamsize(text.size()));
    if (!file && !file.eof())
      throw Error(HEDDLE_IO, name_ + ": the config cannot be read. Check its permissions.");
    text.resize(std::size_t(file.gcount()));
    if (text.size() > kMostConfigBytes)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  name_ + ": over " + std::to_string(kMostConfigBytes) +
                      " bytes: this is no config of a checkpoint. Name one of models/configs.");
    return text;
  }
  std::string at(const YAML::Mark& mark) const {
    return mark.is_null() ? name_ : name_ + ":" + std::to_string(mark.line + 1);
  }
  YAML::Node in(const YAML::Node& map, const char* key) const {
    const YAML::Node found = map.IsMap() ? map[key] : YAML::Node(YAML::NodeType::Undefined);
    if (found && found.IsMap()) return found;
    throw Error(HEDDLE_INVALID_ARGUMENT,
                at(map.Mark()) + ": there is no map '" + key +
                    "' (model: params: cond_stage_config:), so this is no config of a checkpoint. "
                    "Name one of models/configs, or load the file with CheckpointLoaderSimple.");
  }
  std::int64_t layer_of(const YAML::Node& node) const {
    std::int64_t layer = 0;
    if (!node.IsScalar() || !YAML::convert<std::int64_t>::decode(node, layer) || layer >= 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  at(node.Mark()) + ": layer_idx is '" + (node.IsScalar() ? node.Scalar() : "...") +
                      "', which is no number below 0. Write -1 for the last layer of CLIP, -2 for "
                      "the one before it.");
    return std::max(layer, kFirstLayer);
  }

  std::string name_;
};

}  // namespace

CheckpointConfig read_checkpoint_config(const std::filesystem::path& path) {
  return ConfigReader(path).read();
}

#else

CheckpointConfig read_checkpoint_config(const std::filesystem::path& path) {
  throw Error(HEDDLE_UNSUPPORTED, path.string() +
                                      ": heddle was built without yaml-cpp. Install "
                                      "libyaml-cpp-dev and build again, or load the checkpoint "
                                      "with CheckpointLoaderSimple.");
}

#endif

}  // namespace heddle::loaders
