#include "engine/files/packed_rows.h"

#include <algorithm>
#include <map>
#include <string>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/packed_forms.h"

namespace heddle::engine {

namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kInt8 = "int8_tensorwise";
// Whose numbers and scale stand in the file as those of any other matrix of that type.
constexpr std::string_view kPlainFormats[] = {"float8_e4m3fn", "float8_e5m2"};

struct KnownForm {
  std::string_view name;
  PackedForm (*form)(const PackedMatrix& matrix);
};
constexpr KnownForm kKnownForms[] = {{kInt8, int8_form},
                                     {"convrot_w4a4", w4a4_form},
                                     {"int4_tensorwise", int4_form},
                                     {"asym_w4a8_int8", w4a8_form},
                                     {"nvfp4", nvfp4_form},
                                     {"mxfp8", mxfp8_form},
                                     {"awq_w4a16", awq_form}};

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

std::string module_of(const TensorView& weight) {
  return weight.name.substr(0, weight.name.size() - kWeight.size());
}

class Attacher {
 public:
  Attacher(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
           const Path& path)
      : views_(views), path_(path), layers_(layers_of(metadata, path)) {}

  void run() {
    for (TensorView& view : views_) {
      if (!view.name.ends_with(kWeight)) continue;
      const std::optional<Json> said = description_of(module_of(view));
      const std::string format = format_of(view, said);
      if (format.empty() || std::ranges::find(kPlainFormats, format) != std::end(kPlainFormats))
        continue;
      const auto known = std::ranges::find(kKnownForms, format, &KnownForm::name);
      if (known == std::end(kKnownForms))
        throw Error(Code::unsupported,
                    cat(path_.native(), ": ", quote(view.name), " is quantised as ", quote(format),
                        ", which is not read. Use a file in 16 bits, in fp8, one of ", names(),
                        ", or a gguf file"));
      const PackedForm form = known->form(
          PackedMatrix(views_, view, said && said->is_object() ? &*said : nullptr, format, path_));
      view.shape[1] = form.columns;
      view.packed = form.rows;
    }
  }

 private:
  static std::string names() {
    std::vector<std::string_view> all;
    for (const KnownForm& form : kKnownForms) all.push_back(form.name);
    return join(all, ", ");
  }

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
    return is_int8 && find(views_, module_of(view) + ".weight_scale") != nullptr
               ? std::string(kInt8)
               : "";
  }

  std::vector<TensorView>& views_;
  const Path& path_;
  const std::map<std::string, Json, std::less<>> layers_;
};

}  // namespace

PackedMatrix::PackedMatrix(const std::vector<TensorView>& views, const TensorView& weight,
                           const Json* said, std::string_view format, const Path& path)
    : views_(views),
      weight_(weight),
      said_(said),
      format_(format),
      module_(module_of(weight)),
      path_(path) {}

void PackedMatrix::refuse(Code code, const std::string& why) const {
  throw Error(code, cat(path_.native(), ": ", quote(weight_.name), " (", join(weight_.shape, ", "),
                        ") of ", dtype_name(weight_.dtype), ", quantised as ", format_, ", ", why));
}

void PackedMatrix::require(std::initializer_list<DType> types) const {
  const bool is_matrix = weight_.shape.size() == 2 && weight_.shape[0] > 0 && weight_.shape[1] > 0;
  if (is_matrix && std::ranges::find(types, weight_.dtype) != types.end()) return;
  refuse(Code::invalid_argument,
         cat("is not what that is: a matrix of ", dtype_name(*types.begin())));
}

const TensorView* PackedMatrix::sibling(std::string_view name) const {
  return find(views_, cat(module_, ".", name));
}

const TensorView& PackedMatrix::sibling_at(std::string_view name) const {
  if (const TensorView* found = sibling(name)) return *found;
  refuse(Code::not_found, cat("has no ", quote(cat(module_, ".", name)), " beside it"));
}

const TensorView& PackedMatrix::scales(std::string_view name, std::initializer_list<DType> types,
                                       std::int64_t count) const {
  const TensorView& found = sibling_at(name);
  if (std::ranges::find(types, found.dtype) != types.end() &&
      found.data.size() == std::size_t(count) * dtype_size(found.dtype))
    return found;
  refuse(Code::invalid_argument, cat("has ", quote(found.name), " (", join(found.shape, ", "),
                                     ") of ", dtype_name(found.dtype), "; ", count, " of ",
                                     dtype_name(*types.begin()), " are wanted"));
}

const Json* PackedMatrix::setting(std::string_view key) const {
  if (said_ == nullptr) return nullptr;
  if (const Json* own = said_->find(key)) return own;
  const Json* more = said_->find("params");
  return more != nullptr && more->is_object() ? more->find(key) : nullptr;
}

std::int64_t PackedMatrix::number(std::string_view key, std::int64_t otherwise) const {
  const Json* found = setting(key);
  return found == nullptr ? otherwise : found->as_int64();
}

bool PackedMatrix::flag(std::string_view key) const {
  const Json* found = setting(key);
  return found != nullptr && found->is_bool() && found->as_bool();
}

std::int64_t PackedMatrix::rotated_group(std::int64_t columns) const {
  constexpr std::int64_t kUsual = 256;
  const std::int64_t group = number("convrot_groupsize", kUsual);
  if (!is_power_of_4(group) || columns % group != 0)
    refuse(Code::invalid_argument,
           cat("is rotated in groups of ", group, "; a power of 4 is wanted that divides its ",
               columns, " columns"));
  return group;
}

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

void attach_packed_rows(std::vector<TensorView>& views, std::optional<std::string_view> metadata,
                        const Path& path) {
  Attacher(views, metadata, path).run();
}

}  // namespace heddle::engine
