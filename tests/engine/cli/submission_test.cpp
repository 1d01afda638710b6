// Lists of values as a server gets them.
#include "engine/cli/submission.h"

#include <boost/test/unit_test.hpp>

using heddle::cli::SubmittedSweep;

BOOST_AUTO_TEST_SUITE(submission)

BOOST_AUTO_TEST_CASE(labels_are_in_the_order_of_the_jobs) {
  SubmittedSweep sweep;
  BOOST_TEST(sweep.is_empty());
  sweep.add("1.seed", {"9"});
  sweep.add("1.seed", {"1", "2"});  // the last one counts
  sweep.add("2.cfg", {"4.5", "7"});
  BOOST_TEST(sweep.label(0, false) == "1.seed=1, 2.cfg=4.5");
  BOOST_TEST(sweep.label(1, false) == "1.seed=1, 2.cfg=7");
  BOOST_TEST(sweep.label(2, false) == "1.seed=2, 2.cfg=4.5");
  BOOST_TEST(sweep.label(1, true) == "1.seed=2, 2.cfg=7");
  BOOST_TEST(heddle::engine::write_json(sweep.json(true)) ==
             R"({"mode":"zipped","inputs":{"1.seed":[1,2],"2.cfg":[4.5,7]}})");
  sweep.remove("1.seed");
  sweep.remove("2.cfg");
  BOOST_TEST(sweep.is_empty());
}

BOOST_AUTO_TEST_SUITE_END()
