// Normalized Attention Guidance on several devices and with little memory: the same bytes; and what
// is told before a run.
#include <cmath>
#include <cstring>

#include "engine/base/text.h"
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using heddle::engine::cat;
using heddle::test::check_inference;
using heddle::test::NodeFixture;

namespace {

// Two devices, a batch of two, an odd latent, and texts as encoders make them.
struct PlacedNag : NodeFixture {
  const heddle::test::FakeControl control;

  static std::string flow(const std::string& hints, const std::string& sampler = "euler") {
    return cat(
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
      "nag": {"class_type": "NAGuidance", "inputs": {"model": ["loader", 0], "nag_scale": 3.0,
        "nag_alpha": 0.5, "nag_tau": 2.0}},
      "text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house", "clip": ["loader", 1]}},
      "not": {"class_type": "ConditioningZeroOut", "inputs": {"conditioning": ["text", 0]}},
      "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 72, "height": 56, "batch_size": 2}},
      "out": {"class_type": "KSampler", "inputs": {"model": ["nag", 0], "seed": 1, "steps": 4,
        "cfg": 2.0, "sampler_name": ")",
        sampler, R"(", "scheduler": "simple", "positive": ["text", 0], "negative": ["not", 0],
        "latent_image": ["empty", 0], "denoise": 1.0})",
        hints, R"(}, "look": {"class_type": "test.look", "inputs": {"value": ["out", 0]}}})");
  }
  static std::string split(const std::string& mode) {
    return cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")");
  }
  EngineOptions options_for(std::vector<std::string> devices, std::uint64_t budget = 0) const {
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    EngineOptions options = heddle::test::engine_options();
    if (kind == "fake") options.plugin_dirs.push_back(heddle::test::kFakePlugin);
    if (budget > 0) options.budgets = {{devices.front(), heddle::MemorySize{budget}}};
    options.devices = std::move(devices);
    options.compute = {{kind, "f32"}};
    options.reference_kernels = true;
    options.model_dirs = {folder / "models"};
    options.output_dir = folder / "placed";
    return options;
  }
  std::vector<float> draw(EngineOptions options, const std::string& hints = "",
                          const std::string& sampler = "euler") {
    Engine engine(std::move(options));
    warnings.clear();
    const auto observe = [this](const heddle::Event& event) {
      if (event.kind == heddle::Event::Kind::warning) warnings.emplace_back(event.text);
    };
    return engine.start(engine.parse(flow(hints, sampler)), {observe, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  }
  // The random transformer eight times as wide, with other numbers: devices divide no smaller
  // matrices.
  static std::vector<heddle::test::FileTensor> wide_transformer() {
    std::vector<heddle::test::FileTensor> tensors;
    std::uint32_t state = 1;
    const heddle::test::TensorFile narrow(random() / "flux_diffusers.safetensors");
    for (const auto& [name, entry] : narrow.entries()) {
      heddle::test::FileTensor tensor{name, "F32", entry.shape};
      std::int64_t count = 1;
      for (std::int64_t& side : tensor.shape) {
        // Latents, texts and the timestep's waves keep their widths.
        const bool is_given = side == 16 || side == 24 || side == 32 || side == 256;
        count *= side *= is_given ? 1 : 8;
      }
      const bool is_matrix = tensor.shape.size() > 1;
      const float size = is_matrix ? std::sqrt(12.0f / float(tensor.shape.back())) : 0.2f;
      std::vector<float> values(
          std::size_t(count), name.find("norm_") != std::string::npos && !is_matrix ? 1.0f : 0.0f);
      for (float& value : values) {
        state = state * 1664525u + 1013904223u;
        value += (float(state >> 8) / float(1u << 24) - 0.5f) * size;
      }
      tensor.bytes = heddle::test::bytes_of_floats(values);
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  static bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(placed_attention_guidance, PlacedNag)

BOOST_AUTO_TEST_CASE(guided_attention_has_the_same_bytes_however_the_model_is_placed,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"cpu:0"}));
  BOOST_TEST(warnings.empty());
  BOOST_TEST(same_bytes(alone, draw(options_for({"fake:0"}))), "fake:0");
  BOOST_TEST(same_bytes(alone, draw(options_for({"fake:0", "fake:1"}))), "as planned");
  for (const char* mode : {"layers", "data", "data+layers"}) {
    EngineOptions options = options_for({"fake:0", "fake:1"});
    if (std::string(mode) == "data+layers")
      options = options_for({"fake:0", "fake:1", "fake:2", "fake:3"});
    std::string hints = split(mode);
    if (std::string(mode) == "data+layers")
      hints = R"(, "parallel": "data+layers", "device": "fake:0,fake:1,fake:2,fake:3")";
    BOOST_TEST(same_bytes(alone, draw(options, hints)), mode);
  }
}

BOOST_AUTO_TEST_CASE(tokens_on_two_devices_are_guided_all_the_same) {
  const double error = heddle::test::relative_error(
      draw(options_for({"fake:0", "fake:1"}), split("sequence")), draw(options_for({"cpu:0"})));
  BOOST_TEST(error < 1e-5, "relative error " << error);
}

// Each device has some of the heads, and the norms are of all of them.
BOOST_AUTO_TEST_CASE(devices_that_divide_heads_agree_on_the_norms) {
  heddle::test::write_safetensors(folder / "models/diffusion_models/wide.safetensors",
                                  wide_transformer());
  const auto drawn = [&](std::vector<std::string> devices, const std::string& mode) {
    EngineOptions options = options_for(std::move(devices));
    options.reference_kernels = false;
    Engine engine(options);
    std::string sampler = ksampler(R"("model": ["nag", 0], "steps": 2)");
    if (mode == "tensor")
      sampler.insert(sampler.size() - 1, R"(, "parallel": "tensor", "device": "cpu:0,cpu:1")");
    std::string text =
        workflow(R"("nag": {"class_type": "NAGuidance", "inputs": {"model": ["model", 0],
                   "nag_scale": 3.0, "nag_alpha": 0.5, "nag_tau": 2.0}}, "out": )" +
                 sampler + ", " + kLook);
    const std::string plain = "plain.safetensors";
    text.replace(text.find(plain), plain.size(), "wide.safetensors");
    return engine.start(engine.parse(text), {{}, {"out.LATENT"}})
        .wait()
        .floats("out.LATENT", "samples");
  };
  const double error =
      heddle::test::relative_error(drawn({"cpu:0", "cpu:1"}, "tensor"), drawn({"cpu:0"}, "none"));
  BOOST_TEST(error > 0.0);  // sums are taken in another order
  BOOST_TEST(error < 1e-4, "relative error " << error);
}

