// plugins/encoders/language_attention.h - attention of decoder-only language models: each token
// sees itself and those before it. Heads of queries are H, of keys and values K, each of d
// elements; H / K queries share keys. Used in blocks, as they are traced; any thread.
#pragma once

#include <heddle/node.hpp>

namespace heddle::encoders {

struct ScoreRules {
  std::int64_t window = 0;  // tokens that one sees, itself among them; 0: all
  double scale = 1;         // of scores
  double cap = 0;           // of scores (heddle_attention_attrs); 0: none
  // (S) f32: tokens with the same number see each other, also those behind them, as far as a window
  // lets them see back. Empty: none do.
  Tensor groups = {};
};

// (S, 3) f32, whose first column counts from 0.
Tensor counted_places(Context& ctx, std::int64_t length);

// keys (B, S, K, d), values (B, S, K d) -> (B, S, 2 K d): keys, behind them the values.
Tensor keys_and_values(Context& ctx, const Tensor& keys, const Tensor& values);

// queries (B, S, H, d), keys (B, S, K, d), values (B, S, K d) -> (B, S, H d). Tokens from `seen` on
// are padding: they see those before, and nobody sees them.
Tensor attended_before(Context& ctx, const Tensor& queries, const Tensor& keys,
                       const Tensor& values, std::int64_t seen, const ScoreRules& rules);

// What one token sees besides itself: `states` (1, C, 2 K d), where `hidden` (1, C + 1) f32, which
// is added to scores, is 0; its last place is the token itself.
struct TokensBefore {
  Tensor states, hidden;
  std::int64_t kv_heads;
};
// queries (1, 1, H, d), own (1, 1, 2 K d), of the token itself -> (1, 1, H d). The rules' window is
// not read. Throws HEDDLE_INVALID_ARGUMENT for more than one token.
Tensor attended_by_one(Context& ctx, const Tensor& queries, const Tensor& own,
                       const TokensBefore& before, const ScoreRules& rules);

}  // namespace heddle::encoders
