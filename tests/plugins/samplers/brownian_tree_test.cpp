// Seeds against NumPy's and noise against torchsde's (make_brownian_goldens.py), bit for bit.
#include "plugins/samplers/brownian_tree.h"

#include <boost/test/unit_test.hpp>

#include "golden.h"
#include "plugins/samplers/seed_sequence.h"

BOOST_AUTO_TEST_SUITE(brownian)

using heddle::samplers::BrownianTree;
using heddle::samplers::seed_words;
using heddle::samplers::testing::crc_of;
using heddle::samplers::testing::load;
using heddle::samplers::testing::numbers;

BOOST_AUTO_TEST_CASE(seeds_equal_those_of_numpy) {
  const auto golden = load("brownian_golden.json");
  for (const auto& expected : golden["seeds"].GetArray()) {
    const auto key = numbers<std::uint64_t>(expected["key"]);
    const auto words = numbers<std::uint32_t>(expected["words"]);
    const std::uint64_t entropy = std::stoull(expected["entropy"].GetString());
    BOOST_TEST(seed_words(entropy, key, expected["pool"].GetUint(), words.size()) == words,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(noise_equals_that_of_torchsde_bit_for_bit) {
  const auto golden = load("brownian_golden.json");
  for (const auto& expected : golden["trees"].GetArray()) {
    const std::uint64_t seed = std::stoull(expected["seed"].GetString());
    const BrownianTree tree(seed, expected["high"].GetFloat(), expected["low"].GetFloat());
    std::vector<float> noise(expected["count"].GetUint());
    for (const auto& step : expected["cases"].GetArray()) {
      tree.noise(step["from"].GetFloat(), step["to"].GetFloat(), noise);
      BOOST_TEST_CONTEXT("seed " << seed << " from " << step["from"].GetFloat() << " to "
                                 << step["to"].GetFloat() << ": " << noise[0] << " for "
                                 << step["first"][0].GetFloat())
      BOOST_TEST(crc_of(noise) == step["crc32"].GetString());
    }
  }
}

BOOST_AUTO_TEST_CASE(levels_that_are_equal_in_six_decimals_give_zeros) {
  const BrownianTree tree(1, 0.1f, 10.0f);
  std::vector<float> noise(20, 1.0f);
  tree.noise(0.5f, 0.50000006f, noise);
  BOOST_TEST(noise == std::vector<float>(20, 0.0f), boost::test_tools::per_element());
  // Outside of the interval the path stands still.
  tree.noise(20.0f, 11.0f, noise);
  BOOST_TEST(noise == std::vector<float>(20, 0.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
