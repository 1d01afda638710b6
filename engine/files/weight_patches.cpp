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
  if (tensor.packed != nullptr)
    throw Error(Code::unsupported,
                cat(shape_of(tensor),
                    " is packed, and only weights that are used as "
                    "they are in their file are widened. Use a file in 16 or 32 bits"));
  if (!is_floating(tensor.dtype) || is_block_format(tensor.dtype))
    throw Error(Code::unsupported, cat(shape_of(tensor), " has the type ", dtype_name(tensor.dtype),
                                       ", to which nothing can be added"));
}

// Sums are not rounded to 8 bits or to blocks, and a difference that is no product would take more
// memory than the whole matrix.
void require_target(const TensorView& tensor, const WeightPatches::Term& term) {
  if (tensor.is_widened) return;
  const DType dtype = matrix_dtype(tensor);
  // Packed rows that are widened are rounded once, to what is computed in.
  if (tensor.packed != nullptr && !is_block_format(dtype)) return;
  const bool is_matrix = tensor.shape.size() > 1;
  const bool is_product = term.down != nullptr && term.keep == 1;
  if (is_matrix ? !is_product && is_quantised(dtype) : is_block_format(dtype))
    throw Error(Code::unsupported,
                cat(shape_of(tensor), " is quantised to ", dtype_name(dtype), ", to which ",
                    is_matrix ? "only products can be added, and " : "",
                    term.up == nullptr ? "a factor" : shape_of(*term.up),
                    is_matrix ? " is a whole difference" : " cannot be added",
                    ". Use a file of the model with 16 or 32 bits "
                    "(weight_dtype makes it as small)"));
  if (!is_floating(dtype)) require_numbers(tensor);
}

void require_factors(const Checkpoint& file, const WeightPatches::Term& term) {
  require_numbers(*term.up);
  if (term.down == nullptr) return;
  require_numbers(*term.down);
  if (width_of(*term.up) != rows_of(*term.down))
    throw Error(Code::invalid_argument,
                cat(file.path().string(), ": ", shape_of(*term.up), " and ", shape_of(*term.down),
                    " cannot be multiplied: their ranks ", width_of(*term.up), " and ",
                    rows_of(*term.down), " differ"));
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
  return merge(before, model, {file, nullptr}, patches);
}

std::shared_ptr<const WeightPatches> WeightPatches::merge(const WeightPatches* before,
                                                          const Checkpoint& model,
                                                          const Other& other,
                                                          std::span<const WeightPatch> patches) {
  auto result = before == nullptr ? std::make_shared<WeightPatches>()
                                  : std::make_shared<WeightPatches>(*before);
  result->files_.push_back(other.checkpoint);
  Hasher identity;
  identity.add(result->identity_).add(other.checkpoint.identity());
  if (other.patches != nullptr) {
    result->files_.insert(result->files_.end(), other.patches->files_.begin(),
                          other.patches->files_.end());
    identity.add("patched").add(other.patches->identity_);
  }
  for (const WeightPatch& patch : patches) {
    identity.add(std::string_view(patch.up)).add(std::string_view(patch.down)).add(patch.scale);
    if (patch.keep != 1) identity.add("keep").add(patch.keep);
    if (patch.change != nullptr) identity.add("change").add(patch.change->identity());
    for (const WeightPatch::Rows& rows : patch.rows)
      identity.add(std::string_view(rows.tensor)).add(rows.begin).add(rows.end);
    result->add(model, other.checkpoint, patch, other.patches);
  }
  result->identity_ = identity.finish();
  return result;
}

