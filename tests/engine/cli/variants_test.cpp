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

BOOST_AUTO_TEST_CASE(a_node_that_is_there_divides_an_input_before_the_last_point) {
  const Workflow flow =
      Workflow::parse(R"({"1": {"class_type": "Resize"}, "v1.5": {"class_type": "Load"}})");
  const auto split = [&](const char* name) {
    const InputName made = split_input_name(name, flow);
    return made.node + " | " + made.input;
  };
  BOOST_TEST(split("Resize.type.width") == "Resize | type.width");
  BOOST_TEST(split("v1.5.seed") == "v1.5 | seed");
  BOOST_TEST(split("nobody.type.width") == "nobody.type | width");
  BOOST_TEST((test::refusal_of([&] { split_input_name("1", flow); }).code() ==
              engine::Code::invalid_argument));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace heddle::cli
