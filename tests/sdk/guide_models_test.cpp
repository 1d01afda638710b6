// The guide's pages about samplers and model families (sdk/guide/models, sdk/guide/family): its
// code, run by workflows that ship nodes' own.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <random>

#include "heddle/engine.hpp"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

namespace heddle::testing {

BOOST_AUTO_TEST_SUITE(guide_models)

namespace {

constexpr int kWidth = 4, kHigh = 6, kWide = 8, kTokens = kHigh * kWide, kLayers = 2;

// x + time, and then x + attention(x, x, x) W^T for each of the weights in turn, by the formula; x
// is (C, h, w).
std::vector<double> looked(std::vector<double> x, double time,
                           const std::vector<std::vector<float>>& weights) {
  const auto at = [](int token, int channel) { return std::size_t(channel * kTokens + token); };
  for (double& value : x) value += time;
  for (const auto& w : weights) {
    std::vector<double> y = x;
    for (int t = 0; t < kTokens; ++t) {
      std::vector<double> share(kTokens), seen(kWidth);
      double sum = 0;
      for (int s = 0; s < kTokens; ++s) {
        double score = 0;
        for (int c = 0; c < kWidth; ++c) score += x[at(t, c)] * x[at(s, c)];
        sum += share[std::size_t(s)] = std::exp(score / std::sqrt(double(kWidth)));
      }
      for (int s = 0; s < kTokens; ++s)
        for (int c = 0; c < kWidth; ++c)
          seen[std::size_t(c)] += share[std::size_t(s)] / sum * x[at(s, c)];
      for (int o = 0; o < kWidth; ++o)
        for (int c = 0; c < kWidth; ++c)
          y[at(t, o)] += seen[std::size_t(c)] * w[std::size_t(o * kWidth + c)];
    }
    x = y;
  }
  return x;
}

std::vector<float> random_numbers(std::mt19937& random, int count) {
  std::normal_distribution<float> normal(0, 0.4f);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& x : all) x = normal(random);
  return all;
}

// A folder of models with these files in diffusion_models.
void add_model(const test::TemporaryFolder& models, const char* name, const std::string& bytes) {
  std::filesystem::create_directories(models.path() / "diffusion_models");
  std::ofstream(models.path() / "diffusion_models" / name, std::ios::binary) << bytes;
}

std::string conditioning(const char* name) {
  return std::string(R"({"class_type": "test.conditioning", "inputs": {"path": ")") +
         HEDDLE_TESTS_DIR + R"(/plugins/nodes/goldens.safetensors", "prefix": "in.)" + name +
         R"(", "option": ""}})";
}

// The latent after four steps.
std::string drawing(const std::string& model, const std::string& sampler,
                    const std::string& parallel) {
  return R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": ")" + model +
         R"(", "weight_dtype": "default"}}, "one": )" + conditioning("one") + R"(, "two": )" +
         conditioning("two") +
         R"(, "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}},
             "draw": {"class_type": "KSampler", "parallel": ")" +
         parallel +
         R"(", "inputs": {"model": ["model", 0], "seed": 7, "steps": 4, "cfg": 3.0, "sampler_name": ")" +
         sampler +
         R"(", "scheduler": "simple", "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
             "save": {"class_type": "SaveLatent", "inputs": {"samples": ["draw", 0], "filename_prefix": "made"}}})";
}

EngineOptions two_devices(const test::TemporaryFolder& models) {
  EngineOptions options;
  options.default_plugin_dir = HEDDLE_PLUGINS_DIR;
  options.plugin_dirs = {HEDDLE_SAMPLE_PLUGINS_DIR, HEDDLE_SAMPLE_PLUGINS_DIR "/guide",
                         HEDDLE_FAKE_DEVICE_DIR};
  options.model_dirs = {models.path()};
  options.output_dir = models.path() / "output";
  options.devices = {"fake:0", "fake:1"};
  options.compute = {{"fake", "f32"}};
  options.device_options = {{"fake", R"({"count": 2})"}};
  return options;
}

std::vector<float> drawn(Engine& engine, const std::string& flow) {
  return engine.start(engine.parse(flow), {.fetch = {"draw.LATENT"}})
      .wait()
      .floats("draw.LATENT", "samples");
}

double relative_error(const std::vector<float>& a, const std::vector<double>& b) {
  BOOST_TEST_REQUIRE(a.size() == b.size());
  double difference = 0, whole = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    whole += b[i] * b[i];
  }
  return std::sqrt(difference / whole);
}

}  // namespace

BOOST_AUTO_TEST_CASE(its_sampler_draws_what_eulers_method_draws) {
  test::TemporaryFolder models;
  std::ifstream small(HEDDLE_TESTS_DIR "/plugins/goldens/random/flux_diffusers.safetensors",
                      std::ios::binary);
  add_model(models, "small.safetensors", std::string(std::istreambuf_iterator<char>(small), {}));
  Engine engine(two_devices(models));
  const std::vector<float> own = drawn(engine, drawing("small.safetensors", "guide_euler", "none")),
                           known = drawn(engine, drawing("small.safetensors", "euler", "none")),
                           other = drawn(engine, drawing("small.safetensors", "heun", "none"));
  const std::vector<double> expected(known.begin(), known.end());
  BOOST_TEST(relative_error(own, expected) < 1e-6);
  BOOST_TEST(relative_error(other, expected) > 1e-4);  // two samplers are told apart
}

BOOST_AUTO_TEST_CASE(its_family_sees_all_tokens_on_one_device_and_on_two) {
  std::mt19937 random(3);
  test::TemporaryFolder folder;
  std::vector<std::vector<float>> weights;
  std::vector<test::FileTensor> tensors;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights.push_back(random_numbers(random, kWidth * kWidth));
    tensors.push_back({"look." + std::to_string(layer) + ".weight",
                       "F32",
                       {kWidth, kWidth},
                       test::bytes_of_floats(weights.back())});
  }
  add_model(folder, "looks.safetensors", test::safetensors_bytes(tensors));
  Engine engine(two_devices(folder));

  // One call, against the formula.
  const std::vector<float> x = random_numbers(random, kTokens * kWidth);
  const std::string given =
      folder
          .write("given.safetensors",
                 test::safetensors_bytes(
                     {{"in.x", "F32", {1, kWidth, kHigh, kWide}, test::bytes_of_floats(x)},
                      {"in.timestep", "F32", {1}, test::bytes_of_floats({0.25f})}}))
          .string();
  const std::string flow =
      R"({"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "looks.safetensors", "weight_dtype": "default"}},
          "call": {"class_type": "test.call_given", "inputs": {"given": ["model", 0], "tensors": ")" +
      given + R"(", "prefix": "in."}},
          "look": {"class_type": "test.look", "inputs": {"value": ["call", 0]}}})";
  const std::vector<float> made = engine.start(engine.parse(flow), {.fetch = {"call.outputs"}})
                                      .wait()
                                      .floats("call.outputs", "out.0");
  BOOST_TEST(relative_error(made, looked({x.begin(), x.end()}, 0.25, weights)) < 1e-6);

  // A picture, by one device and by two that divide the tokens: the same bytes.
  const auto one = drawn(engine, drawing("looks.safetensors", "euler", "none")),
             two = drawn(engine, drawing("looks.safetensors", "euler", "sequence"));
  BOOST_TEST(one.size() == std::size_t(kTokens * kWidth));
  BOOST_TEST((one == two));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::testing
