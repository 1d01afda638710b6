#include "engine/files/weight_patches.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/files/joined_dtype.h"
#include "heddle/abi/node.h"

namespace heddle::engine {
namespace {

std::string shape_of(const TensorView& tensor) {
  return cat(quote(tensor.name), " (", join(tensor.shape, ", "), ")");
}

std::int64_t rows_of(const TensorView& tensor) {
  return tensor.shape.empty() ? 1 : tensor.shape[0];
}

// Elements to a row.
std::int64_t width_of(const TensorView& tensor) {
  std::int64_t width = 1;
  for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) width *= tensor.shape[axis];
  return width;
}

void require_numbers(const TensorView& tensor) {
  if (!is_floating(tensor.dtype) || is_block_format(tensor.dtype))
    throw Error(Code::unsupported, cat(shape_of(tensor), " has the type ", dtype_name(tensor.dtype),
                                       ", to which nothing can be added"));
}

// Sums are not rounded to 8 bits or to blocks, and a difference that is no product would take more
// memory than the whole matrix.
void require_target(const TensorView& tensor, const WeightPatches::Term& term) {
  const bool is_matrix = tensor.shape.size() > 1;
  if (is_matrix ? term.down == nullptr && is_quantised(tensor.dtype)
                : is_block_format(tensor.dtype))
    throw Error(
        Code::unsupported,
        cat(shape_of(tensor), " is quantised to ", dtype_name(tensor.dtype), ", to which ",
            is_matrix ? "only products can be added, and " : "", shape_of(*term.up),
            is_matrix ? " is a whole difference" : " cannot be added",
            ". Use a file of the model with 16 or 32 bits (weight_dtype makes it as small)"));
  if (!is_floating(tensor.dtype)) require_numbers(tensor);
}

[[noreturn]] void misfit(const TensorView& target, const WeightPatches::Term& term) {
  const std::string patch = term.down == nullptr
                                ? shape_of(*term.up)
                                : cat(shape_of(*term.up), " times ", shape_of(*term.down));
  throw Error(Code::invalid_argument,
              cat(patch, " cannot be added to ", shape_of(target),
                  ": the shapes do not fit. The patch was made for another model"));
}

}  // namespace

std::shared_ptr<const WeightPatches> WeightPatches::extend(const WeightPatches* before,
                                                           const Checkpoint& model,
                                                           const Checkpoint& file,
                                                           std::span<const WeightPatch> patches) {
  auto result = before == nullptr ? std::make_shared<WeightPatches>()
                                  : std::make_shared<WeightPatches>(*before);
  result->files_.push_back(file);
  Hasher identity;
  identity.add(result->identity_).add(file.identity());
  for (const WeightPatch& patch : patches) {
    Term term{.up = &file.at(patch.up),
              .down = patch.down.empty() ? nullptr : &file.at(patch.down),
              .scale = patch.scale,
              .file = file.identity()};
    require_numbers(*term.up);
    if (patch.rows.empty())
      throw Error(Code::invalid_argument, cat(file.path().string(), ": ", shape_of(*term.up),
                                              " is to be added to nothing"));
    identity.add(std::string_view(patch.up)).add(std::string_view(patch.down)).add(patch.scale);
    if (term.down != nullptr) {
      require_numbers(*term.down);
      if (width_of(*term.up) != rows_of(*term.down))
        throw Error(Code::invalid_argument,
                    cat(file.path().string(), ": ", shape_of(*term.up), " and ",
                        shape_of(*term.down), " cannot be multiplied: their ranks ",
                        width_of(*term.up), " and ", rows_of(*term.down), " differ"));
    }
    for (const WeightPatch::Rows& rows : patch.rows) {
      const TensorView& target = model.at(rows.tensor);
      require_target(target, term);
      term.begin = rows.begin;
      term.end = rows.end < 0 ? rows_of(target) : rows.end;
      if (term.begin < 0 || term.end > rows_of(target) || term.begin > term.end)
        throw Error(Code::invalid_argument,
                    cat(shape_of(target), " has no rows ", term.begin, " to ", term.end));
      const std::int64_t last = term.first + term.end - term.begin;
      if (width_of(target) != width_of(term.down == nullptr ? *term.up : *term.down) ||
          last > rows_of(*term.up))
        misfit(target, term);
      identity.add(std::string_view(rows.tensor)).add(term.begin).add(term.end);
      if (term.begin < term.end) result->terms_[rows.tensor].push_back(term);
      term.first = last;
    }
    if (term.first != rows_of(*term.up)) misfit(model.at(patch.rows[0].tensor), term);
  }
  result->identity_ = identity.finish();
  return result;
}

std::span<const WeightPatches::Term> WeightPatches::of(std::string_view tensor) const {
  const auto found = terms_.find(tensor);
  return found == terms_.end() ? std::span<const Term>() : std::span<const Term>(found->second);
}

void WeightPatches::add_to_key(Hasher& key, std::string_view tensor, std::int64_t begin,
                               std::int64_t end) const {
  for (const Term& term : of(tensor)) {
    const std::int64_t first = std::max(begin, term.begin), last = std::min(end, term.end);
    if (first >= last) continue;
    key.add("patch").add(term.file).add(std::string_view(term.up->name)).add(term.scale);
    key.add(first - begin).add(last - begin).add(term.first + first - term.begin);
    if (term.down != nullptr) key.add(std::string_view(term.down->name));
  }
}

PatchFactors patch_factors(const WeightPatches& patches, std::span<const TensorRows> rows) {
  PatchFactors factors;
  std::int64_t row = 0;  // of the joined rows
  for (const TensorRows& part : rows) {
    const bool is_beside = is_patched_beside(*part.tensor, HEDDLE_USE_LINEAR);
    const auto terms =
        is_beside ? patches.of(part.tensor->name) : std::span<const WeightPatches::Term>();
    for (const WeightPatches::Term& term : terms) {  // products all: see require_target()
      const std::int64_t first = std::max(part.begin, term.begin),
                         last = std::min(part.end, term.end);
      if (first >= last) continue;
      auto down = std::ranges::find(factors.downs, term.down, &PatchFactors::Down::tensor);
      if (down == factors.downs.end()) {
        factors.downs.push_back({term.down, term.file, factors.rank});
        factors.rank += rows_of(*term.down);
        down = factors.downs.end() - 1;
      }
      factors.ups.push_back({&term, last - first, term.first + first - term.begin,
                             row + first - part.begin, down->first});
    }
    row += part.end - part.begin;
  }
  return factors;
}

}  // namespace heddle::engine
