#include "engine/cli/variants.h"

#include <boost/test/unit_test.hpp>

#include "engine/base/error.h"
#include "tests/support/refusal.h"

namespace heddle::cli {
namespace {

BOOST_AUTO_TEST_SUITE(variants)

BOOST_AUTO_TEST_CASE(an_input_is_what_stands_behind_the_last_point) {
  BOOST_TEST(split_input_name("v1.5 model.seed").node == "v1.5 model");
  BOOST_TEST(split_input_name("v1.5 model.seed").input == "seed");
  for (const char* name : {"seed", ".seed", "node.", ""})
    BOOST_TEST((test::refusal_of([&] { split_input_name(name); }).code() ==
                engine::Code::invalid_argument));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
