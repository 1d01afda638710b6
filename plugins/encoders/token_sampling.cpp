#include "token_sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <heddle/value.hpp>

namespace heddle::encoders {
namespace {

struct Candidate {
  std::int32_t token;
  float score;
  double weight = 0;  // its probability, times the sum of all
};

// The likeliest first; of equal ones that of the lower number.
bool is_before(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

std::vector<Candidate> likeliest(const std::vector<float>& scores, std::int64_t most) {
  std::vector<Candidate> all;
  all.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!std::isnan(scores[i])) all.push_back({std::int32_t(i), scores[i]});
  if (most > 0 && std::size_t(most) < all.size()) {
    const auto last = all.begin() + (most - 1);
    std::nth_element(all.begin(), last, all.end(), is_before);
    const float least = last->score;
    std::erase_if(all, [&](const Candidate& one) { return one.score < least; });
  }
  std::sort(all.begin(), all.end(), is_before);
  for (Candidate& one : all) one.weight = std::exp(double(one.score) - double(all.front().score));
  return all;
}

double sum_of(const std::vector<Candidate>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0,
                         [](double sum, const Candidate& one) { return sum + one.weight; });
}

void keep_share(std::vector<Candidate>& all, double share) {
  if (share >= 1) return;
  const double wanted = share * sum_of(all);
  double sum = 0;
  std::size_t count = 0;
  while (count < all.size() && (count == 0 || sum < wanted)) sum += all[count++].weight;
  all.resize(count);
}

}  // namespace

TokenSampler::TokenSampler(std::optional<SamplingRules> rules,
                           const std::vector<std::int32_t>& prompt)
    : rules_(rules),
      seen_(prompt.begin(), prompt.end()),
      generator_(std::uint32_t(rules ? rules->seed : 0)) {}

double TokenSampler::draw() {
  const std::uint64_t high = generator_(), low = generator_();
  return double((high << 32 | low) & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

void TokenSampler::penalise(std::vector<float>& scores) const {
  const auto repetition = float(rules_->repetition_penalty),
             presence = float(rules_->presence_penalty);
  const auto at = [&](std::int32_t token) -> float* {
    return token >= 0 && std::size_t(token) < scores.size() ? &scores[std::size_t(token)] : nullptr;
  };
  if (repetition != 1 && repetition > 0)
    for (const std::int32_t token : seen_)
      if (float* const score = at(token))
        *score = *score > 0 ? *score / repetition : *score * repetition;
  if (presence != 0)
    for (const std::int32_t token : written_)
      if (float* const score = at(token)) *score -= presence;
}

std::int32_t TokenSampler::next(std::vector<float>& scores, double cap) {
  if (cap != 0)
    for (float& score : scores) score = float(cap * std::tanh(double(score) / cap));
  if (rules_) penalise(scores);
  if (rules_)
    for (float& score : scores) score /= float(rules_->temperature);
  std::vector<Candidate> rest = likeliest(scores, rules_ ? rules_->top_k : 1);
  if (rest.empty())
    throw Error(
        HEDDLE_INVALID_ARGUMENT,
        "the language model's scores of the next token are no numbers. Its file is damaged, "
        "or it needs wider numbers than it is computed in.");
  std::int32_t token = rest.front().token;
  if (rules_) {
    keep_share(rest, rules_->top_p);
    const double least = rules_->min_p * rest.front().weight;
    std::erase_if(rest, [&](const Candidate& one) { return one.weight < least; });
    std::sort(rest.begin(), rest.end(),
              [](const Candidate& a, const Candidate& b) { return a.token < b.token; });
    double left = draw() * sum_of(rest);
    token = rest.back().token;
    for (const Candidate& one : rest) {
      left -= one.weight;
      if (left >= 0) continue;
      token = one.token;
      break;
    }
  }
  seen_.insert(token);
  written_.insert(token);
  return token;
}

void TokenSampler::repeat(std::int32_t token) {
  if (rules_) draw();
  seen_.insert(token);
  written_.insert(token);
}

}  // namespace heddle::encoders
