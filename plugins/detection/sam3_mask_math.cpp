#include "sam3_mask_math.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace heddle::detection {
namespace {

constexpr float kHidden = -10;

std::int64_t area_of(const Floats& mask) {
  return std::ranges::count_if(mask, [](float logit) { return logit > 0; });
}

// Calls spot(cells) for all cells that touch each other and are of the kind.
template <class IsOf, class Spot>
void each_spot(const blocks::GridSize& size, std::pmr::memory_resource& memory, IsOf&& is_of,
               Spot&& spot) {
  const auto count = std::size_t(size.height * size.width);
  std::pmr::vector<std::uint8_t> known(count, 0, &memory);
  std::pmr::vector<std::int64_t> cells(&memory);
  for (std::size_t first = 0; first < count; ++first) {
    if (known[first] || !is_of(first)) continue;
    known[first] = 1;
    cells.assign(1, std::int64_t(first));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::int64_t y = cells[i] / size.width, x = cells[i] % size.width;
      for (std::int64_t v = std::max<std::int64_t>(y - 1, 0); v < std::min(y + 2, size.height); ++v)
        for (std::int64_t u = std::max<std::int64_t>(x - 1, 0); u < std::min(x + 2, size.width);
             ++u) {
          const auto next = std::size_t(v * size.width + u);
          if (known[next] || !is_of(next)) continue;
          known[next] = 1;
          cells.push_back(std::int64_t(next));
        }
    }
    spot(cells);
  }
}

}  // namespace

float mask_overlap(const Floats& a, const Floats& b) {
  std::int64_t both = 0;
  for (std::size_t i = 0; i < a.size(); ++i) both += a[i] > 0 && b[i] > 0 ? 1 : 0;
  const std::int64_t of_a = area_of(a), of_b = area_of(b);
  const auto part = [&](std::int64_t whole) {
    return float(both) / float(std::max<std::int64_t>(whole, 1));
  };
  return std::max(part(of_a + of_b - both), part(std::min(of_a, of_b)));
}

std::vector<std::size_t> apart_masks(const std::vector<Floats>& masks,
                                     const std::vector<float>& scores) {
  constexpr float kSame = 0.5f;
  std::vector<std::size_t> order(masks.size()), kept;
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  for (const std::size_t i : order)
    if (std::ranges::none_of(
            kept, [&](std::size_t other) { return mask_overlap(masks[i], masks[other]) >= kSame; }))
      kept.push_back(i);
  return kept;
}

void fill_holes(Floats& mask, const blocks::GridSize& size, std::int64_t most,
                std::pmr::memory_resource& memory) {
  constexpr float kJustIn = 0.1f, kJustOut = -0.1f;
  Floats from(mask, &memory);
  const auto replace = [&](std::int64_t limit, float with) {
    return [&mask, limit, with](const auto& cells) {
      if (std::int64_t(cells.size()) > limit) return;
      for (const std::int64_t cell : cells) mask[std::size_t(cell)] = with;
    };
  };
  each_spot(
      size, memory, [&](std::size_t i) { return !(from[i] > 0); }, replace(most, kJustIn));
  from = mask;
  each_spot(
      size, memory, [&](std::size_t i) { return from[i] > 0; },
      replace(std::min(area_of(mask) / 2, most), kJustOut));
}

void hide_overlapping(std::vector<Floats>& masks, std::vector<std::int64_t>& hidden_at,
                      std::int64_t frame) {
  constexpr float kMuch = 0.3f;
  const std::size_t count = masks.size();
  if (count < 2) return;
  std::vector<bool> hidden(count, false), gone(count);
  for (std::size_t i = 0; i < count; ++i) {
    gone[i] = area_of(masks[i]) == 0;
    for (std::size_t j = i + 1; j < count; ++j) {
      if (mask_overlap(masks[i], masks[j]) < kMuch) continue;
      if (hidden_at[i] > hidden_at[j] && hidden_at[j] > -1) hidden[i] = true;
      if (hidden_at[j] > hidden_at[i] && hidden_at[i] > -1) hidden[j] = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (gone[i] || hidden[i]) hidden_at[i] = frame;
    if (hidden[i]) std::ranges::fill(masks[i], kHidden);
  }
}

std::vector<bool> hold_their_own(const std::vector<Floats>& masks) {
  constexpr float kEnough = 0.3f;
  const std::size_t count = masks.size();
  std::vector<std::int64_t> own(count, 0);
  for (std::size_t cell = 0; count > 0 && cell < masks[0].size(); ++cell) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < count; ++i)
      if (masks[i][cell] > masks[most][cell]) most = i;
    own[most] += masks[most][cell] > 0 ? 1 : 0;
  }
  std::vector<bool> held(count);
  for (std::size_t i = 0; i < count; ++i)
    held[i] = float(own[i]) / float(std::max<std::int64_t>(area_of(masks[i]), 1)) >= kEnough;
  return held;
}

}  // namespace heddle::detection
