#include "h3_latents.h"

#include <cmath>
#include <string>
#include <vector>

namespace heddle::vae {

void add_h3_statistics(const Checkpoint& file, const Value& config, const H3Statistics& published,
                       std::int64_t channels, Blocks& graph) {
  const auto add = [&](const char* told, const char* setting, std::span<const double> known,
                       bool positive) {
    constexpr double kMost = 1e6;
    Value list = config.field(told);
    if (list.count() == 0) {
      std::vector<Value> items;
      for (const double number : known) items.push_back(value_of(number));
      list = list_of(items);
    }
    if (std::int64_t(list.count()) != channels)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  file.path() + ": the latents have " + std::to_string(channels) +
                      " channels, there are " + std::to_string(list.count()) + " numbers for '" +
                      told + "'. Give one for each channel in its config.");
    for (std::uint32_t i = 0; i < list.count(); ++i)
      if (const double number = list.item(i).as<double>();
          !(std::abs(number) < kMost) || (positive && number <= 0))
        throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": '" + told + "' lists " +
                                                 std::to_string(number) +
                                                 ", which no latent has. Correct its config.");
    graph.setting(setting, list);
  };
  add("latents_mean", "latent_means", published.means, false);
  add("latents_std", "latent_deviations", published.deviations, true);
}

}  // namespace heddle::vae
