#include "lora_notes.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>

namespace heddle::loaders {
namespace {

constexpr const char* kFactorSetting = "reference_downscale_factor";
constexpr std::uint64_t kMostOfHeader = 100 << 20;  // as safetensors has it

}  // namespace

Value file_notes(const std::string& path) {
  if (!path.ends_with(".safetensors")) return {};
  std::ifstream file(path, std::ios::binary);
  std::array<char, sizeof(std::uint64_t)> begin{};
  if (!file.read(begin.data(), begin.size())) return {};
  std::uint64_t size = 0;
  std::memcpy(&size, begin.data(), begin.size());
  if (size > kMostOfHeader) return {};
  std::string header(std::size_t(size), '\0');
  if (!file.read(header.data(), std::streamsize(size))) return {};
  heddle_value* parsed = nullptr;
  check(service<heddle_json_service>().parse(services.host, {header.data(), header.size()},
                                             path.c_str(), &parsed));
  return Value::adopt(parsed).field("__metadata__");
}

Value with_lora_notes(const Value& model, const Value& notes) {
  const Value settings = model_settings(model);
  if (notes.count() == 0) return model;
  for (std::uint32_t i = 0; i < notes.count(); ++i)
    if (notes.key(i).ends_with(kFactorSetting) && notes.item(i).is(HEDDLE_KIND_STR))
      return with_settings(model, Record(settings).set(kFactorSetting, notes.item(i)).value());
  if (!settings.has(kFactorSetting)) return model;
  Record kept;
  for (std::uint32_t i = 0; i < settings.count(); ++i)
    if (settings.key(i) != kFactorSetting) kept.set(settings.key(i), settings.item(i));
  return with_settings(model, kept.value());
}

}  // namespace heddle::loaders
