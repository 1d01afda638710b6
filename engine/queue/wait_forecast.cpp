#include "engine/queue/wait_forecast.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

namespace heddle::engine {

std::vector<std::optional<double>> forecast_waits(const std::vector<std::optional<double>>& running,
                                                  const std::vector<std::optional<double>>& waiting,
                                                  std::size_t workers) {
  // A worker that is busy with what is not known is free at some time that nobody waits for here.
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (const std::optional<double>& left : running) free_at.push(left.value_or(kUnknown));
  while (free_at.size() < std::max<std::size_t>(workers, 1)) free_at.push(0);
  // More may run than there are workers: background jobs that have given way.
  std::size_t surplus = free_at.size() - std::max<std::size_t>(workers, 1);
  for (; surplus > 0; --surplus) free_at.pop();
  std::vector<std::optional<double>> begins;
  for (const std::optional<double>& seconds : waiting) {
    const double begin = free_at.top();
    free_at.pop();
    begins.push_back(begin == kUnknown ? std::nullopt : std::optional(begin));
    free_at.push(begin + seconds.value_or(kUnknown));
  }
  return begins;
}

double seconds_left(double expected, double elapsed) {
  constexpr double kOfElapsed = 0.1;
  return std::max(expected - elapsed, kOfElapsed * elapsed);
}

}  // namespace heddle::engine
