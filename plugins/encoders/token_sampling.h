// plugins/encoders/token_sampling.h - which token comes next, of a language model's scores. Pure
// but for the draws of the one object; one call's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace heddle::encoders {

struct SamplingRules {
  double temperature = 0.7;
  std::int64_t top_k = 64;  // 0: all
  double top_p = 0.95, min_p = 0.05;
  double repetition_penalty = 1.05, presence_penalty = 0;
  std::uint64_t seed = 0;
};

// Without rules the likeliest token, the first of equal ones. With them, in this order:
//   repetition  of tokens of the prompt and of those written, scores above 0 are divided by it, and
//               others multiplied
//   presence    is taken from the scores of tokens that were written
//   temperature divides all scores
//   top_k       so many of the likeliest are left, and those that equal the last of them
//   top_p       of these, the likeliest ones whose probabilities sum up to it; one at least
//   min_p       of these, those at least so many times as probable as the likeliest
// and one of the rest is drawn by its probability. A draw takes one double of a Mersenne twister
// that is seeded with the seed's low 32 bits, as torch.rand on the CPU makes it: the same on every
// device. (ComfyUI draws on its device, with whatever generator that has.)
class TokenSampler {
 public:
  TokenSampler(std::optional<SamplingRules> rules, const std::vector<std::int32_t>& prompt);

  // scores: of all tokens; they are changed. cap: not 0, scores become cap tanh(score / cap).
  // Throws HEDDLE_INVALID_ARGUMENT where no score is a number.
  std::int32_t next(std::vector<float>& scores, double cap);
  // As if `token` had come next: what a text that goes on later has written already.
  void repeat(std::int32_t token);

 private:
  double draw();
  void penalise(std::vector<float>& scores) const;

  const std::optional<SamplingRules> rules_;
  std::set<std::int32_t> seen_, written_;
  std::mt19937 generator_;
};

}  // namespace heddle::encoders
