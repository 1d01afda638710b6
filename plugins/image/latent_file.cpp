#include "plugins/image/latent_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <heddle/node.hpp>

#include "plugins/blocks/json_text.h"

namespace heddle::image {
namespace {

using blocks::json_string;

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

constexpr const char* kTensor = "latent_tensor";
constexpr const char* kVersion = "latent_format_version_0";
constexpr double kOldScale = 1.0 / 0.18215;  // of SD1's latents

[[noreturn]] void refuse_latent(const std::string& name, const std::string& why) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              name + ": this is no latent: " + why + ". Save it anew with SaveLatent.");
}

std::string header_entry(const char* key, const std::string& shape, std::size_t bytes) {
  return json_string(key) + R"(: {"dtype": "F32", "shape": [)" + shape +
         R"(], "data_offsets": [0, )" + std::to_string(bytes) + "]}";
}

float half_float(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 0    ? fraction * 0x1p-24
                      : exponent == 31 ? (fraction == 0 ? HUGE_VAL : NAN)
                                       : std::ldexp(1024 + fraction, exponent - 25);
  return float(bits & 0x8000 ? -size : size);
}

struct Stored {
  std::string type;
  Shape shape;
  std::uint64_t begin, end;
};

Stored entry_in(const Value& header, const char* key, const std::string& name) {
  const Value entry = header.field(key);
  if (!entry.is(HEDDLE_KIND_RECORD)) refuse_latent(name, std::string("it has no ") + key);
  Stored stored{entry.get<std::string>("dtype", ""), {}, 0, 0};
  const Value shape = entry.field("shape"), place = entry.field("data_offsets");
  for (std::uint32_t i = 0; i < shape.count(); ++i)
    stored.shape.push_back(shape.item(i).as<std::int64_t>());
  if (place.count() != 2 || stored.shape.size() > HEDDLE_MAX_RANK)
    refuse_latent(name, "its header is damaged");
  stored.begin = place.item(0).as<std::uint64_t>();
  stored.end = place.item(1).as<std::uint64_t>();
  return stored;
}

}  // namespace

std::string latent_file(const Shape& shape, std::span<const float> values,
                        const std::vector<std::pair<std::string, std::string>>& notes) {
  std::string sides, metadata;
  for (const std::int64_t side : shape) sides += (sides.empty() ? "" : ", ") + std::to_string(side);
  for (const auto& [key, text] : notes)
    metadata += (metadata.empty() ? "" : ", ") + json_string(key) + ": " + json_string(text);
  std::string header = "{";
  if (!metadata.empty()) header += "\"__metadata__\": {" + metadata + "}, ";
  header += header_entry(kVersion, "0", 0) + ", " +
            header_entry(kTensor, sides, values.size_bytes()) + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

LatentInFile read_latent_file(std::span<const std::uint8_t> bytes, const std::string& name) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) refuse_latent(name, "it is too short");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) refuse_latent(name, "its header is longer than the file");
  heddle_value* parsed = nullptr;
  check(service<heddle_json_service>().parse(
      services.host, {reinterpret_cast<const char*>(bytes.data()) + sizeof size, std::size_t(size)},
      name.c_str(), &parsed));
  const Value header = Value::adopt(parsed);
  const Stored stored = entry_in(header, kTensor, name);
  const std::span<const std::uint8_t> data = bytes.subspan(sizeof size + std::size_t(size));
  const std::size_t width = stored.type == "F32" ? 4 : 2;
  if (stored.type != "F32" && stored.type != "F16" && stored.type != "BF16")
    refuse_latent(name, "its numbers are of type '" + stored.type + "'");
  std::int64_t count = 1;
  for (const std::int64_t side : stored.shape) {
    if (side < 1) refuse_latent(name, "it has no numbers");
    count = checked_product({count, side}, name.c_str());
  }
  if (stored.begin > stored.end || stored.end > data.size() ||
      (stored.end - stored.begin) / width != std::uint64_t(count) ||
      (stored.end - stored.begin) % width != 0)
    refuse_latent(name, "its numbers are not where its header says");
  const float scale = header.has(kVersion) ? 1.0f : float(kOldScale);
  LatentInFile latent{stored.shape, std::vector<float>(std::size_t(count))};
  for (std::size_t i = 0; i < latent.values.size(); ++i) {
    const std::uint8_t* from = data.data() + stored.begin + i * width;
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, width);
    latent.values[i] = scale * (stored.type == "F32"    ? std::bit_cast<float>(bits)
                                : stored.type == "BF16" ? std::bit_cast<float>(bits << 16)
                                                        : half_float(std::uint16_t(bits)));
  }
  return latent;
}

}  // namespace heddle::image
