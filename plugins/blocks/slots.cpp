#include "slots.h"

#include <algorithm>
#include <charconv>

namespace heddle::blocks {
namespace {

Shape shape_of(const heddle_tensor_info& info) { return {info.shape, info.shape + info.rank}; }

// What the tensor of a part ought to look like. Parts without a row range share the rows evenly in
// every family here.
std::string expected_text(const Part& part, Shape shape, std::size_t parts) {
  if (part.end < 0) {
    shape[0] /= std::int64_t(parts);
    return shape_text(shape);
  }
  shape[0] = part.end;
  return shape_text(shape) + " or more rows";
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
    if (error == std::errc() && stop != end && *stop == '.') count = std::max(count, layer + 1);
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

void refuse_scaled(const Checkpoint& file, const std::string& prefix) {
  if (!file.has(prefix + "scaled_fp8")) return;
  throw Error(HEDDLE_UNSUPPORTED, file.path() + ": '" + prefix +
                                      "scaled_fp8' says that its weights are fp8 with a scale per "
                                      "tensor, which is not read yet. "
                                      "Use a bf16, fp16 or plain fp8 file.");
}

void Slots::fill(const Weight& slot, const std::vector<Part>& parts, const Shape& expected) {
  const auto refuse = [&](heddle_code code, const Part& part, const std::string& found) {
    throw Error(code, file_.path() + ": tensor '" + part.tensor + "' (" + slot.slot.name +
                          " of block '" + path_ + "') " + found + ", expected " +
                          expected_text(part, expected, parts.size()) +
                          ". The file is damaged, incomplete or of another model.");
  };
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    if (!file_.has(part.tensor)) refuse(HEDDLE_NOT_FOUND, part, "is missing");
    const Shape shape = shape_of(file_.info(part.tensor));
    const std::int64_t end = part.end < 0 ? (shape.empty() ? 0 : shape[0]) : part.end;
    const bool fits = shape.size() == expected.size() &&
                      std::equal(shape.begin() + 1, shape.end(), expected.begin() + 1) &&
                      end <= shape[0] && part.begin <= end;
    if (!fits) refuse(HEDDLE_INVALID_ARGUMENT, part, "has shape " + shape_text(shape));
    rows += end - part.begin;
  }
  if (rows != expected[0]) {
    std::string found;
    for (const Part& part : parts)
      found += (found.empty() ? "" : ", ") + shape_text(shape_of(file_.info(part.tensor)));
    refuse(HEDDLE_INVALID_ARGUMENT, parts.front(),
           parts.size() == 1 ? "has shape " + found
                             : "and its neighbours have shapes " + found + " (" +
                                   std::to_string(rows) + " rows)");
  }
  block_.weight(slot, parts);
}

}  // namespace heddle::blocks
