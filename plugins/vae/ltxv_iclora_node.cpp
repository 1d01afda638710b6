#include "plugins/vae/ltxv_iclora_node.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include <heddle/model.hpp>

namespace heddle::vae {
namespace {

constexpr const char* kFactor = "reference_downscale_factor";
constexpr double kMostFactor = 16384;  // no latent has longer sides

// A number as a text, to the nearest integer, of two the even one; 1 where it is none, or less.
std::int64_t factor_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string behind = end;
  const bool is_number =
      end != text.c_str() && behind.find_first_not_of(" \n\t") == std::string::npos;
  if (!is_number || !std::isfinite(number)) return 1;
  return std::int64_t(std::clamp(std::nearbyint(number), 1.0, kMostFactor));
}

}  // namespace

std::int64_t reference_factor(const Value& parameters) {
  return std::clamp<std::int64_t>(parameters.get<std::int64_t>(kFactor, 1), 1,
                                  std::int64_t(kMostFactor));
}

void GetICLoRAParameters::execute(Context& ctx) {
  const std::string told = model_settings(ctx[iclora_model]).get<std::string>(kFactor, "");
  ctx[iclora_parameters] = Record().set(kFactor, value_of(factor_in(told))).value();
}

}  // namespace heddle::vae
