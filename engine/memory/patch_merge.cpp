#include "engine/memory/patch_merge.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

#include "engine/files/stored_rows.h"
#include "engine/tensor/numbers.h"

namespace heddle::engine {
namespace {

// This file is compiled without contraction: a product and a sum fused are another number, and not
// every processor fuses.

constexpr std::int64_t kRowTile = 4;      // rows that share each load of `down`
constexpr std::int64_t kColumnTile = 32;  // a multiple of every vector width below
constexpr std::int64_t kColumnBlock =
    256;  // so many columns of `down` stay in the nearest caches while rows go by
constexpr std::int64_t kChunkRows = 64;

// delta (kRowTile x kColumnBlock) += b (kRowTile x rank) * a (rank x columns, `a_stride` apart).
// columns: a multiple of kColumnTile.
struct Product {
  const float* b;
  const float* a;
  std::int64_t rank, a_stride, columns;
  float* delta;
};

template <class Vector>
[[gnu::always_inline]] inline void multiply_by(const Product& p) {
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(float);
  for (std::int64_t column = 0; column < p.columns; column += 2 * kLanes) {
    Vector sum[kRowTile][2] = {};
    for (std::int64_t r = 0; r < p.rank; ++r) {
      Vector left, right;
      std::memcpy(&left, p.a + r * p.a_stride + column, sizeof left);
      std::memcpy(&right, p.a + r * p.a_stride + column + kLanes, sizeof right);
      for (std::int64_t row = 0; row < kRowTile; ++row) {
        const float factor = p.b[row * p.rank + r];
        sum[row][0] += factor * left;
        sum[row][1] += factor * right;
      }
    }
    for (std::int64_t row = 0; row < kRowTile; ++row)
      for (std::int64_t half = 0; half < 2; ++half) {
        float* const at = p.delta + row * kColumnBlock + column + half * kLanes;
        Vector before;
        std::memcpy(&before, at, sizeof before);
        before += sum[row][half];
        std::memcpy(at, &before, sizeof before);
      }
  }
}

using Vector4 [[gnu::vector_size(16)]] = float;
void multiply_plain(const Product& p) { multiply_by<Vector4>(p); }

#if defined(__x86_64__)
using Vector8 [[gnu::vector_size(32)]] = float;
using Vector16 [[gnu::vector_size(64)]] = float;
[[gnu::target("avx2")]] void multiply_avx2(const Product& p) { multiply_by<Vector8>(p); }
[[gnu::target("avx512f")]] void multiply_avx512(const Product& p) { multiply_by<Vector16>(p); }
#endif

using Multiply = void (*)(const Product&);

Multiply best_multiply() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512;
  if (__builtin_cpu_supports("avx2")) return multiply_avx2;
#endif
  return multiply_plain;
}

std::int64_t rounded_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

// A row of a tensor as numbers, whole or in spans.
class RowReader {
 public:
  RowReader(const TensorView& tensor, const std::vector<PatchedRows::Span>& spans)
      : tensor_(tensor),
        spans_(spans),
        element_bytes_(tensor.packed != nullptr ? 0 : dtype_size(tensor.dtype)),
        scale_(tensor.scale()) {
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    row_bytes_ = rows == 0 ? 0 : tensor.data.size() / std::size_t(rows);
  }
  void read(std::int64_t row, float* to) const {
    if (tensor_.packed != nullptr) return read_packed(row, to);
    const auto bytes = tensor_.data.subspan(std::size_t(row) * row_bytes_, row_bytes_);
    for (const PatchedRows::Span& s : spans_) {
      to_floats(tensor_.dtype,
                bytes.subspan(std::size_t(s.begin) * element_bytes_,
                              std::size_t(s.end - s.begin) * element_bytes_),
                to);
      if (scale_ != 1)
        for (std::int64_t i = 0; i < s.end - s.begin; ++i) to[i] *= scale_;
      to += s.end - s.begin;
    }
  }

 private:
  void read_packed(std::int64_t row, float* to) const {
    std::int64_t width = 1;
    for (std::size_t axis = 1; axis < tensor_.shape.size(); ++axis) width *= tensor_.shape[axis];
    std::vector<float> whole(
        static_cast<std::size_t>(width));  // its numbers are made of one another
    tensor_.packed->widen(row, stored_row(tensor_, row), whole.data());
    for (const PatchedRows::Span& s : spans_)
      to = std::copy(whole.begin() + s.begin, whole.begin() + s.end, to);
  }

