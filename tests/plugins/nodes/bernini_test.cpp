// BerniniConditioning, and what a model of Wan draws that looks at its sources, against PyTorch
// (../goldens/make_wan_sources_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/placed_fixture.h"

using namespace heddle::test;
using heddle::engine::cat;

namespace {

struct BerniniNodes : PlacedFixture {
  const std::filesystem::path golden =
      tests_folder() / "plugins/goldens/wan_sources/expected.safetensors";
  TensorFile expected{golden};

  BerniniNodes() {
    add("diffusion_models/flow", seeded_model("flow", true, "wan_sources"));
    add("vae/wan_2.1_vae", seeded_model("qwen_image.vae"));
  }
  static std::string node_of(const std::string& name, const std::string& type,
                             const std::string& inputs) {
    return cat(", \"", name, R"(": {"class_type": ")", type, R"(", "inputs": {)", inputs, "}}");
  }
  static constexpr const char* kGiven[] = {"source", "inserted", "first", "others"};
  std::string nodes() const {
    std::string all = cat(loaded("flow"), R"(, "one": )", text("one", golden), R"(, "two": )",
                          text("two", golden),
                          node_of("vae", "VAELoader", R"("vae_name": "wan_2.1_vae.safetensors")"));
    for (const char* name : kGiven)
      all += node_of(name, "test.image",
                     cat(R"("path": ")", golden.string(), R"(", "name": ")", name, "\""));
    return all;
  }
  static std::string looking(const std::string& more, int length = 9) {
    return node_of("node", "BerniniConditioning",
                   cat(R"("positive": ["one", 0], "negative": ["two", 0], "vae": ["vae", 0],
                          "width": 64, "height": 32, "batch_size": 1, "length": )",
                       length, more));
  }
  static constexpr const char* kAll =
      R"(, "source_video": ["source", 0], "reference_video": ["inserted", 0], "ref_max_size": 48,
         "reference_images.reference_image_0": ["first", 0], "reference_images.reference_image_3":
         ["others", 0])";
  static constexpr const char* kSource = R"(, "source_video": ["source", 0])";

  std::string drawn(const std::string& node, const std::string& hints = "") const {
    return cat("{", nodes(), node,
               R"(, "out": {"class_type": "KSampler", "inputs": {"model": ["model", 0], "seed": 7,
                "steps": 3, "cfg": 3.0, "sampler_name": "euler", "scheduler": "simple", "positive":
                ["node", 0], "negative": ["node", 1], "latent_image": ["node", 2], "denoise": 1.0})",
               hints, "}, ", kLook, "}");
  }
  // Of texts and pictures that are known before a run.
  static std::string known(std::string flow) {
    for (const char* name : {"one", "two"}) {
      const std::string begin = cat("\"", name, R"(": {"class_type": "test.)");
      flow.insert(flow.find(begin) + begin.size(), "given_");
    }
    for (const char* name : kGiven) {
      const std::size_t from = flow.find(cat("\"", name, R"(": {)")),
                        to = flow.find("}}", from) + 2;
      flow.replace(from, to - from, cat("\"", name, R"(": {"class_type": "EmptyImage", "inputs":
          {"width": 36, "height": 20, "batch_size": 6, "color": 16711680}})"));
    }
    return flow;
  }
  void compare(const std::vector<float>& made, const std::string& name) {
    const double error = relative_error(made, expected.floats(name));
    BOOST_TEST_MESSAGE(name << ": relative error " << error << ", " << -20 * std::log10(error)
                            << " dB");
    BOOST_TEST(error < kTolerance, name << ": relative error " << error);
  }
  std::vector<float> latent_of(const std::string& flow) {
    return run_whole(flow, {"out.LATENT"}).floats("out.LATENT", "samples");
  }
  void refused(const std::string& flow, std::initializer_list<const char*> words) {
    const std::string text = engine_refusal([&] { run_whole(flow, {}); });
    for (const char* word : words)
      BOOST_TEST(text.find(word) != std::string::npos, "'" << word << "' is not in: " << text);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bernini_nodes, BerniniNodes)

BOOST_AUTO_TEST_CASE(sources_are_encoded_one_by_one_in_their_own_sizes) {
  for (const int output : {0, 1}) {
    const heddle::Results results = run_whole(
        cat("{", nodes(), looking(kAll),
            R"(, "entry": {"class_type": "test.first", "inputs": {"list": ["node", )", output,
            R"(]}}, "look": {"class_type": "test.look", "inputs": {"value": ["entry", 0]}}})"),
        {"entry.value"});
    for (int k = 0; k < 5; ++k)
      compare(results.floats("entry.value", cat("context_latents.", k)), cat("latents.", k));
  }
}

BOOST_AUTO_TEST_CASE(a_video_that_looks_at_sources_equals_pytorch) {
  compare(latent_of(drawn(looking(kAll))), "latent");
}

BOOST_AUTO_TEST_CASE(a_picture_that_is_changed_equals_pytorch) {
  compare(latent_of(drawn(looking(kSource, 1))), "edited.latent");
}

BOOST_AUTO_TEST_CASE(dividing_a_video_with_sources_keeps_its_bytes_or_nearly_its_numbers,
                     *boost::unit_test::label("long")) {
  const std::string flow = known(drawn(looking(kAll)));
  const std::vector<float> of_one = draw(options_for({"cpu:0"}), flow);
  const auto divided = [&](const char* mode) {
    return draw(options_for({"fake:0", "fake:1"}),
                known(drawn(looking(kAll),
                            cat(R"(, "parallel": ")", mode, R"(", "device": "fake:0,fake:1")"))));
  };
  for (const char* mode : {"layers", "cfg"}) BOOST_TEST(are_equal(of_one, divided(mode)), mode);
  BOOST_TEST(are_equal(of_one, draw(options_for({"fake:0"}, std::uint64_t{16} << 20), flow)),
             "little memory");
  for (const char* mode : {"sequence", "tensor"}) {
    const double error = relative_error(divided(mode), of_one);
    BOOST_TEST_MESSAGE(mode << ": relative error " << error);
    BOOST_TEST(error < kTolerance, mode << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(a_video_with_sources_is_told_before_a_run) {
  for (const char* more : {"", kSource, kAll}) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    check_inference(data, known(drawn(looking(more))));
  }
}

// And not of the last one.
BOOST_AUTO_TEST_CASE(the_memory_of_the_largest_source_is_told) {
  const auto told = [&](const char* more) {
    heddle::Engine::Data data(options_for({"cpu:0"}));
    return infer_and_run(data, known(drawn(looking(more)))).inferred.host_scratch.at("node");
  };
  BOOST_TEST(told(kAll) >= told(kSource));
  BOOST_TEST(told(kSource) >= sizeof(float) * 5 * 32 * 64 * 3);
}

BOOST_AUTO_TEST_CASE(models_that_look_at_nothing_refuse_sources) {
  add("diffusion_models/humo", seeded_model("silent", true, "wan_humo"));
  std::string other = drawn(looking(kSource));
  const std::string name = "flow.safetensors";
  refused(other.replace(other.find(name), name.size(), "humo.safetensors"),
          {"BerniniConditioning", "Use a model of Bernini"});
  std::string windows = drawn(looking(kSource));
  const std::string model = R"("inputs": {"model": ["model", 0])";
  windows.replace(windows.find(model), model.size(), R"("inputs": {"model": ["windows", 0])");
  refused(windows.insert(1, R"("windows": {"class_type": "WanContextWindowsManual", "inputs":
              {"model": ["model", 0], "context_length": 5, "context_overlap": 1, "context_schedule":
              "standard_static", "context_stride": 1, "closed_loop": false, "fuse_method":
              "pyramid", "freenoise": false}}, )"),
          {"BerniniConditioning", "context windows"});
}

BOOST_AUTO_TEST_SUITE_END()
