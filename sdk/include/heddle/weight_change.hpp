// heddle/weight_change.hpp - changes of weights that are no sums of products.
#pragma once

#include <functional>
#include <memory>

#include "abi/weight_change.h"
#include "model.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

template <>
inline constexpr const char* service_name<heddle_weight_change_service> =
    HEDDLE_SERVICE_WEIGHT_CHANGE;

// See heddle_weight_change.
struct WeightChange {
  Part part;
  std::string identity;
  std::function<void(std::int64_t rows, std::int64_t width, float* numbers)> apply;
};

inline Value with_changes(const Value& model, const Checkpoint& file,
                          std::vector<WeightChange> changes) {
  using Apply = decltype(WeightChange::apply);
  std::vector<Part> parts;
  for (const WeightChange& change : changes) parts.push_back(change.part);
  const RawParts raw_parts(parts);
  std::vector<heddle_weight_change> raw;
  for (std::size_t i = 0; i < changes.size(); ++i)
    raw.push_back({sizeof(heddle_weight_change), raw_parts.data()[i], changes[i].identity.c_str(),
                   [](void* self, std::int64_t rows, std::int64_t width, float* numbers) {
                     return guard([&] { (*static_cast<Apply*>(self))(rows, width, numbers); });
                   },
                   std::make_unique<Apply>(std::move(changes[i].apply)).release(),
                   [](void* self) { delete static_cast<Apply*>(self); }});
  std::vector<const heddle_weight_change*> pointers;
  for (const heddle_weight_change& change : raw) pointers.push_back(&change);
  heddle_value* out = nullptr;
  check(service<heddle_weight_change_service>().with_changes(
      model.raw(), file.raw(), std::uint32_t(pointers.size()), pointers.data(), &out));
  return Value::adopt(out);
}

}  // namespace heddle