  const TensorView& tensor_;
  const std::vector<PatchedRows::Span>& spans_;
  std::size_t element_bytes_, row_bytes_ = 0;
  const float scale_;
};

// A term's part in the columns that are wanted.
struct Prepared {
  const WeightPatches::Term* term;
  std::int64_t rank = 0;
  std::vector<float> down = {};  // rank rows of the padded width
  bool is_whole() const { return term->down == nullptr; }
  bool adds() const { return term->up != nullptr; }
};

class Merge {
 public:
  Merge(const PatchedRows& rows, float* out) : rows_(rows), out_(out), multiply_(best_multiply()) {
    for (const PatchedRows::Span& s : rows.spans) width_ += s.end - s.begin;
    padded_ = rounded_up(width_, kColumnTile);
    for (const WeightPatches::Term* term : rows.terms) {
      Prepared& p = prepared_.emplace_back(Prepared{term});
      if (term->down == nullptr) continue;
      p.rank = term->down->shape.empty() ? 1 : term->down->shape[0];
      p.down.resize(std::size_t(p.rank * padded_));
      const RowReader reader(*term->down, rows.spans);
      for (std::int64_t r = 0; r < p.rank; ++r) reader.read(r, p.down.data() + r * padded_);
    }
  }

  std::int64_t chunks() const { return (rows_.end - rows_.begin + kChunkRows - 1) / kChunkRows; }
  // Multiplications, to tell whether threads are worth their start.
  double work() const {
    double ranks = 1;
    for (const Prepared& p : prepared_) ranks += double(p.rank);
    return ranks * double(rows_.end - rows_.begin) * double(width_);
  }

  // What a thread needs besides, made where a lack of memory can be reported.
  struct Scratch {
    std::vector<std::vector<float>> ups;  // of each term: a chunk of rows, scaled
    float delta[kRowTile * kColumnBlock];
  };
  Scratch scratch() const {
    Scratch s;
    for (const Prepared& p : prepared_)
      s.ups.emplace_back(std::size_t(p.adds() ? kChunkRows * up_width(p) : 0));
    return s;
  }

  void chunk(std::int64_t number, Scratch& scratch) const {
    const std::int64_t begin = rows_.begin + number * kChunkRows,
                       end = std::min(rows_.end, begin + kChunkRows);
    const RowReader weights(*rows_.tensor, rows_.spans);
    for (std::int64_t row = begin; row < end; ++row) weights.read(row, row_of(row));
    for (std::size_t t = 0; t < prepared_.size(); ++t)
      read_up(prepared_[t], begin, end, scratch.ups[t]);
    for (std::int64_t column = 0; column < width_; column += kColumnBlock)
      for (std::int64_t row = begin; row < end; row += kRowTile)
        tile(row, begin, std::min(end, row + kRowTile), column, scratch);
  }

 private:
  float* row_of(std::int64_t row) const { return out_ + (row - rows_.begin) * width_; }

  std::int64_t up_width(const Prepared& p) const { return p.is_whole() ? width_ : p.rank; }

  void read_up(const Prepared& p, std::int64_t begin, std::int64_t end,
               std::vector<float>& up) const {
    if (!p.adds()) return;
    const std::vector<PatchedRows::Span> ranks{{0, p.rank}};
    const RowReader reader(*p.term->up, p.is_whole() ? rows_.spans : ranks);
    const std::int64_t width = up_width(p);
    std::ranges::fill(up, 0.0f);
    for (std::int64_t row = begin; row < end; ++row) {
      float* const to = up.data() + (row - begin) * width;
      reader.read(p.term->first + row - p.term->begin, to);
      // A share of a model is taken in f32, as PyTorch takes it.
      if (p.term->keep != 1)
        for (std::int64_t i = 0; i < width; ++i) to[i] *= float(p.term->scale);
      else
        for (std::int64_t i = 0; i < width; ++i) to[i] = float(p.term->scale * double(to[i]));
    }
  }

  void tile(std::int64_t row, std::int64_t chunk_begin, std::int64_t end, std::int64_t column,
            Scratch& scratch) const {
    const std::int64_t columns = std::min(kColumnBlock, width_ - column);
    std::ranges::fill(scratch.delta, 0.0f);
    const auto add_sum = [&] {
      for (std::int64_t r = row; r < end; ++r)
        add(scratch.delta + (r - row) * kColumnBlock, columns, row_of(r) + column);
    };
    for (std::size_t t = 0; t < prepared_.size(); ++t) {
      const Prepared& p = prepared_[t];
      if (p.term->keep != 1) {
        if (t > 0) add_sum();
        std::ranges::fill(scratch.delta, 0.0f);
        for (std::int64_t r = row; r < end; ++r)
          for (std::int64_t i = 0; i < columns; ++i) row_of(r)[column + i] *= float(p.term->keep);
      }
      if (!p.adds()) continue;
      const float* const up = scratch.ups[t].data() + (row - chunk_begin) * up_width(p);
      if (p.is_whole())
        for (std::int64_t r = 0; r < end - row; ++r)
          add(up + r * width_ + column, columns, scratch.delta + r * kColumnBlock);
      else
        multiply_({up, p.down.data() + column, p.rank, padded_, rounded_up(columns, kColumnTile),
                   scratch.delta});
    }
    add_sum();
  }

