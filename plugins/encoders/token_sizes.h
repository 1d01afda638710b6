// Sizes of pictures of which a model sees a limited number of tokens. Pure; any thread.
#pragma once

#include <algorithm>
#include <cmath>

#include "plugins/blocks/resample.h"

namespace heddle::encoders {

// The largest size in whole tokens of `unit` pixels, with about the aspect of `from`, that has at
// most `tokens` of them, as ComfyUI fits pictures for Gemma 4. A side has at least one token, and a
// narrow picture then as many as it is long, in its width. REQUIRES: `from` is 1 x 1 at least.
inline blocks::GridSize size_in_tokens(const blocks::GridSize& from, std::int64_t tokens,
                                       std::int64_t unit) {
  const double height = double(from.height), width = double(from.width),
               factor = std::sqrt(double(tokens * unit * unit) / (height * width));
  const auto whole = [&](double length) {
    return std::int64_t(std::floor(factor * length / double(unit)));
  };
  const auto along = [&](double longer, double shorter) {
    return std::clamp<std::int64_t>(std::int64_t(std::floor(longer / shorter)), 1, tokens);
  };
  std::int64_t rows = whole(height), columns = whole(width);
  if (rows == 0)
    rows = 1, columns = along(width, height);
  else if (columns == 0)
    columns = 1, rows = along(height, width);
  return {rows * unit, columns * unit};
}

}  // namespace heddle::encoders
