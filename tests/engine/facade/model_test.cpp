// Models as block graphs, run by a node that steps them: a random model of three blocks, against
// plain arithmetic.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "tests/support/engine_fixture.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;
using test::engine_refusal;
using test::workflow;

namespace {

constexpr int kWide = 24, kDeep = 3;

struct ModelFixture {
  test::TemporaryFolder folder;
  std::vector<std::vector<float>> weights;
  std::string path;

  ModelFixture() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0.0f, 0.2f);
    std::vector<test::FileTensor> tensors;
    for (int l = 0; l < kDeep; ++l) {
      auto& w = weights.emplace_back(kWide * kWide);
      for (float& x : w) x = normal(random);
      tensors.push_back({"layers." + std::to_string(l) + ".weight",
                         "F32",
                         {kWide, kWide},
                         test::bytes_of_floats(w)});
    }
    path = folder.write("layers.safetensors", test::safetensors_bytes(tensors)).string();
  }

  // x <- layers(x), each adding bias + t; in double.
  std::vector<double> expected(int steps, double bias) const {
    std::vector<double> x(kWide);
    for (int i = 0; i < kWide; ++i) x[std::size_t(i)] = i;
    for (int s = 0; s < steps; ++s)
      for (const auto& w : weights) {
        std::vector<double> y(kWide, bias + 1.0 + s);
        for (int o = 0; o < kWide; ++o)
          for (int i = 0; i < kWide; ++i)
            y[std::size_t(o)] += double(w[std::size_t(o * kWide + i)]) * x[std::size_t(i)];
        x = y;
      }
    return x;
  }

  std::string flow(int steps, int sets) const {
    return workflow(
        {{"load",
          (R"({"class_type": "test.load", "inputs": {"path": ")" + path + R"("}})").c_str()},
         {"x", R"({"class_type": "test.ramp", "inputs": {"count": 24}})"},
         {"loop",
          (R"({"class_type": "test.loop", "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": )" +
           std::to_string(steps) + R"(, "sets": )" + std::to_string(sets) + "}}")
              .c_str()},
         {"keep", R"({"class_type": "test.keep", "inputs": {"value": ["loop", 0]}})"}});
  }
};

std::vector<float> result(Engine& engine, const std::string& flow) {
  return engine.start(engine.parse(flow), {{}, {"keep.out"}}).wait().floats("keep.out");
}

void check_close(const std::vector<float>& got, const std::vector<double>& want) {
  BOOST_TEST_REQUIRE(got.size() == want.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  BOOST_TEST(std::sqrt(difference / norm) < 1e-5);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(model, ModelFixture)

BOOST_AUTO_TEST_CASE(a_model_of_three_blocks_steps_as_arithmetic_says) {
  Engine engine(test::engine_options());
  for (const int steps : {1, 2, 5}) BOOST_TEST_CONTEXT("steps " << steps)
  check_close(result(engine, flow(steps, 1)), expected(steps, 0.5));
}

BOOST_AUTO_TEST_CASE(two_sets_have_constants_of_their_own) {
  Engine engine(test::engine_options());
  std::vector<double> want = expected(3, 0.5);
  const std::vector<double> second = expected(3, 1.0);
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += second[i];
  check_close(result(engine, flow(3, 2)), want);
}

BOOST_AUTO_TEST_CASE(bytes_do_not_depend_on_threads_or_repeats) {
  std::vector<std::vector<float>> all;
  for (const unsigned threads : {1u, 2u, 3u, 4u}) {
    EngineOptions options = test::engine_options();
    options.threads = threads;
    Engine engine(options);
    all.push_back(result(engine, flow(4, 2)));
    all.push_back(result(engine, flow(4, 2)));
  }
  for (const auto& other : all) BOOST_TEST((other == all[0]));
}

BOOST_AUTO_TEST_CASE(a_missing_model_file_says_where_it_was_looked_for) {
  Engine engine(test::engine_options());
  path = "/nowhere/model.safetensors";
  const std::string reason = engine_refusal([&] { result(engine, flow(1, 1)); });
  BOOST_TEST(reason.find("/nowhere/model.safetensors") != std::string::npos, reason);
  BOOST_TEST(reason.find("'load'") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_no_family_knows_is_refused_naming_those_asked) {
  path =
      folder
          .write(
              "other.safetensors",
              test::safetensors_bytes({{"unknown.weight", "F32", {1}, test::bytes_of_floats({1})}}))
          .string();
  Engine engine(test::engine_options());
  const std::string reason = engine_refusal([&] { result(engine, flow(1, 1)); });
  BOOST_TEST(reason.find("test.layers") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_family_that_names_what_is_not_there_is_told_what_is) {
  Engine engine(test::engine_options());
  for (const auto& [slip, said] :
       {std::pair("slip.type", "there is no block type 'test.lyer'. Did you mean 'test.layer'?"),
        std::pair("slip.input", "has no input 'shfit'. Did you mean 'shift'?"),
        std::pair("slip.output", "has no output 'yy'. Did you mean 'y'?")}) {
    path = folder
               .write(std::string(slip) + ".safetensors",
                      test::safetensors_bytes({{slip, "F32", {1}, test::bytes_of_floats({1})}}))
               .string();
    const std::string reason = engine_refusal([&] { result(engine, flow(1, 1)); });
    BOOST_TEST(reason.find(said) != std::string::npos, reason);
  }
}

BOOST_AUTO_TEST_SUITE_END()
