#include "plugins/image/latent_file.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "plugins/blocks/safetensors_text.h"

namespace heddle::image {
namespace {

using blocks::StoredTensor;

constexpr const char* kTensor = "latent_tensor";
constexpr const char* kVersion = "latent_format_version_0";
constexpr double kOldScale = 1.0 / 0.18215;  // of SD1's latents
constexpr blocks::KindOfFile kLatent{"latent", "Save it anew with SaveLatent."};

[[noreturn]] void refuse_latent(const std::string& name, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              name + ": this is no latent: " + why + ". " + kLatent.advice);
}

float half_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? fraction * 0x1p-24
                      : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return float(bits & 0x8000 ? -size : size);
}

}  // namespace

std::string latent_file(const Shape& shape, std::span<const float> values,
                        const std::vector<std::pair<std::string, std::string>>& notes) {
  const StoredTensor tensors[] = {
      {kVersion, HEDDLE_F32, {0}, {}},
      {kTensor,
       HEDDLE_F32,
       shape,
       {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()}}};
  return blocks::safetensors_text(tensors, notes);
}

LatentInFile read_latent_file(std::span<const std::uint8_t> bytes, const std::string& name) {
  const blocks::StoredTensors file = blocks::read_safetensors(bytes, name, kLatent);
  const StoredTensor* const stored = file.find(kTensor);
  if (stored == nullptr) refuse_latent(name, std::string("it has no ") + kTensor);
  if (stored->dtype != HEDDLE_F32 && stored->dtype != HEDDLE_F16 && stored->dtype != HEDDLE_BF16)
    refuse_latent(name, "its numbers are of another type than F32, F16 and BF16");
  if (stored->bytes.empty()) refuse_latent(name, "it has no numbers");
  const std::size_t width = stored->dtype == HEDDLE_F32 ? 4 : 2;
  const float scale = file.find(kVersion) != nullptr ? 1.0f : float(kOldScale);
  LatentInFile latent{stored->shape, std::vector<float>(stored->bytes.size() / width)};
  for (std::size_t i = 0; i < latent.values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, stored->bytes.data() + i * width, width);
    latent.values[i] = scale * (stored->dtype == HEDDLE_F32    ? std::bit_cast<float>(bits)
                                : stored->dtype == HEDDLE_BF16 ? std::bit_cast<float>(bits << 16)
                                                               : half_float(std::uint16_t(bits)));
  }
  return latent;
}

}  // namespace heddle::image
