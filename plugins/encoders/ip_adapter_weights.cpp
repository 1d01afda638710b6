#include "ip_adapter_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <heddle/node.hpp>

namespace heddle::encoders {
namespace {

// What is multiplied in a transformer: nothing, the weight, or that of the composition.
enum class Of { kNothing, kStyle, kComposition };
struct Share {
  Of of = Of::kNothing;
  double factor = 1;
  bool is_other = false;  // in the types that give the negative side the picture
};

constexpr std::size_t kComposed = 3, kStyled = 6;               // of SDXL
constexpr std::size_t kComposedFirst = 4, kComposedSecond = 5;  // of Stable Diffusion 1.5
constexpr std::size_t kStyledFirst = 4, kStyledAgain = 9;       // below the one, from the other
constexpr double kLittle = 0.1, kQuarter = 0.25;

bool is_composed(std::size_t at, bool is_sdxl) {
  return is_sdxl ? at == kComposed : at == kComposedFirst || at == kComposedSecond;
}
bool is_styled(std::size_t at, bool is_sdxl) {
  return is_sdxl ? at == kStyled : at < kStyledFirst || at >= kStyledAgain;
}
// The first of two transformers that compose counts a quarter.
double composed_factor(std::size_t at, bool is_sdxl) {
  return !is_sdxl && at == kComposedFirst ? kQuarter : 1.0;
}

Share composed(std::size_t at, bool is_sdxl, double factor) {
  return is_composed(at, is_sdxl) ? Share{Of::kComposition, factor} : Share{};
}
Share styled(std::size_t at, bool is_sdxl) {
  return is_styled(at, is_sdxl) ? Share{Of::kStyle} : Share{};
}
Share either(const Share& first, const Share& second) {
  return first.of != Of::kNothing ? first : second;
}

// The types that name transformers.
Share share_of(std::string_view type, std::size_t at, bool is_sdxl) {
  const double factor = composed_factor(at, is_sdxl);
  const Share rest{is_composed(at, is_sdxl) ? Of::kNothing : Of::kStyle};
  if (type == "style transfer") return styled(at, is_sdxl);
  if (type == "composition") return composed(at, is_sdxl, factor);
  if (type == "strong style transfer") return rest;
  if (type == "style and composition")
    return either(composed(at, is_sdxl, factor), styled(at, is_sdxl));
  if (type == "strong style and composition") return either(composed(at, is_sdxl, 1), rest);
  if (type == "style transfer precise") {
    Share share = either(composed(at, is_sdxl, factor), styled(at, is_sdxl));
    share.is_other = is_composed(at, is_sdxl);
    return share;
  }
  if (type == "composition precise") {
    Share share = either(composed(at, is_sdxl, factor), styled(at, is_sdxl));
    if (share.of == Of::kNothing) share = {Of::kStyle, kLittle};
    share.is_other = !is_composed(at, is_sdxl);
    return share;
  }
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "weight_type: '" + std::string(type) + "' is none that is known. Take linear.");
}

// The types that go by the place alone; none: another type.
std::optional<double> factor_of(std::string_view type, double at, double count, char place) {
  constexpr double kLeast = 0.05, kRest = 0.95, kWeak = 0.2;
  const double from_middle = std::abs(at - count / 2) / (count / 2);
  const auto weak = [&](bool is_weak) { return is_weak ? kWeak : 1.0; };
  if (type == "linear") return 1.0;
  if (type == "ease in") return kLeast + kRest * (1 - at / count);
  if (type == "ease out") return kLeast + kRest * (at / count);
  if (type == "ease in-out") return kLeast + kRest * (1 - from_middle);
  if (type == "reverse in-out") return kLeast + kRest * from_middle;
  if (type == "weak input") return weak(place == 'i');
  if (type == "weak middle") return weak(place == 'm');
  if (type == "weak output") return weak(place == 'o');
  if (type == "strong middle") return weak(place != 'm');
  return {};
}

}  // namespace

AdapterWeights adapter_weights(const std::string& type, const std::string& places, bool is_sdxl,
                               double weight, double composition, bool has_other) {
  AdapterWeights made;
  if (type.find("style and composition") == std::string::npos) composition = weight;
  for (std::size_t at = 0; at < places.size(); ++at) {
    const auto factor = factor_of(type, double(at), double(places.size()), places[at]);
    if (factor) {
      made.weights.push_back(weight * *factor);
      made.sources.push_back(0);
      continue;
    }
    const Share share = share_of(type, at, is_sdxl);
    const double of = share.of == Of::kComposition ? composition : weight;
    made.weights.push_back(share.of == Of::kNothing ? 0 : of * share.factor);
    made.sources.push_back(share.is_other || (has_other && at == kComposed) ? 1 : 0);
  }
  return made;
}

}  // namespace heddle::encoders
