#include "piece_configs.h"

#include <string>
#include <vector>

namespace heddle::vae {

std::optional<VaePiece> asked_piece(const Checkpoint& file, const Value& config) {
  if (!config.has("piece")) return {};
  const auto stage = config.get<std::int64_t>("stage", 0);
  if (stage < 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                file.path() + ": stage " + std::to_string(stage) + ": it is 0 or more");
  const auto kind = config.get<std::string>("piece", "first");
  return VaePiece{stage, kind == "first" || kind == "only", kind == "last" || kind == "only"};
}

Value piece_configs(const Value& config, std::int64_t stages) {
  std::vector<Value> all;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    Record kinds;
    for (const char* kind : {"first", "next", "last", "only"})
      kinds.set(kind, Record(config)
                          .set("piece", value_of(std::string(kind)))
                          .set("stage", value_of(stage))
                          .value());
    all.push_back(kinds.value());
  }
  return list_of(all);
}

}  // namespace heddle::vae
