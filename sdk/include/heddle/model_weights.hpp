// heddle/model_weights.hpp - the weights of a MODEL as its patches make them: saved as a file, or
// read as numbers. What a node calls; include heddle/model.hpp for the rest of a model.
#pragma once

#include <span>

#include "model.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

// A tensor of a saved file; see heddle_saved_tensor. `shape` empty: as the rows have it.
struct SavedTensor {
  std::string name;
  Value model;
  std::vector<Part> parts;
  std::vector<std::int64_t> shape;
  heddle_dtype dtype = 0;
};
// False: something has that path.
inline bool save_tensors(Context& ctx, const std::string& path,
                         const std::vector<SavedTensor>& tensors,
                         const std::vector<std::pair<std::string, std::string>>& metadata) {
  std::deque<RawParts> rows;
  std::deque<heddle_saved_tensor> raw;
  std::vector<const heddle_saved_tensor*> pointers;
  for (const SavedTensor& each : tensors) {
    const RawParts& parts = rows.emplace_back(each.parts);
    pointers.push_back(&raw.emplace_back(heddle_saved_tensor{
        sizeof(heddle_saved_tensor), parts.size(), each.name.c_str(), each.model.raw(),
        parts.data(), each.shape.empty() ? nullptr : each.shape.data(),
        std::uint32_t(each.shape.size()), each.dtype}));
  }
  std::vector<const char*> texts;
  for (const auto& [key, text] : metadata) {
    texts.push_back(key.c_str());
    texts.push_back(text.c_str());
  }
  std::int32_t created = 0;
  check(service<heddle_model_service>().save(
      ctx.raw(), path.c_str(), std::uint32_t(pointers.size()), pointers.data(),
      std::uint32_t(metadata.size()), texts.data(), &created));
  return created != 0;
}

// Weights of a model as its patches make them: `out` has as many elements as the rows.
inline void read_weights(Context& ctx, const Value& model, const std::vector<Part>& parts,
                         std::span<float> out) {
  const RawParts raw(parts);
  check(service<heddle_model_service>().read(ctx.raw(), model.raw(), raw.size(), raw.data(),
                                             out.data(), out.size()));
}

}  // namespace heddle
