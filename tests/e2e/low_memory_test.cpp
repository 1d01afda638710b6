// graphs/low_memory.json with less and less memory for the device of its sampler: the same latents,
// byte for byte, and a refusal that says what the least is.
#include "tests/e2e/low_memory_model.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <fstream>
#include <regex>

#include "tests/fake_device/fake_fixture.h"
#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

struct LowMemory {
  test::TemporaryFolder folder;
  const test::FakeControl control;

  LowMemory() {
    const auto path = folder.path() / test::kLowMemoryFile;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << test::safetensors_bytes(test::low_memory_model());
  }

  // The sampler has a device for itself.
  static std::string flow() {
    std::ifstream file(HEDDLE_SOURCE_DIR "/graphs/low_memory.json");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::string placed =
        std::regex_replace(text, std::regex("\"class_type\": \"(CLIPTextEncode|VAEDecode)\""),
                           "$&, \"device\": \"fake:1\"");
    placed = std::regex_replace(placed, std::regex("\"class_type\": \"KSampler\""),
                                "$&, \"device\": \"fake:0\", \"parallel\": \"none\"");
    placed = std::regex_replace(placed, std::regex("\"(width|height)\": \\d+"), "\"$1\": 64");
    return std::regex_replace(placed, std::regex("\"steps\": \\d+"), "\"steps\": 2");
  }

  struct Drawn {
    std::vector<float> latent;
    std::uint64_t weights = 0;  // made for the sampler's device
    std::string error, plan;
  };
  Drawn draw(std::uint64_t budget) {
    EngineOptions options = test::fake_engine_options({"fake:0", "fake:1"}, R"({"peer": false})");
    options.compute = {{"fake:0", "f32"}, {"fake:1", "f32"}};
    options.model_dirs = {folder.path()};
    options.output_dir = folder.path() / "output";
    if (budget > 0) options.budgets = {{"fake:0", budget}};
    Engine engine(options);
    control->reset();
    Drawn drawn;
    try {
      const Workflow workflow = engine.parse(flow());
      std::ostringstream plan;
      plan << engine.plan(workflow);
      drawn.plan = plan.str();
      drawn.latent = engine.start(workflow, {{}, {"sampler.LATENT"}})
                         .wait()
                         .floats("sampler.LATENT", "samples");
    } catch (const EngineError& error) {
      drawn.error = error.what();
    }
    drawn.weights = control->weights(0);
    return drawn;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(low_memory, LowMemory)

BOOST_AUTO_TEST_CASE(a_model_runs_in_a_tenth_of_its_weights_with_the_same_bytes) {
  std::uint64_t elements = 0;
  for (const test::FileTensor& tensor : test::low_memory_model())
    elements += tensor.bytes.size() / 2;
  constexpr std::uint64_t kActivations = 4 << 20;
  const Drawn resident = draw(0);
  BOOST_TEST_REQUIRE(resident.error == "");
  BOOST_TEST(resident.plan.find("through a ring") == std::string::npos);
  std::uint64_t before = resident.weights;
  for (const double part : {0.6, 0.3, 0.1}) BOOST_TEST_CONTEXT(part) {
      const auto weights = std::uint64_t(double(4 * elements) * part);
      const Drawn drawn = draw(kActivations + weights);
      BOOST_TEST_REQUIRE(drawn.error == "");
      BOOST_TEST(
          (drawn.latent.size() == resident.latent.size() &&
           std::memcmp(drawn.latent.data(), resident.latent.data(), 4 * drawn.latent.size()) == 0));
      BOOST_TEST(drawn.plan.find("each step") != std::string::npos);
      BOOST_TEST(drawn.plan.find("through a staging ring of") != std::string::npos, drawn.plan);
      BOOST_TEST(drawn.weights > before);  // less stays, so more passes
      before = drawn.weights;
    }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_streamed_either_is_refused_with_the_device_and_the_least) {
  const Drawn drawn = draw(1 << 20);
  BOOST_TEST(drawn.error.find("fake:0") != std::string::npos, drawn.error);
  BOOST_TEST(drawn.error.find("1.0 MiB") != std::string::npos, drawn.error);
}

BOOST_AUTO_TEST_SUITE_END()
