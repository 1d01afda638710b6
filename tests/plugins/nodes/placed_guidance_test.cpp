// Guidance spread over devices branch by branch: with areas, masks, times and each patch that the
// sampler applies, the bytes are those of one device.
#include <boost/test/data/test_case.hpp>
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::NodeFixture;

namespace {

struct Guidance {
  std::string name;
  std::string nodes;             // beside those of every flow
  std::string model = "loader";  // what the sampler takes
  std::string positive = "text";
  std::string latent = "empty";
};
std::ostream& operator<<(std::ostream& out, const Guidance& one) { return out << one.name; }

std::string one_node(const std::string& name, const std::string& type, const std::string& inputs) {
  return cat("\"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}, ");
}

Guidance patched_by(const std::string& type, const std::string& inputs = "") {
  return {.name = type,
          .nodes = one_node("patched", type, R"("model": ["loader", 0])" + inputs),
          .model = "patched"};
}

std::vector<Guidance> guidances() {
  const std::string area =
      one_node("part", "ConditioningSetAreaPercentage",
               R"("conditioning": ["more", 0], "width": 0.5, "height": 0.67, "x": 0.5, "y": 0.34,
                  "strength": 0.7)");
  const std::string mask =
      one_node("mask", "SolidMask", R"("value": 0.5, "width": 64, "height": 48)");
  const std::string masked = one_node(
      "part", "ConditioningSetMask",
      R"("conditioning": ["more", 0], "mask": ["mask", 0], "strength": 0.8, "set_cond_area": "default")");
  const std::string late = one_node("part", "ConditioningSetTimestepRange",
                                    R"("conditioning": ["more", 0], "start": 0.5, "end": 1.0)");
  const std::string both =
      one_node("both", "ConditioningCombine",
               R"("conditioning_1": ["text", 0], "conditioning_2": ["part", 0])");
  const std::string layers =
      R"(, "double_layers": "1", "single_layers": "0", "start_percent": 0.0, "end_percent": 0.7)";
  return {{.name = "plain", .nodes = ""},
          {.name = "area", .nodes = area + both, .positive = "both"},
          {.name = "mask", .nodes = mask + masked + both, .positive = "both"},
          {.name = "times", .nodes = late + both, .positive = "both"},
          {.name = "noise mask",
           .nodes = mask +
                    one_node("masked", "SetLatentNoiseMask",
                             R"("samples": ["empty", 0], "mask": ["mask", 0])") +
                    patched_by("DifferentialDiffusion").nodes,
           .model = "patched",
           .latent = "masked"},
          patched_by("RescaleCFG", R"(, "multiplier": 0.7)"),
          patched_by("PerpNeg", R"(, "empty_conditioning": ["more", 0], "neg_scale": 1.5)"),
          patched_by("SkipLayerGuidanceDiT", layers + R"(, "scale": 2.5, "rescaling_scale": 0.1)"),
          patched_by("SkipLayerGuidanceDiTSimple", layers),
          patched_by("SkipLayerGuidanceSD3", R"(, "layers": "0, 1", "scale": 2.0)"),
          patched_by("APG"),
          patched_by("CFGNorm"),
          patched_by("CFGZeroStar"),
          patched_by("CFGOverride", R"(, "cfg": 2.0, "start_percent": 0.5, "end_percent": 1.0)"),
          patched_by("Epsilon Scaling"),
          patched_by("Mahiro"),
          patched_by("RenormCFG"),
          patched_by("TCFG"),
          patched_by("TemporalScoreRescaling"),
          patched_by("VideoLinearCFGGuidance", R"(, "min_cfg": 1.5)"),
          patched_by("VideoTriangleCFGGuidance", R"(, "min_cfg": 1.5)"),
          patched_by("ContextWindowsManual", R"(, "context_length": 3, "context_overlap": 1,
                     "context_schedule": "standard_uniform", "dim": 2, "freenoise": true)"),
          patched_by("EasyCache"),
          patched_by("LazyCache")};
}

struct PlacedGuidance : NodeFixture {
  const heddle::test::FakeControl control;

  static std::string flow(const Guidance& one, bool is_spread) {
    return cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["loader", 1]}},
      "more": {"class_type": "CLIPTextEncode", "inputs": {"text": "by the sea", "clip": ["loader", 1]}},
      "not": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["loader", 1]}},
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 2}}, )",
        one.nodes, R"("out": {"class_type": "KSampler", "inputs": {"model": [")", one.model,
        R"(", 0], "seed": 1, "steps": 4, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple",
        "positive": [")",
        one.positive, R"(", 0], "negative": ["not", 0], "latent_image": [")", one.latent,
        R"(", 0], "denoise": 1.0})",
        is_spread ? R"(, "parallel": "cfg", "device": "fake:0,fake:1")" : R"(, "device": "fake:0")",
        R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  EngineOptions two_devices() const {
    EngineOptions options = heddle::test::fake_engine_options({"fake:0", "fake:1"});
    options.compute = {{"fake", "f32"}};
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    options.cache_bytes = 1;  // else the second would be the first
    return options;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_guidance, PlacedGuidance, *boost::unit_test::label("long"))

BOOST_DATA_TEST_CASE_F(PlacedGuidance, branches_on_two_devices_give_the_same_bytes, guidances(),
                       one) {
  Engine engine(two_devices());
  std::vector<float> drawn[2];
  for (const bool is_spread : {false, true}) {
    const heddle::Workflow workflow = engine.parse(flow(one, is_spread));
    drawn[is_spread] =
        engine.start(workflow, {{}, {"out.LATENT"}}).wait().floats("out.LATENT", "samples");
    if (!is_spread) continue;
    const std::string plan = engine.plan(workflow);
    BOOST_TEST(plan.find("cfg over fake:0, fake:1") != std::string::npos, plan);
  }
  BOOST_REQUIRE(drawn[0].size() == drawn[1].size());
  BOOST_TEST(std::memcmp(drawn[0].data(), drawn[1].data(), drawn[0].size() * sizeof(float)) == 0);
}

BOOST_AUTO_TEST_SUITE_END()
