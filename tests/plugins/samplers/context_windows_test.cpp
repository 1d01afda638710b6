// Windows, weights, repeated noise and what is refused, against window_reference.py.
#include "plugins/samplers/context_windows.h"

#include <cmath>

#include <boost/test/unit_test.hpp>
#include <heddle/model.hpp>

#include "golden.h"
#include "plugins/samplers/window_tensors.h"

namespace {

using namespace heddle::samplers;
using heddle::samplers::testing::load;
using heddle::samplers::testing::numbers;

const rapidjson::Document& window_golden() {
  static const rapidjson::Document golden = load("window_golden.json");
  return golden;
}

WindowRule rule_of(const rapidjson::Value& given) {
  return {.length = given["length"].GetInt64(),
          .overlap = given["overlap"].GetInt64(),
          .schedule = *find_window_schedule(given["schedule"].GetString()),
          .stride = given["stride"].GetInt64(),
          .closed_loop = given["closed_loop"].GetBool()};
}

std::string name_of(const rapidjson::Value& given) {
  return std::string(given["schedule"].GetString()) + " of " +
         std::to_string(given["full"].GetInt64()) + " by " +
         std::to_string(given["length"].GetInt64()) + " at step " +
         std::to_string(given["step"].GetInt64());
}

void check_weights(WindowRule rule, const rapidjson::Value& given) {
  for (const auto& member : given["weights"].GetObject()) {
    rule.fuse = *find_window_fuse(member.name.GetString());
    const ContextWindows windows =
        windows_at(rule, given["full"].GetInt64(), given["step"].GetUint64());
    for (std::size_t k = 0; k < windows.size(); ++k) {
      const auto wanted = numbers<double>(member.value[rapidjson::SizeType(k)]);
      BOOST_REQUIRE(wanted.size() == windows[k].weights.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        BOOST_TEST(std::abs(windows[k].weights[i] - wanted[i]) < 1e-6,
                   name_of(given) << ", " << member.name.GetString() << ", window " << k
                                  << ", place " << i << ": " << windows[k].weights[i] << " is not "
                                  << wanted[i]);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(context_windows)

BOOST_AUTO_TEST_CASE(windows_and_weights_are_those_of_the_reference) {
  int refused = 0;
  for (const rapidjson::Value& given : window_golden()["cases"].GetArray()) {
    const WindowRule rule = rule_of(given);
    const std::int64_t full = given["full"].GetInt64();
    const std::uint64_t step = given["step"].GetUint64();
    if (!given.HasMember("windows")) {
      BOOST_CHECK_THROW(windows_at(rule, full, step), heddle::Error);
      ++refused;
      continue;
    }
    const ContextWindows windows = windows_at(rule, full, step);
    BOOST_REQUIRE(windows.size() == given["windows"].Size());
    for (std::size_t k = 0; k < windows.size(); ++k) {
      const auto at = rapidjson::SizeType(k);
      BOOST_TEST(windows[k].places == numbers<std::int64_t>(given["windows"][at]), name_of(given));
      BOOST_TEST(windows[k].region(full, 3) == given["regions"][at].GetUint64());
      const std::int64_t first = windows[k].places.front();
      BOOST_TEST(windows[k].anchor.value_or(-1) == first - 1);
    }
    if (given.HasMember("weights")) check_weights(rule, given);
  }
  BOOST_TEST(refused == 10);
}

BOOST_AUTO_TEST_CASE(noise_is_repeated_as_pytorch_shuffles_it) {
  for (const rapidjson::Value& given : window_golden()["noise"].GetArray()) {
    const WindowRule rule{.length = given["length"].GetInt64(),
                          .overlap = given["overlap"].GetInt64()};
    BOOST_TEST(repeated_noise(rule, given["full"].GetInt64(), given["seed"].GetUint64()) ==
               numbers<std::int64_t>(given["places"]));
  }
}

BOOST_AUTO_TEST_CASE(retained_places_stand_where_they_are_in_the_whole) {
  const ContextWindow window{.places = {4, 5, 6}, .anchor = 3};
  BOOST_TEST(window.seen(9) == (std::vector<std::int64_t>{3, 4, 5, 6}));
  BOOST_TEST(window.seen(9, {0, 2}) == (std::vector<std::int64_t>{0, 4, 2, 6}));
  BOOST_TEST(window.seen(9, {-1}) == (std::vector<std::int64_t>{3, 4, 5, 8}));
  BOOST_CHECK_THROW(window.seen(9, {4}), heddle::Error);
  BOOST_CHECK_THROW(window.seen(9, {-5}), heddle::Error);
}

// Along the batch what has a row for each item; along time what has a number for each frame.
BOOST_AUTO_TEST_CASE(constants_are_cut_as_the_point_is) {
  const ContextWindow window{.places = {4, 5, 6}, .anchor = 3};
  const auto cut = [&](std::int64_t dim) {
    std::vector<heddle::Shape> shapes;
    for (const heddle::Infer::Named& one : constants_in({{"context", HEDDLE_F32, {1, 9, 40}},
                                                         {"vision", HEDDLE_F32, {8, 257, 16}},
                                                         {"concat", HEDDLE_F32, {8, 20, 8, 4, 6}},
                                                         {"frame_noise", HEDDLE_F32, {8}}},
                                                        {.dim = dim}, window, 8))
      shapes.push_back(one.shape);
    return shapes;
  };
  using Shapes = std::vector<heddle::Shape>;
  BOOST_TEST((cut(0) == Shapes{{1, 9, 40}, {4, 257, 16}, {4, 20, 8, 4, 6}, {8}}));
  BOOST_TEST((cut(2) == Shapes{{1, 9, 40}, {8, 257, 16}, {8, 20, 4, 4, 6}, {4}}));
  BOOST_TEST((cut(3) == Shapes{{1, 9, 40}, {8, 257, 16}, {8, 20, 8, 4, 6}, {8}}));
}

BOOST_AUTO_TEST_SUITE_END()
