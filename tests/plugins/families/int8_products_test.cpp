// A tiny T5 of int8 matrices whose products are of whole numbers, as they are and rotated, against
// what NumPy's rounding makes of it (make_int8_products.py): the rounding of rows explains what is
// between this and the exact result, and nothing else. Needs no trained model.
#include <boost/test/unit_test.hpp>

#include <cmath>

#include "tests/support/golden_files.h"
#include "tests/support/model_probe.h"

using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(int8_products)

BOOST_AUTO_TEST_CASE(their_error_is_that_of_numpys_rounding_and_there_is_none_without_them) {
  const std::filesystem::path folder = tests_folder() / "plugins/goldens/quantised";
  const TensorFile expected(folder / "expected_int8.safetensors");
  ModelProbe widened, multiplied("f32", "int8");
  for (const std::string form : {"int8", "int8_convrot"}) BOOST_TEST_CONTEXT(form) {
      const ModelCall call{folder / ("t5_" + form + ".safetensors"), "text_encoder", "",
                           folder / "expected_int8.safetensors", form + "."};
      const std::vector<float> exact = expected.floats(form + ".last_hidden"),
                               rounded = expected.floats(form + ".rounded");
      const auto hidden = [&](ModelProbe& probe) {
        return probe.call(call).floats("model.outputs", "last_hidden.0");
      };
      BOOST_TEST(relative_error(hidden(widened), exact) < 5e-6);  // as of weights in 32 bits
      const std::vector<float> whole = hidden(multiplied);
      const double explained = relative_error(rounded, exact), found = relative_error(whole, exact);
      BOOST_TEST_MESSAGE("error " << found << ", NumPy's " << explained);
      BOOST_TEST(found <= 1.2 * explained);
      BOOST_TEST(found >= 0.5 * explained);
      // Sums in another order round a few numbers to their other neighbour.
      BOOST_TEST(relative_error(whole, rounded) < 0.1 * explained);
    }
}

BOOST_AUTO_TEST_SUITE_END()
