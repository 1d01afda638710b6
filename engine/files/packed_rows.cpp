#include "engine/files/packed_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/checkpoint.h"

namespace heddle::engine {

namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kInt8 = "int8_tensorwise";
// Whose numbers and scale stand in the file as those of any other matrix of that type.
constexpr std::string_view kPlainFormats[] = {"float8_e4m3fn", "float8_e5m2"};

using Path = std::filesystem::path;

const TensorView* find(const std::vector<TensorView>& views, std::string_view name) {
  const auto found = std::ranges::lower_bound(views, name, {}, &TensorView::name);
  return found == views.end() || found->name != name ? nullptr : &*found;
}

// By module: what a file says of its weight.
std::map<std::string, Json, std::less<>> layers_of(std::optional<std::string_view> metadata,
                                                   const Path& path) {
  std::map<std::string, Json, std::less<>> layers;
  if (!metadata) return layers;
  const Json all = parse_json(*metadata, cat(path.native(), ": metadata '_quantization_metadata'"));
  const Json* found = all.is_object() ? all.find("layers") : nullptr;
  if (found == nullptr || !found->is_object()) return layers;
  for (const Json::Member& member : found->members()) layers.emplace(member.key, member.value);
  return layers;
}

bool is_power_of_4(std::int64_t number) {
  return number > 0 && (number & (number - 1)) == 0 && (number & 0x5555555555555555) != 0;
}

class Attacher {
 public:
  Attacher(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
           const Path& path)
      : views_(views), path_(path), layers_(layers_of(metadata, path)) {}

  void run() {
    for (TensorView& view : views_) {
      if (!view.name.ends_with(kWeight)) continue;
      const std::string module = view.name.substr(0, view.name.size() - kWeight.size());
      const std::optional<Json> said = description_of(module);
      const std::string format = format_of(view, said);
      if (format.empty() || std::ranges::find(kPlainFormats, format) != std::end(kPlainFormats))
        continue;
      if (format != kInt8)
        throw Error(Code::unsupported,
                    cat(path_.native(), ": ", quote(view.name), " is quantised as ", quote(format),
                        ", which is not read. Use a file in 16 bits, in fp8, in int8 (", kInt8,
                        ", also with convrot), or a gguf file"));
      attach(view, module, said);
    }
  }

 private:
  std::optional<Json> description_of(const std::string& module) const {
    if (const TensorView* text = find(views_, module + ".comfy_quant")) {
      const auto* begin = reinterpret_cast<const char*>(text->data.data());
      return parse_json(std::string_view(begin, text->data.size()),
                        cat(path_.native(), ": ", quote(text->name)));
    }
    const auto found = layers_.find(module);
    return found == layers_.end() ? std::nullopt : std::optional(found->second);
  }

  // "": the matrix is what it looks like.
  std::string format_of(const TensorView& view, const std::optional<Json>& said) const {
    const Json* format = said && said->is_object() ? said->find("format") : nullptr;
    if (format != nullptr && format->is_string()) return format->as_string();
    // Older files say nothing, or not what it is.
    const bool is_int8 = view.dtype == DType::i8 && view.shape.size() == 2;
    const std::string_view module =
        std::string_view(view.name).substr(0, view.name.size() - kWeight.size());
    return is_int8 && find(views_, cat(module, ".weight_scale")) != nullptr ? std::string(kInt8)
                                                                            : "";
  }

