// The schedules of GITS: rows of ComfyUI's table, and what NumPy makes of one for more steps.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "plugins/samplers/gits_schedule.h"

using namespace heddle::samplers;

namespace {

struct GitsRow {
  double coefficient;
  int steps;
  double denoise;
  std::vector<double> levels;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(gits_schedule)

BOOST_AUTO_TEST_CASE(levels_are_those_of_the_published_table) {
  const GitsRow rows[] = {
      {0.8, 2, 1, {14.61464119, 7.49001646, 0}},
      {0.85, 5, 1, {14.61464119, 11.54541874, 7.11996698, 3.07277966, 1.24153244, 0}},
      {1.0,
       8,
       1,
       {14.61464119, 11.54541874, 7.49001646, 4.86714602, 2.84484982, 1.61558151, 0.86115354,
        0.38853383, 0}},
      {1.2,
       10,
       1,
       {14.61464119, 5.85520077, 2.84484982, 1.67050016, 1.08895338, 0.74807048, 0.50118381,
        0.32104823, 0.19894916, 0.09824532, 0}},
      {1.2, 10, 0.45, {0.50118381, 0.32104823, 0.19894916, 0.09824532, 0}},  // 4.5 is 4
      {1.35, 4, 1, {14.61464119, 1.56271636, 0.57119018, 0.19894916, 0}},
      {1.5, 20, 1, {14.61464119, 2.45070267, 1.41535246, 0.95350921, 0.72133851, 0.57119018,
                    0.4783645,   0.43325692, 0.38853383, 0.36617002, 0.34370604, 0.32104823,
                    0.29807833,  0.27464288, 0.25053367, 0.22545385, 0.19894916, 0.17026083,
                    0.13792117,  0.09824532, 0}},
      // numpy.interp() of ln sigma over the row of 20 steps; 7.5 is 8.
      {1.2,
       30,
       0.25,
       {0.23352164030075073, 0.21624818444252014, 0.1989491581916809, 0.17933174967765808,
        0.15871579945087433, 0.13792116940021515, 0.11000646650791168, 0.06554020196199417, 0}}};
  for (const GitsRow& row : rows) BOOST_TEST_CONTEXT(row.coefficient << ", " << row.steps) {
      const Sigmas made = gits_sigmas(row.coefficient, row.steps, row.denoise);
      BOOST_TEST_REQUIRE(made.size() == row.levels.size());
      for (std::size_t i = 0; i < made.size(); ++i)
        BOOST_TEST(std::abs(made[i] - row.levels[i]) <= 1.2e-7 * row.levels[i],
                   i << ": " << made[i]);
    }
}

BOOST_AUTO_TEST_CASE(every_schedule_falls_from_the_first_level_to_0) {
  for (int i = 0; i < 15; ++i)
    for (const int steps : {2, 3, 9, 20, 21, 1000}) {
      const Sigmas made = gits_sigmas(0.8 + 0.05 * i, steps);
      BOOST_TEST(made.size() == std::size_t(steps) + 1);
      BOOST_TEST(made.front() == 14.61464119f);
      BOOST_TEST(made.back() == 0.0f);
      BOOST_TEST(std::is_sorted(made.rbegin(), made.rend()), i << ", " << steps);
    }
  BOOST_TEST(gits_sigmas(1.2, 10, 0).empty());
}

BOOST_AUTO_TEST_CASE(what_has_no_table_is_refused_with_its_number) {
  for (const double coefficient : {0.75, 0.83, 1.55, -1.0, std::nan("")})
    BOOST_CHECK_EXCEPTION(
        gits_sigmas(coefficient, 10), std::invalid_argument, [](const std::exception& error) {
          return std::string(error.what()).find("give 0.80, 0.85") != std::string::npos;
        });
  BOOST_CHECK_THROW(gits_sigmas(1.2, 1), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