void WeightPatches::add(const Checkpoint& model, const Checkpoint& file, const WeightPatch& patch,
                        const WeightPatches* of_file) {
  Term term{.up = patch.up.empty() ? nullptr : &file.at(patch.up),
            .down = patch.down.empty() ? nullptr : &file.at(patch.down),
            .scale = patch.scale,
            .file = file.identity(),
            .keep = patch.keep,
            .change = patch.change};
  if (term.up != nullptr) require_factors(file, term);
  if (patch.rows.empty())
    throw Error(Code::invalid_argument,
                cat(file.path().string(), ": ",
                    term.up == nullptr ? "a factor" : shape_of(*term.up), " is for no weight"));
  for (const WeightPatch::Rows& rows : patch.rows) {
    const TensorView& target = model.at(rows.tensor);
    require_target(target, term);
    term.begin = rows.begin;
    term.end = rows.end < 0 ? rows_of(target) : rows.end;
    if (term.begin < 0 || term.end > rows_of(target) || term.begin > term.end)
      throw Error(Code::invalid_argument,
                  cat(shape_of(target), " has no rows ", term.begin, " to ", term.end));
    if (term.change != nullptr) {
      terms_[rows.tensor].push_back(term);
      return;
    }
    const std::int64_t last = term.first + term.end - term.begin;
    const TensorView* const wide = term.down == nullptr ? term.up : term.down;
    if (wide != nullptr && (width_of(target) != width_of(*wide) || last > rows_of(*term.up)))
      misfit(target, term);
    if (term.begin < term.end)
      add_patched(term, rows.tensor,
                  of_file == nullptr ? std::span<const Term>() : of_file->of(patch.up));
    term.first = last;
  }
  if (term.up != nullptr && term.first != rows_of(*term.up))
    misfit(model.at(patch.rows[0].tensor), term);
}

// scale * (k * U + s * d) is scale * k * U and scale * s * d, each a term of its own. `changes`: of
// the tensor that `whole` adds, in their order.
void WeightPatches::add_patched(const Term& whole, const std::string& tensor,
                                std::span<const Term> changes) {
  const std::size_t at = terms_[tensor].size();
  std::vector<Term>& terms = terms_[tensor];
  terms.push_back(whole);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Term change = changes[i];
    if (change.change != nullptr)
      throw Error(Code::unsupported, cat(shape_of(*whole.up),
                                         " was changed before by what is no product, so no share "
                                         "of it can be taken. Save that model first"));
    // Of the rows that `whole` adds to these.
    const std::int64_t first = std::max(change.begin, whole.first);
    const std::int64_t last = std::min(change.end, whole.first + whole.end - whole.begin);
    if (first >= last) continue;
    change.first += first - change.begin;
    change.begin = whole.begin + first - whole.first;
    change.end = whole.begin + last - whole.first;
    change.scale *= whole.scale;
    if (change.keep != 1) {
      if (change.begin != whole.begin || change.end != whole.end)
        throw Error(Code::unsupported, cat("a part of ", shape_of(*whole.up),
                                           " was merged before: merge whole tensors, or save that "
                                           "model first"));
      for (std::size_t t = at; t < terms.size(); ++t) terms[t].scale *= change.keep;
      change.keep = 1;
    }
    if (change.up == nullptr) continue;
    terms.push_back(change);
  }
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
    if (term.change != nullptr)
      key.add("change").add(term.change->identity()).add(first - term.begin).add(last - term.begin);
    if (term.keep != 1) key.add("keep").add(term.keep).add(first - begin).add(last - begin);
    if (term.up == nullptr) continue;
    key.add("patch").add(term.file).add(std::string_view(term.up->name)).add(term.scale);
    key.add(first - begin).add(last - begin).add(term.first + first - term.begin);
    if (term.down != nullptr) key.add(std::string_view(term.down->name));
  }
}

RowRange rows_needed(std::span<const WeightPatches::Term> terms, RowRange rows) {
  for (bool more = true; more;) {
    more = false;
    for (const WeightPatches::Term& term : terms) {
      if (term.change == nullptr || term.end <= rows.begin || rows.end <= term.begin) continue;
      more = more || term.begin < rows.begin || rows.end < term.end;
      rows = {std::min(rows.begin, term.begin), std::max(rows.end, term.end)};
    }
  }
  return rows;
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