  void attach(TensorView& view, const std::string& module, const std::optional<Json>& said) {
    const std::string where = cat(path_.native(), ": ", quote(view.name), " (",
                                  join(view.shape, ", "), ") of ", dtype_name(view.dtype));
    if (view.dtype != DType::i8 || view.shape.size() != 2)
      throw Error(Code::invalid_argument,
                  cat(where, " is said to be ", kInt8, ", which is a matrix of i8"));
    const TensorView* scales = find(views_, module + ".weight_scale");
    if (scales == nullptr)
      throw Error(Code::not_found, cat(where, " is ", kInt8, ", and there is no ",
                                       quote(module + ".weight_scale"), " beside it"));
    const auto count = std::int64_t(scales->data.size() / sizeof(float));
    if (scales->dtype != DType::f32 || (count != 1 && count != view.shape[0]))
      throw Error(Code::invalid_argument,
                  cat(where, " has the scales ", quote(scales->name), " (",
                      join(scales->shape, ", "), ") of ", dtype_name(scales->dtype),
                      "; one f32, or one for each of its ", view.shape[0], " rows, is wanted"));
    auto packed = std::make_shared<PackedRows>();
    packed->scales = scales->data;
    packed->group = group_of(said, view, where);
    const DType blocks = packed->group == 0 ? DType::i8_scaled : DType::i8_rotated;
    const std::int64_t size = dtype_block(blocks).elements;
    if (view.shape[1] % size == 0 && (packed->group == 0 || packed->group == size))
      packed->blocks = blocks;
    view.packed = std::move(packed);
  }

  static std::int64_t group_of(const std::optional<Json>& said, const TensorView& view,
                               const std::string& where) {
    constexpr std::int64_t kUsual = 256;
    const Json* rotated = said && said->is_object() ? said->find("convrot") : nullptr;
    if (rotated == nullptr || !rotated->is_bool() || !rotated->as_bool()) return 0;
    const Json* size = said->find("convrot_groupsize");
    const std::int64_t group = size == nullptr ? kUsual : size->as_int64();
    if (!is_power_of_4(group) || view.shape[1] % group != 0)
      throw Error(Code::invalid_argument,
                  cat(where, " is rotated in groups of ", group,
                      "; a power of 4 is wanted that divides its ", view.shape[1], " columns"));
    return group;
  }

  std::vector<TensorView>& views_;
  const Path& path_;
  const std::map<std::string, Json, std::less<>> layers_;
};

}  // namespace

void rotate_group(float* numbers, std::int64_t group) {
  for (std::int64_t step = 1; step < group; step *= 4)
    for (std::int64_t first = 0; first < group; first += 4 * step)
      for (std::int64_t i = first; i < first + step; ++i) {
        float& a = numbers[i];
        float& b = numbers[i + step];
        float& c = numbers[i + 2 * step];
        float& d = numbers[i + 3 * step];
        const float all = (a + b) + (c + d);
        const float w = all - 2 * d, x = all - 2 * c, y = all - 2 * b, z = all - 2 * a;
        a = w, b = x, c = y, d = z;
      }
}

float PackedRows::scale_of(std::int64_t row) const {
  const std::size_t at = scales.size() == sizeof(float) ? 0 : std::size_t(row) * sizeof(float);
  float scale = 1;
  std::memcpy(&scale, scales.data() + at, sizeof scale);
  return scale;
}

void PackedRows::to_blocks(std::int64_t row, std::span<const std::byte> from, std::byte* to) const {
  const auto size = std::size_t(dtype_block(*blocks).elements);
  const float scale = scale_of(row);
  for (; !from.empty(); from = from.subspan(size), to += sizeof scale + size) {
    std::memcpy(to, &scale, sizeof scale);
    std::memcpy(to + sizeof scale, from.data(), size);
  }
}

void PackedRows::widen(std::int64_t row, std::span<const std::byte> from, float* to) const {
  float scale = scale_of(row);
  // The root of a power of 4 is a power of 2, and sums of so few i8 are whole numbers that f32
  // holds: all is exact but the last product.
  if (group > 0) scale /= float(std::lround(std::sqrt(double(group))));
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = float(static_cast<std::int8_t>(from[i]));
  for (std::int64_t first = 0; group > 0 && first < std::int64_t(from.size()); first += group)
    rotate_group(to + first, group);
  for (std::size_t i = 0; i < from.size(); ++i) to[i] *= scale;
}

void attach_packed_rows(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
                        const Path& path) {
  Attacher(views, metadata, path).run();
}

}  // namespace heddle::engine
