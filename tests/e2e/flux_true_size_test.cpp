// ComfyUI's four FLUX workflows, unmodified, over files of the true size: they bind and plan
// without a weight being read, and the plan describes all that the published models hold.
#include <boost/test/unit_test.hpp>
#include <map>

#include "engine/base/json.h"
#include "tests/e2e/flux_folder.h"

using namespace heddle::test;

namespace {

// Numbers of parameters as the publishers state them.
constexpr std::uint64_t kDev = 11'901'408'320, kSchnell = 11'891'178'560, kClip = 123'060'480,
                        kT5 = 4'762'310'656, kAutoencoder = 83'819'683;
constexpr std::uint64_t kClipProjection = 768 * 768;

struct TrueSize {
  FluxFolder folder{FluxFolder::Content::header_only};
  heddle::Engine engine{folder.options()};

  // Bytes of weights by output and field, as the plan tells them.
  std::map<std::string, std::uint64_t> weights(const std::string& workflow) const {
    const heddle::engine::Json plan = heddle::engine::parse_json(
        engine.plan_json(FluxFolder::load(engine, workflow)), workflow + ".plan");
    std::map<std::string, std::uint64_t> bytes;
    for (const heddle::engine::Json& model : plan.find("models")->as_array())
      bytes[model.find("output")->as_string()] = model.find("weight_bytes")->as_uint64();
    return bytes;
  }
};

// What belongs to one output, whatever its parts are called: "30.CLIP".
std::uint64_t sum_of(const std::map<std::string, std::uint64_t>& weights, const std::string& of) {
  std::uint64_t sum = 0;
  for (const auto& [output, bytes] : weights)
    if (output == of || output.starts_with(of + ".")) sum += bytes;
  return sum;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(flux_of_the_true_size, TrueSize)

BOOST_AUTO_TEST_CASE(the_files_hold_as_many_parameters_as_were_published) {
  const FluxSize size;
  BOOST_TEST(bytes_of(flux_transformer(size, Guidance::embedded, "BF16")) == 2 * kDev);
  BOOST_TEST(bytes_of(flux_transformer(size, Guidance::none, "BF16")) == 2 * kSchnell);
  BOOST_TEST(bytes_of(flux_clip(size, "F16")) == 2 * kClip);
  const std::uint64_t table = std::uint64_t(size.t5_vocabulary) * std::uint64_t(size.t5_width);
  BOOST_TEST(bytes_of(flux_t5(size, "F16")) == 2 * (kT5 + table));
  BOOST_TEST(bytes_of(flux_autoencoder(size, "F32")) == 4 * kAutoencoder);
}

BOOST_AUTO_TEST_CASE(the_workflows_bind_without_an_error_or_a_warning) {
  for (const char* name : kFluxWorkflows) {
    const heddle::Engine::Problems problems = engine.check(FluxFolder::load(engine, name));
    BOOST_TEST(problems.errors == std::vector<std::string>{}, boost::test_tools::per_element());
    BOOST_TEST(problems.warnings == std::vector<std::string>{}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_plan_gives_every_node_a_place) {
  for (const char* name : kFluxWorkflows) {
    const heddle::Workflow flow = FluxFolder::load(engine, name);
    const heddle::engine::Json workflow = heddle::engine::parse_json(flow.text(), name);
    const heddle::engine::Json plan = heddle::engine::parse_json(engine.plan_json(flow), "plan");
    std::map<std::string, std::string> devices;
    for (const heddle::engine::Json& step : plan.find("steps")->as_array())
      if (step.find("kind")->as_string() == "run")
        devices[step.find("node")->as_string()] = step.find("device")->as_string();
    const heddle::engine::Json* nodes = workflow.find("prompt");
    for (const auto& node : (nodes == nullptr ? workflow : *nodes).members())
      BOOST_TEST(devices.contains(node.key), name << ": node " << node.key << " has no step");
    for (const auto& [node, device] : devices)
      BOOST_TEST((device == "host" || device == "cpu:0"), name << ": " << node << " on " << device);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_describes_the_weights_of_separate_files) {
  for (const auto& [name, parameters] :
       {std::pair("flux_dev", kDev), std::pair("flux_schnell", kSchnell)}) {
    const auto bytes = weights(name);
    BOOST_TEST(sum_of(bytes, "12.MODEL") == 2 * parameters);
    BOOST_TEST(sum_of(bytes, "11.CLIP") == 2 * (kClip + kT5));
    BOOST_TEST(sum_of(bytes, "10.VAE") == 4 * kAutoencoder);
  }
}

BOOST_AUTO_TEST_CASE(a_plan_describes_the_weights_of_a_whole_checkpoint) {
  for (const auto& [name, parameters] :
       {std::pair("flux_dev_checkpoint", kDev), std::pair("flux_schnell_checkpoint", kSchnell)}) {
    const auto bytes = weights(name);
    BOOST_TEST(sum_of(bytes, "30.MODEL") == parameters);
    BOOST_TEST(sum_of(bytes, "30.CLIP") == 2 * (kClip + kClipProjection) + kT5);
    BOOST_TEST(sum_of(bytes, "30.VAE") == 4 * kAutoencoder);
  }
}

BOOST_AUTO_TEST_CASE(a_folder_without_the_files_is_told_about_before_anything_runs) {
  std::filesystem::remove(folder.models() / "vae/ae.safetensors");
  const auto problems = engine.check(FluxFolder::load(engine, "flux_dev"));
  BOOST_REQUIRE(problems.errors.size() == 1u);
  BOOST_TEST(problems.errors[0].find("there is no file 'ae.safetensors' in 'vae'") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
