#include "brownian_tree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "random.h"
#include "seed_sequence.h"

// A fused multiply-add would change last bits of the path.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace heddle::samplers {
namespace {

constexpr std::size_t kPool = 24;
// Values that are worked out at a time: the noise of all parts stays in the cache. A multiple of
// the groups of Generator, so that pieces add up to one draw.
constexpr std::size_t kPiece = 4096;
constexpr std::size_t kGroup = 16;

// As Python's round(value, 6): the nearest decimal, halves (of the exact binary value) to even.
double round6(double value) {
  std::array<char, 400> text;
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 6);
  double rounded = value;
  std::from_chars(text.data(), end.ptr, rounded);
  return rounded;
}

// A part of the interval that a question needs. Parents stand before their children.
struct Part {
  double start, end;
  std::uint64_t place = 0;  // among the parts of its depth, from the left
  std::uint64_t depth = 0;
  std::size_t parent = 0;
  bool is_left = false;
  std::size_t noise = 0;   // of the halving that made it: which generator
  bool is_asked = false;   // it is one of those that make up the question
  std::size_t buffer = 0;  // where its increment stands
};

// A halving of a part: what both halves need.
struct Halving {
  float left, inverse, spread;  // length of the left half, 1 / length of the whole
  std::uint32_t seed;
};

// The parts from the whole down to those that make up [from, to], in the order of the time.
class Question {
 public:
  Question(std::uint64_t seed, double start, double end, double from, double to)
      : seed_(seed), from_(from), to_(to) {
    parts_.push_back({.start = start, .end = end});
    descend(0);
  }
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<Halving>& halvings() const { return halvings_; }

 private:
  void descend(std::size_t index) {
    const Part part = parts_[index];
    if (part.start >= from_ && part.end <= to_) {
      parts_[index].is_asked = true;
      return;
    }
    const double middle = round6(0.5 * (part.end + part.start));
    // Neighbours of the grid have no middle on it.
    if (middle <= part.start || middle >= part.end) return;
    const double length = part.end - part.start;
    const double inverse = 1 / length;
    const double left = middle - part.start, right = part.end - middle;
    const std::array<std::uint64_t, 2> key = {part.place, part.depth};
    halvings_.push_back({float(left), float(inverse), float(std::sqrt(left * right * inverse)),
                         seed_words(seed_, key, kPool, 1).front()});
    const std::size_t noise = halvings_.size() - 1;
    const auto add = [&](bool is_left) {
      Part half{.start = is_left ? part.start : middle,
                .end = is_left ? middle : part.end,
                .place = 2 * part.place + (is_left ? 0 : 1),
                .depth = part.depth + 1,
                .parent = index,
                .is_left = is_left,
                .noise = noise};
      parts_.push_back(half);
      descend(parts_.size() - 1);
    };
    if (from_ < middle) add(true);
    if (to_ > middle) add(false);
  }

  std::uint64_t seed_;
  double from_, to_;
  std::vector<Part> parts_;
  std::vector<Halving> halvings_;
};

// The increments of one question, piece by piece.
class Increments {
 public:
  Increments(const Question& question, std::uint64_t seed, float spread,
             std::pmr::memory_resource& memory)
      : question_(question), spread_(spread), memory_(memory) {
    whole_.emplace(seed_words(seed, {}, kPool, 1).front());
    for (const Halving& halving : question.halvings()) generators_.emplace_back(halving.seed);
  }

  // The next piece of the sum of all parts asked for.
  void next(std::span<float> sum) {
    const std::size_t count = sum.size();
    std::pmr::vector<float> noise(question_.halvings().size() * count, &memory_);
    for (std::size_t i = 0; i < generators_.size(); ++i)
      generators_[i].normal({noise.data() + i * count, count});
    const std::vector<Part>& parts = question_.parts();
    std::pmr::vector<float> values(parts.size() * count, &memory_);
    whole_->normal({values.data(), count});
    for (std::size_t k = 0; k < count; ++k) values[k] *= spread_;
    bool is_first = true;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      float* own = values.data() + p * count;
      if (p > 0) share_out(parts[p], values.data(), noise.data(), own, count);
      if (!parts[p].is_asked) continue;
      for (std::size_t k = 0; k < count; ++k) sum[k] = is_first ? own[k] : sum[k] + own[k];
      is_first = false;
    }
  }

 private:
  void share_out(const Part& part, const float* values, const float* noise, float* own,
                 std::size_t count) const {
    const Halving& halving = question_.halvings()[part.noise];
    const float* whole = values + part.parent * count;
    const float* drawn = noise + part.noise * count;
    for (std::size_t k = 0; k < count; ++k) {
      const float left = halving.left * whole[k] * halving.inverse + halving.spread * drawn[k];
      own[k] = part.is_left ? left : whole[k] - left;
    }
  }

  const Question& question_;
  float spread_;
  std::pmr::memory_resource& memory_;
  std::optional<Generator> whole_;
  std::vector<Generator> generators_;
};

}  // namespace

std::size_t BrownianTree::scratch_bytes(std::size_t count) {
  // Both ends of a question lie at most so deep: 20000 / 1e-6 parts. On the way to an end each
  // depth has one halving and its two halves.
  constexpr std::size_t kDepth = 35, kWays = 2, kOfADepth = 3;
  return std::min(count, kPiece + kGroup) * sizeof(float) * (1 + kWays * kDepth * kOfADepth);
}

BrownianTree::BrownianTree(std::uint64_t seed, float level_a, float level_b)
    : seed_(seed),
      start_(round6(std::min(level_a, level_b))),
      end_(round6(std::max(level_a, level_b))),
      spread_(static_cast<float>(std::sqrt(static_cast<double>(std::max(level_a, level_b)) -
                                           std::min(level_a, level_b)))) {}

void BrownianTree::noise(float from, float to, std::span<float> out,
                         std::pmr::memory_resource& memory) const {
  const double low = round6(std::clamp<double>(std::min(from, to), start_, end_));
  const double high = round6(std::clamp<double>(std::max(from, to), start_, end_));
  std::fill(out.begin(), out.end(), 0.0f);
  if (!(low < high)) return;
  const Question question(seed_, start_, end_, low, high);
  Increments increments(question, seed_, spread_, memory);
  const float scale = std::sqrt(std::abs(to - from));
  // The path runs towards noise; a step towards the picture sees it backwards.
  const float sign = from > to ? -1.0f : 1.0f;
  for (std::size_t at = 0; at < out.size();) {
    // The last piece takes a rest that is less than a group with it.
    std::size_t count = std::min(kPiece, out.size() - at);
    if (out.size() - at - count < kGroup) count = out.size() - at;
    const std::span<float> piece = out.subspan(at, count);
    increments.next(piece);
    for (float& value : piece) value = value * sign / scale;
    at += count;
  }
}

}  // namespace heddle::samplers
