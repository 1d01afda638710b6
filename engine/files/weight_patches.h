// What is added to a model's weights: the model's file and its copies in host memory stay as they
// are. Numbers of 16 and 32 bits are patched on their way to a device. Of matrices with 8 bits or
// in blocks nothing would be left of a patch that is rounded to them, so they stay as they are,
// too, and what their patch makes of the same input is added to their product. Immutable; models
// that differ in patches share the rest. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/files/checkpoint.h"

namespace heddle::engine {

// A change that is no sum of products: what becomes of rows is made of all of them at once.
// Immutable; any thread.
class RowChange {
 public:
  virtual ~RowChange() = default;
  // Changes them where they stand. The same for the same numbers.
  virtual void apply(std::int64_t rows, std::int64_t width, float* numbers) const = 0;
  virtual Hash128 identity() const = 0;  // equal for equal changes
};

// One change of rows of the model's tensors, one after another as `rows` names them: keep * (what
// stands there) + scale * up * down.
struct WeightPatch {
  struct Rows {
    std::string tensor;  // of the model
    std::int64_t begin = 0;
    std::int64_t end = -1;  // -1: all of them
  };
  std::string up;    // a tensor of the patches' file: (rows, rank); (rows, ...) where `down` is
                     // empty; empty: nothing is added
  std::string down;  // (rank, ...): as many elements to a row as the model's tensor has; empty:
                     // `up` is the whole difference
  double scale = 1;
  std::vector<Rows> rows;
  double keep = 1;  // what stands there counts so much, with what earlier changes made of it
  std::shared_ptr<const RowChange> change = {};  // in the place of all but one of `rows`
};

class WeightPatches {
 public:
  // What becomes of rows [begin, end) of a tensor: to row `begin` belongs row `first` of `up`. The
  // views live as long as the patches.
  struct Term {
    std::int64_t begin = 0, end = 0, first = 0;
    const TensorView* up = nullptr;    // nullptr: nothing is added
    const TensorView* down = nullptr;  // nullptr: `up` is the whole difference
    double scale = 1;
    Hash128 file;  // the identity of the checkpoint of `up` and `down`
    double keep = 1;
    std::shared_ptr<const RowChange> change = {};  // of all these rows, in the place of all else
  };

  // Those of `before` (nullptr: none), then these: the sum is taken in this order. Throws
  // Error(invalid_argument) when a patch and what it changes do not fit together,
  // Error(unsupported) for types that cannot be added to, not_found for names.
  static std::shared_ptr<const WeightPatches> extend(const WeightPatches* before,
                                                     const Checkpoint& model,
                                                     const Checkpoint& file,
                                                     std::span<const WeightPatch> patches);
  // The same for patches whose `up` are tensors of another model, whole: as its own patches make
  // them.
  struct Other {
    const Checkpoint& checkpoint;
    const WeightPatches* patches;  // nullptr: none
  };
  static std::shared_ptr<const WeightPatches> merge(const WeightPatches* before,
                                                    const Checkpoint& model, const Other& other,
                                                    std::span<const WeightPatch> patches);

  // In the order in which they are added; empty for most tensors.
  std::span<const Term> of(std::string_view tensor) const;

  // Adds to a key what tells these rows of a tensor from unpatched ones: nothing where no patch
  // touches them.
  void add_to_key(Hasher& key, std::string_view tensor, std::int64_t begin, std::int64_t end) const;

  Hash128 identity() const { return identity_; }
  std::span<const Checkpoint> files() const { return files_; }

 private:
  void add(const Checkpoint& model, const Checkpoint& file, const WeightPatch& patch,
           const WeightPatches* of_file);
  void add_patched(const Term& whole, const std::string& tensor, std::span<const Term> changes);

  std::map<std::string, std::vector<Term>, std::less<>> terms_;
  std::vector<Checkpoint> files_;
  Hash128 identity_;
};

// Rows [begin, end), and those without which a RowChange of some of them cannot be made.
struct RowRange {
  std::int64_t begin = 0, end = 0;
};
RowRange rows_needed(std::span<const WeightPatches::Term> terms, RowRange rows);

// Rows [begin, end) of a tensor, as a weight has them.
struct TensorRows {
  const TensorView* tensor = nullptr;
  std::int64_t begin = 0, end = 0;
};

// What is added beside a matrix (joined_dtype.h) of such rows, joined along axis 0, as one product
// up * down: the factors of all terms side by side.
struct PatchFactors {
  struct Down {
    const TensorView* tensor = nullptr;
    Hash128 file;
    std::int64_t first = 0;  // its first row in the joined `down`, its first column in `up`
  };
  struct Up {
    const WeightPatches::Term* term = nullptr;
    std::int64_t rows = 0;
    std::int64_t first = 0;            // of the tensor
    std::int64_t row = 0, column = 0;  // where they stand in the joined `up`
  };
  std::vector<Down> downs;  // each once, however many terms have it
  std::vector<Up> ups;
  std::int64_t rank = 0;  // 0: nothing is added
};

// Of the rows of quantised tensors: the others are patched on their way.
PatchFactors patch_factors(const WeightPatches& patches, std::span<const TensorRows> rows);

}  // namespace heddle::engine
