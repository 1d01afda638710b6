#include "widening.h"

namespace heddle::denoisers {

std::vector<Widening> widenings(const Value& config) {
  std::vector<Widening> all;
  if (!config.is(HEDDLE_KIND_RECORD)) return all;
  const Value list = config.field("widened");
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value told = list.item(i);
    const auto prefix = told.get<std::string>("prefix", "");
    all.push_back({prefix + told.get<std::string>("down", ""),
                   prefix + told.get<std::string>("up", ""), told.get<double>("strength", 1.0)});
  }
  return all;
}

std::int64_t read_beside(const Checkpoint& file, const std::vector<Widening>& all,
                         std::int64_t width) {
  std::int64_t beside = 0;
  for (const Widening& one : all) {
    const std::int64_t more = file.size(one.down, 1) - width;
    if (more <= 0 || (beside != 0 && more != beside))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a LoRA reads " + std::to_string(width + more) + " numbers of a token, another " +
                      std::to_string(width + beside) +
                      ". Use LoRAs together that were made for one kind of picture.");
    beside = more;
  }
  return beside;
}

void add_widened_settings(const Value& config, const std::string& tensor, Blocks& graph) {
  graph.setting("widened_config", config.is(HEDDLE_KIND_RECORD) ? Value(config) : Record().value());
  graph.setting("widens", tensor);
}

}  // namespace heddle::denoisers
