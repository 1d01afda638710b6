#include "slots.h"

#include <algorithm>
#include <charconv>

namespace heddle::blocks {
namespace {

constexpr int kMostLayers = 10000;

Shape shape_of(const heddle_tensor_info& info) { return {info.shape, info.shape + info.rank}; }

// What the tensor of one of several parts has to look like in the file, when together they make
// `whole`. Parts without an end share the rows evenly.
Shape file_shape(const Part& part, const Shape& whole, std::size_t parts) {
  Shape shape = whole;
  shape[0] = part.end < 0 ? part.begin + whole[0] / std::int64_t(parts) : part.end;
  return shape;
}

// Whole numbers stand for others, by rules that the file does not tell: those that it does tell are
// f32 here.
void require_known_type(const Checkpoint& file, const std::string& tensor) {
  const heddle_dtype type = file.info(tensor).dtype;
  if (type != HEDDLE_I8 && type != HEDDLE_U8) return;
  throw Error(
      HEDDLE_UNSUPPORTED,
      file.path() + ": tensor '" + tensor +
          "' has weights of 8-bit integers, and no 'weight_scale' or 'comfy_quant' beside it "
          "says what they mean. Take the model in bf16, fp16, fp8, gguf or ComfyUI's int8.");
}

// Models divide by the sizes of their weights.
void require_numbers(const Checkpoint& file, const std::string& tensor, const Shape& shape) {
  if (std::ranges::count(shape, 0) == 0) return;
  throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": tensor '" + tensor + "' has shape " +
                                           shape_text(shape) +
                                           ", which holds no numbers. The file is damaged.");
}

}  // namespace

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + ")";
}

int layer_count(const Checkpoint& file, std::string_view prefix) {
  int count = 0;
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const char* begin = name.c_str() + prefix.size();
    const char* end = name.c_str() + name.size();
    int layer = 0;
    const auto [stop, error] = std::from_chars(begin, end, layer);
    if (error == std::errc() && stop != end && *stop == '.')
      count = std::max(count, std::min(layer, kMostLayers - 1) + 1);
  }
  return count;
}

std::optional<std::string> prefix_before(const Checkpoint& file, std::string_view tail) {
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    if (name.size() < tail.size() || !std::string_view(name).ends_with(tail)) continue;
    const std::string prefix = name.substr(0, name.size() - tail.size());
    if (prefix.empty() || prefix.back() == '.') return prefix;
  }
  return std::nullopt;
}

void Slots::fill(const Weight& slot, const std::vector<Part>& parts, const Shape& expected) {
  for (const Part& part : parts) {
    const Shape wanted = file_shape(part, expected, parts.size());
    const bool rest_is_free = part.end >= 0;  // other slots take the rows behind these
    const bool there = file_.has(part.tensor);
    const Shape found = there ? shape_of(file_.info(part.tensor)) : Shape{};
    const bool fits = there && found.size() == wanted.size() &&
                      std::equal(found.begin() + 1, found.end(), wanted.begin() + 1) &&
                      (found[0] == wanted[0] || (rest_is_free && found[0] > wanted[0]));
    if (fits) {
      require_numbers(file_, part.tensor, found);
      require_known_type(file_, part.tensor);
      continue;
    }
    throw Error(there ? HEDDLE_INVALID_ARGUMENT : HEDDLE_NOT_FOUND,
                file_.path() + ": tensor '" + part.tensor + "' (" + slot.slot.name + " of block '" +
                    path_ + "') " + (there ? "has shape " + shape_text(found) : "is missing") +
                    ", expected " + shape_text(wanted) + (rest_is_free ? " or more rows" : "") +
                    ". The file is damaged, incomplete or of another model.");
  }
  block_.weight(slot, parts);
}

}  // namespace heddle::blocks
