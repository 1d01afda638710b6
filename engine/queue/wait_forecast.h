// How long jobs will wait, from how long such jobs have taken. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace heddle::engine {

// Seconds until each of the waiting jobs begins, in their order; nothing from the first one on of
// which that cannot be said. `running`: seconds that are left of each job that runs; `waiting`:
// that each takes, in the order in which they begin; nothing: not known. `workers`: jobs that run
// at a time, at least one.
std::vector<std::optional<double>> forecast_waits(const std::vector<std::optional<double>>& running,
                                                  const std::vector<std::optional<double>>& waiting,
                                                  std::size_t workers);

// Of a job that such jobs let expect `expected` seconds of, and that has run for `elapsed`. One
// that takes longer than expected is taken to go on for a tenth of what it has taken.
double seconds_left(double expected, double elapsed);

}  // namespace heddle::engine