  static void add(const float* what, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += what[i];
  }

  const PatchedRows& rows_;
  float* const out_;
  const Multiply multiply_;
  std::int64_t width_ = 0, padded_ = 0;
  std::vector<Prepared> prepared_;
};

constexpr double kWorthThreads = 1 << 24;
constexpr std::int64_t kMostThreads = 16;

}  // namespace

void merge_patches(const PatchedRows& rows, float* out) {
  const Merge merge(rows, out);
  const std::int64_t processors = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t workers =
      merge.work() < kWorthThreads ? 1 : std::min({processors, kMostThreads, merge.chunks()});
  std::vector<Merge::Scratch> scratch;
  for (std::int64_t w = 0; w < std::max<std::int64_t>(1, workers); ++w)
    scratch.push_back(merge.scratch());
  std::atomic<std::int64_t> next = 0;
  std::vector<std::exception_ptr> failures(scratch.size());
  const auto work = [&](std::size_t w) noexcept {
    try {
      for (std::int64_t c = next++; c < merge.chunks(); c = next++) merge.chunk(c, scratch[w]);
    } catch (...) {
      failures[w] = std::current_exception();
      next = merge.chunks();
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t w = 1; w < scratch.size(); ++w) threads.emplace_back(work, w);
    } catch (const std::exception&) {
      // No more threads are to be had: those there are do the work.
    }
    work(0);
  }
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

namespace {

// Of terms that are products: those of `rows`, counted from the first of them.
std::vector<WeightPatches::Term> terms_within(std::span<const WeightPatches::Term> terms,
                                              RowRange rows) {
  std::vector<WeightPatches::Term> within;
  for (WeightPatches::Term term : terms) {
    const std::int64_t first = std::max(rows.begin, term.begin),
                       last = std::min(rows.end, term.end);
    if (first >= last) continue;
    term.first += first - term.begin;
    term.begin = first - rows.begin;
    term.end = last - rows.begin;
    within.push_back(term);
  }
  return within;
}

// What these terms make of rows that stand in host memory.
void add_products(std::vector<float>& numbers, std::int64_t rows,
                  const std::vector<WeightPatches::Term>& terms) {
  const std::int64_t width = std::int64_t(numbers.size()) / rows;
  TensorView view{.name = {}, .dtype = DType::f32, .shape = {rows, width}};
  view.data = std::as_bytes(std::span(numbers));
  std::vector<std::int64_t> cuts{0, rows};
  for (const WeightPatches::Term& term : terms) cuts.insert(cuts.end(), {term.begin, term.end});
  std::ranges::sort(cuts);
  std::vector<float> sums(numbers.size());
  for (std::size_t i = 1; i < cuts.size(); ++i) {
    if (cuts[i - 1] == cuts[i]) continue;
    PatchedRows piece{&view, cuts[i - 1], cuts[i], {{0, width}}, {}};
    for (const WeightPatches::Term& term : terms)
      if (term.begin <= piece.begin && piece.end <= term.end) piece.terms.push_back(&term);
    merge_patches(piece, sums.data() + piece.begin * width);
  }
  numbers = std::move(sums);
}

}  // namespace

void merge_changes(const TensorView& tensor, RowRange rows,
                   std::span<const WeightPatches::Term> terms, float* out) {
  std::int64_t width = 1;
  for (std::size_t axis = 1; axis < tensor.shape.size(); ++axis) width *= tensor.shape[axis];
  const std::int64_t count = rows.end - rows.begin;
  std::vector<float> numbers(std::size_t(count * width));
  merge_patches({&tensor, rows.begin, rows.end, {{0, width}}, {}}, numbers.data());
  for (std::size_t at = 0; at < terms.size();) {
    std::size_t next = at;
    while (next < terms.size() && terms[next].change == nullptr) ++next;
    if (next > at) add_products(numbers, count, terms_within(terms.subspan(at, next - at), rows));
    if (next < terms.size() && terms[next].begin < rows.end && rows.begin < terms[next].end)
      terms[next].change->apply(terms[next].end - terms[next].begin, width,
                                numbers.data() + (terms[next].begin - rows.begin) * width);
    at = next + 1;
  }
  std::ranges::copy(numbers, out);
}

}  // namespace heddle::engine