// A pair is one branch of the call, which devices do not divide by branches.
BOOST_AUTO_TEST_CASE(a_pair_stays_on_one_device) {
  Engine engine(options_for({"fake:0", "fake:1"}));
  const std::string plan = engine.plan(engine.parse(flow("")));
  BOOST_TEST(plan.find("4 steps of 1 branch") != std::string::npos, plan);
  BOOST_TEST(plan.find("cfg over") == std::string::npos, plan);
  const std::string said =
      heddle::test::engine_refusal([&] { engine.start(engine.parse(flow(split("cfg")))).wait(); });
  BOOST_TEST(said.find("the call has one branch") != std::string::npos, said);
}

BOOST_AUTO_TEST_CASE(guided_attention_has_the_same_bytes_in_little_memory,
                     *boost::unit_test::label("long")) {
  const std::vector<float> alone = draw(options_for({"fake:0"}));
  int drawn = 0;
  for (const std::uint64_t kilobytes : {3000, 2000, 1500, 1250, 1000, 800, 600}) {
    try {
      const std::vector<float> little = draw(options_for({"fake:0"}, kilobytes << 10));
      ++drawn;
      BOOST_TEST(same_bytes(alone, little), kilobytes << " KiB");
    } catch (const heddle::EngineError& error) {
      BOOST_TEST_MESSAGE(kilobytes << " KiB: " << error.what());
      break;
    }
  }
  BOOST_TEST(drawn > 2);
}

BOOST_AUTO_TEST_CASE(samplers_with_several_evaluations_have_the_same_bytes,
                     *boost::unit_test::label("long")) {
  for (const char* sampler : {"heun", "dpmpp_2m_sde", "euler_cfg_pp"})
    BOOST_TEST(same_bytes(draw(options_for({"cpu:0"}), "", sampler),
                          draw(options_for({"fake:0", "fake:1"}), split("layers"), sampler)),
               sampler);
}

// Of entries with an area and without, some of which have another number of tokens.
BOOST_AUTO_TEST_CASE(what_is_asked_of_pairs_is_told_before) {
  Engine::Data engine(options_for({"cpu:0"}));
  check_inference(engine, flow(""));
  std::string areas = flow("");
  const std::string positive = R"("positive": ["text", 0])";
  areas.replace(areas.find(positive), positive.size(), R"("positive": ["both", 0])");
  areas.insert(1, R"("long": {"class_type": "ConditioningConcat", "inputs":
                       {"conditioning_to": ["text", 0], "conditioning_from": ["text", 0]}},
      "part": {"class_type": "ConditioningSetAreaPercentage", "inputs": {"conditioning": ["text", 0],
        "width": 0.5, "height": 0.67, "x": 0.5, "y": 0.34, "strength": 0.7}},
      "some": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["text", 0],
        "conditioning_2": ["part", 0]}},
      "both": {"class_type": "ConditioningCombine", "inputs": {"conditioning_1": ["some", 0],
        "conditioning_2": ["long", 0]}}, )");
  Engine::Data again(options_for({"cpu:0"}));
  check_inference(again, areas);
}

BOOST_AUTO_TEST_CASE(numbers_of_16_bits_are_guided_nearly_as_those_of_32) {
  EngineOptions options = options_for({"cpu:0"});
  const std::vector<float> exact = draw(options);
  options.compute[heddle::test::test_device_kind()] = "bf16";
  options.reference_kernels = false;
  const double error = heddle::test::relative_error(draw(options), exact);
  BOOST_TEST(error > 0.0);
  BOOST_TEST(error < 0.1, "relative error " << error);
}

BOOST_AUTO_TEST_SUITE_END()
