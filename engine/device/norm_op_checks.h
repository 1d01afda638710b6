// The catalogue's checks of norms that turn pairs, or take a row of modulation: norm_rope/1 and the
// ops of abi/norm_ops.h. Pure; any thread.
#pragma once

#include "engine/device/examined_call.h"
#include "heddle/abi/norm_ops.h"

namespace heddle::engine {

inline void check_modulated_rms_norm(const Examined& e) {
  e.operands(1, 3, 1);
  const auto& x = *e.in(0);
  e.rank(x, 3, "input");
  e.same(x, e.out(), "the input's and the output's shape");
  for (std::uint32_t i = 1; i < 3; ++i)
    if (const auto* row = e.in(i)) {
      e.rank(*row, 3, "modulation");
      e.require((row->shape[0] == 1 || row->shape[0] == x.shape[0]) &&
                    (row->shape[1] == 1 || row->shape[1] == x.shape[1]) &&
                    row->shape[2] == x.shape[2],
                "a modulation does not broadcast to the input");
    }
  e.attrs<heddle_norm_attrs>();
}

inline void check_norm_rope(const Examined& e) {
  e.operands(1, 4, 1);
  const auto& x = *e.in(0);
  e.rank(x, 4, "input");
  e.same(x, e.out(), "the input's and the output's shape");
  e.vector(1, x.shape[3], "weight");
  e.require((e.in(2) == nullptr) == (e.in(3) == nullptr), "cos and sin go together");
  for (std::uint32_t i = 2; i < 4; ++i)
    if (const auto* t = e.in(i)) {
      e.rank(*t, 2, "table");
      e.require(
          t->shape[0] == x.shape[1] && t->shape[1] * 2 == x.shape[3] && t->dtype == HEDDLE_F32,
          cat("a table is not f32 (", x.shape[1], ", ", x.shape[3] / 2, ")"));
    }
  e.attrs<heddle_norm_attrs>();
}

inline void check_norm_rope_half(const Examined& e) {
  e.operands(4, 4, 1);
  const auto& x = *e.in(0);
  const auto& a = e.attrs<heddle_norm_rope_half_attrs>();
  e.rank(x, 4, "input");
  e.same(x, e.out(), "the input's and the output's shape");
  e.vector(1, x.shape[3], "weight");
  e.require(a.head > 0 && x.shape[3] % a.head == 0, "the last axis is no multiple of a head");
  e.require(a.pairs > 0 && a.pairs <= a.head / 2, "a head has fewer pairs than are to turn");
  const std::int64_t columns = x.shape[3] / a.head * a.pairs;
  for (std::uint32_t i = 2; i < 4; ++i) {
    const auto* table = e.in(i);
    e.require(table != nullptr, "a table is missing");
    e.rank(*table, 2, "table");
    e.require(
        table->shape[0] == x.shape[1] && table->shape[1] == columns && table->dtype == HEDDLE_F32,
        cat("a table is not f32 (", x.shape[1], ", ", columns, ")"));
  }
}

}  // namespace heddle::engine
