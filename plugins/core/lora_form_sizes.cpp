// Whether a module's factors fit the rows that it is for: by their shapes, before any is
// multiplied, since small factors can have a product that no memory holds.
#include <algorithm>
#include <limits>

#include "lora_form.h"

namespace heddle::loaders {
namespace {

// Of sizes above 0; the largest number where it is larger.
std::int64_t product_of(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return a > kMost / b ? kMost : a * b;
}

}  // namespace

std::int64_t count_below(const FormShape& shape, std::size_t axes) {
  std::int64_t count = 1;
  for (std::size_t axis = axes; axis < shape.size(); ++axis) count *= shape[axis];
  return count;
}

const std::string& Form::tensor_of(const char* factor) const {
  const auto found = module_.factors.find(factor);
  if (found == module_.factors.end())
    misfit("has no '" + std::string(factor) + "', without which its others mean nothing");
  return found->second;
}

FormShape Form::shape_of(const std::string& tensor) const {
  const heddle_tensor_info& info = file_.info(tensor);
  FormShape shape(info.shape, info.shape + info.rank);
  if (std::ranges::count(shape, 0) > 0) misfit("has no numbers in '" + tensor + "'");
  if (shape.empty()) shape.push_back(1);
  return shape;
}

// Of a^T, t and b where the module has a middle factor `t`: see middle().
FormSize Form::product_size(FormSize a, FormSize b, const char* t) const {
  if (!has(t)) {
    if (a.columns != b.rows) misfit("has factors of different ranks");
    return {a.rows, b.columns};
  }
  const FormShape between = shape_of(tensor_of(t));
  if (between.size() < 2 || between[0] != a.rows || between[1] != b.rows)
    misfit("has a middle factor that does not fit the others");
  return {a.columns, product_of(b.columns, count_below(between, 2))};
}

std::optional<FormSize> Form::difference_size() const {
  const auto size = [&](const char* a, const char* b, const char* t) {
    return product_size(size_of(tensor_of(a)), size_of(tensor_of(b)), t);
  };
  if (has("hada_w1_a")) {
    const FormSize first = size("hada_w1_a", "hada_w1_b", "hada_t1");
    if (first != size("hada_w2_a", "hada_w2_b", "hada_t2"))
      misfit("has two products of different sizes");
    return first;
  }
  if (is_kronecker()) {
    const FormSize first = has("lokr_w1") ? size_of(tensor_of("lokr_w1"))
                                          : size("lokr_w1_a", "lokr_w1_b", nullptr),
                   second = has("lokr_w2") ? size_of(tensor_of("lokr_w2"))
                                           : size("lokr_w2_a", "lokr_w2_b", "lokr_t2");
    return FormSize{product_of(first.rows, second.rows), product_of(first.columns, second.columns)};
  }
  if (module_.up.empty()) return std::nullopt;
  const FormSize up = size_of(module_.up);
  return product_size(has("lora_mid") ? FormSize{up.columns, up.rows} : up, size_of(module_.down),
                      "lora_mid");
}

// Whether the factors stand as in files of LyCORIS before 2.0: W A2 A1 + B2 B1.
bool Form::is_old_glora(const FormPlace& place, Index width) const {
  const FormSize a1 = size_of(tensor_of("a1")), a2 = size_of(tensor_of("a2")),
                 b1 = size_of(tensor_of("b1")), b2 = size_of(tensor_of("b2"));
  const bool is_new = b2.rows == b1.columns && b1.columns == a1.columns && a1.columns == a2.rows;
  const bool is_old = b2.columns == b1.rows && b1.rows == a1.rows && a1.rows == a2.columns &&
                      !(is_new && !(a2.rows == place.all_rows && place.all_rows == width));
  if (!is_old && !is_new) misfit("has factors of GLoRA that do not fit together");
  const Index inputs = width / place.columns;
  const FormSize &before = is_old ? a2 : a1, &behind = is_old ? a1 : a2;
  const FormSize added = is_old ? FormSize{b2.rows, b1.columns} : FormSize{b1.rows, b2.columns};
  if (before.rows != inputs || behind.columns != inputs || added != FormSize{place.all_rows, width})
    misfit("has factors of GLoRA of other sizes than the weight");
  return is_old;
}

void Form::check_rotations(const FormPlace& place) const {
  const FormShape blocks = shape_of(tensor_of("oft_blocks"));
  const std::size_t axis = is_butterfly() ? 1 : 0;
  const std::int64_t size = blocks.back(), stages = blocks[0];
  if (blocks.size() != axis + 3 || blocks[axis + 1] != size ||
      blocks[axis] * size != place.all_rows)
    misfit("has rotations for another number of rows than " + std::to_string(place.all_rows));
  if (!is_butterfly()) return;
  constexpr std::int64_t kTooMany = 62;  // to shift a number by them
  if (size % 2 != 0 || stages >= kTooMany || size / 2 > place.all_rows >> stages ||
      place.all_rows % ((size / 2) << stages) != 0)
    misfit("has stages of rotations that " + std::to_string(place.all_rows) +
           " rows do not divide into");
  if (!has("rescale")) return;
  const std::int64_t scales = count_below(shape_of(tensor_of("rescale")), 0);
  if (scales != 1 && scales != place.all_rows)
    misfit("has " + std::to_string(scales) + " scales for " + std::to_string(place.all_rows) +
           " rows");
}

void Form::check_rows(const FormPlace& place, Index rows, Index width, bool is_alone) const {
  const auto refuse_parts = [&](const char* what) {
    throw Error(HEDDLE_UNSUPPORTED,
                file_.path() + ": the module '" + name_ + "' is of " + what +
                    " over rows that stand in several tensors of this model. Use a file of the "
                    "model in the names that the LoRA was made for.");
  };
  if (is_decomposed()) {
    const std::int64_t count =
        count_below(shape_of(tensor_of(has("magnitude") ? "magnitude" : "dora_scale")), 0);
    const bool by_rows = scales_rows(place.all_rows);
    if (count != (by_rows ? place.all_rows : width / place.columns))
      misfit("has " + std::to_string(count) + " magnitudes for a weight of " +
             std::to_string(place.all_rows) + " rows of " + std::to_string(width));
    if (!by_rows && !is_alone) refuse_parts("DoRA by inputs");
  }
  if (!module_.alpha.empty()) file_.number(module_.alpha);  // throws where it is no number
  if (const std::optional<FormSize> whole = difference_size()) {
    if (const FormSize wanted{place.all_rows, width}; *whole != wanted)
      misfit("is " + whole->text() + ", the weight " + wanted.text());
  } else if (is_rotation()) {
    check_rotations(place);
    const std::int64_t size = shape_of(tensor_of("oft_blocks")).back();
    if (!is_alone && (is_butterfly() || place.first % size != 0 || rows % size != 0))
      refuse_parts("rotations");
  } else if (has("a1")) {
    is_old_glora(place, width);
  } else {
    misfit("has magnitudes alone, and nothing that changes the weight");
  }
}

}  // namespace heddle::loaders
