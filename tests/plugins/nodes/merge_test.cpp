// Merged models over the tiny ones: a model and the same with a LoRA, which is a model whose merges
// are known. The bytes of sums are held in tests/engine/memory/merged_weights_test.cpp.
#include "tests/fake_device/fake_fixture.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::Engine;
using heddle::EngineOptions;
using namespace heddle::test;

namespace {

constexpr double kSameSum = 1e-5;  // in another order

struct MergeFixture : NodeFixture {
  EngineOptions options_on(std::vector<std::string> devices) const {
    EngineOptions result = engine_options();
    const std::string kind = devices.front().substr(0, devices.front().find(':'));
    if (kind == "fake") result.plugin_dirs.push_back(kFakePlugin);
    result.devices = std::move(devices);
    result.compute = {{kind, "f32"}};
    result.reference_kernels = true;
    result.model_dirs = {folder / "models"};
    result.output_dir = folder / "out";
    return result;
  }
  Engine exact{options_on({"cpu:0"})};

  // "plain" and "with", its LoRA at full strength; what a test adds ends in "merged".
  static std::string flow(const std::string& nodes, const std::string& hints = "") {
    return R"({"plain": {"class_type": "UNETLoader", "inputs": {"unet_name": "guided.safetensors", "weight_dtype": "default"})" +
           hints + R"(},
      "with": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["plain", 0], "lora_name": "diffusers.safetensors",
        "strength_model": 1.0}}, )" +
           nodes +
           R"(, "out": {"class_type": "test.call_given", "inputs": {"given": ["merged", 0], "tensors": ")" +
           (random() / "expected.safetensors").string() + R"(", "prefix": "flux."}}, )" + kLook +
           "}";
  }
  static std::string lora(double strength) {
    return R"("merged": {"class_type": "LoraLoaderModelOnly", "inputs": {"model": ["plain", 0],
      "lora_name": "diffusers.safetensors", "strength_model": )" +
           std::to_string(strength) + "}}";
  }
  // Of the encoders alone.
  static std::string clip_lora(const std::string& name, double strength) {
    return "\"" + name + R"(": {"class_type": "LoraLoader", "inputs": {"model": ["loader", 0],
      "clip": ["loader", 1], "lora_name": "kohya.safetensors", "strength_model": 0.0,
      "strength_clip": )" +
           std::to_string(strength) + "}}";
  }
  static std::string merge(const std::string& type, const std::string& rest,
                           const std::string& second = "with", const std::string& name = "merged",
                           const std::string& first = "plain") {
    return "\"" + name + R"(": {"class_type": ")" + type + R"(", "inputs": {"model1": [")" + first +
           R"(", 0], "model2": [")" + second + "\", 0]" + rest + "}}";
  }
  // Every ratio of ModelMergeFlux1; those that begin with `prefix` are `ratio`, the others 1.
  static std::string blocks(const std::string& prefix, double ratio) {
    std::string inputs;
    const auto add = [&](const std::string& name) {
      inputs += ", \"" + name + "\": " + std::to_string(name.starts_with(prefix) ? ratio : 1.0);
    };
    for (const char* name : {"img_in.", "time_in.", "guidance_in", "vector_in.", "txt_in."})
      add(name);
    for (int i = 0; i < 19; ++i) add("double_blocks." + std::to_string(i) + ".");
    for (int i = 0; i < 38; ++i) add("single_blocks." + std::to_string(i) + ".");
    add("final_layer.");
    return inputs;
  }
  static std::vector<float> evaluate_on(Engine& engine, const std::string& text) {
    return engine.start(engine.parse(text), {{}, {"out.outputs"}})
        .wait()
        .floats("out.outputs", "out.1");
  }
  std::vector<float> evaluate(const std::string& nodes) { return evaluate_on(exact, flow(nodes)); }
  void check_same(const std::vector<float>& is, const std::vector<float>& expected) {
    const double error = relative_error(is, expected);
    BOOST_TEST(error < kSameSum, "relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(merging, MergeFixture)

BOOST_AUTO_TEST_CASE(a_share_of_a_model_with_a_lora_is_a_share_of_the_lora) {
  check_same(evaluate(merge("ModelMergeSimple", ", \"ratio\": 0.25")), evaluate(lora(0.75)));
  BOOST_TEST((evaluate(merge("ModelMergeSimple", ", \"ratio\": 1.0")) == evaluate(lora(0))));
  // A UNet's blocks are not FLUX's: the first ratio counts.
  check_same(
      evaluate(merge("ModelMergeBlocks", ", \"input\": 0.25, \"middle\": 1.0, \"out\": 1.0")),
      evaluate(lora(0.75)));
}

BOOST_AUTO_TEST_CASE(a_difference_added_to_the_model_is_the_other_model) {
  check_same(
      evaluate(merge("ModelMergeSubtract", ", \"multiplier\": 1.0", "plain", "less", "with") +
               ", " + merge("ModelMergeAdd", "", "less")),
      evaluate(lora(1)));
}

BOOST_AUTO_TEST_CASE(every_block_of_flux_has_a_ratio_of_its_own) {
  const std::vector<float> plain = evaluate(lora(0)), with = evaluate(lora(1));
  BOOST_TEST((evaluate(merge("ModelMergeFlux1", blocks("none", 0))) == plain));
  check_same(evaluate(merge("ModelMergeFlux1", blocks("", 0))), with);
  const std::vector<float> one = evaluate(merge("ModelMergeFlux1", blocks("double_blocks.0.", 0)));
  BOOST_TEST(relative_error(one, plain) > 1e-4);
  BOOST_TEST(relative_error(one, with) > 1e-4);
  // Block by block, one merge after the other.
  check_same(
      evaluate(merge("ModelMergeFlux1", blocks("double_blocks.", 0), "with", "doubles") + ", " +
               merge("ModelMergeFlux1", blocks("single_blocks.", 0), "with", "singles", "doubles") +
               ", " +
               merge("ModelMergeFlux1", blocks("final_layer.", 0), "with", "last", "singles") +
               ", " + merge("ModelMergeFlux1", blocks("time_in.", 0), "with", "time", "last") +
               ", " + merge("ModelMergeFlux1", blocks("vector_in.", 0), "with", "vector", "time") +
               ", " + merge("ModelMergeFlux1", blocks("img_in.", 0), "with", "img", "vector") +
               ", " + merge("ModelMergeFlux1", blocks("guidance_in", 0), "with", "guided", "img") +
               ", " + merge("ModelMergeFlux1", blocks("txt_in.", 0), "with", "merged", "guided")),
      with);
}

BOOST_AUTO_TEST_CASE(blocks_that_a_model_has_not_leave_the_first_ratio) {
  std::string inputs = ", \"time_embed.\": 0.25, \"label_emb.\": 1.0, \"out.\": 1.0";
  for (const auto& [name, count] :
       {std::pair("input_blocks.", 12), {"middle_block.", 3}, {"output_blocks.", 12}})
    for (int i = 0; i < count; ++i)
      inputs += ", \"" + std::string(name) + std::to_string(i) + ".\": 1.0";
  check_same(evaluate(merge("ModelMergeSD1", inputs)), evaluate(lora(0.75)));
}

BOOST_AUTO_TEST_CASE(text_encoders_are_merged_each_with_its_like) {
  const auto encoded = [&](const std::string& nodes) {
    const auto called = [](const char* prefix) {
      return R"({"class_type": "test.call_given", "inputs": {"given": ["merged", 0], "tensors": ")" +
             (random() / "expected.safetensors").string() + R"(", "prefix": ")" + prefix + "\"}}";
    };
    const std::string text =
        R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}}, )" +
        clip_lora("with", 1) + ", " + nodes + R"(, "out": )" + called("clip.") + R"(, "t5": )" +
        called("t5.") +
        R"(, "look2": {"class_type": "test.look", "inputs": {"value": ["t5", 0]}}, )" + kLook + "}";
    const heddle::Results results =
        exact.start(exact.parse(text), {{}, {"out.outputs", "t5.outputs"}}).wait();
    std::vector<float> all = results.floats("out.outputs", "penultimate.0");
    for (const float number : results.floats("t5.outputs", "last_hidden.0")) all.push_back(number);
    return all;
  };
  const auto merged = [](const std::string& type, const std::string& rest,
                         const std::string& first = R"(["loader", 1])",
                         const std::string& second = R"(["with", 1])",
                         const std::string& name = "merged") {
    return "\"" + name + R"(": {"class_type": ")" + type + R"(", "inputs": {"clip1": )" + first +
           R"(, "clip2": )" + second + rest + "}}";
  };
  // A LoraLoader's CLIP is its second output.
  const auto lora_of = [&](double strength) {
    return clip_lora("some", strength) + ", " +
           merged("CLIPMergeSimple", ", \"ratio\": 1.0", R"(["some", 1])", R"(["loader", 1])");
  };
  check_same(encoded(merged("CLIPMergeSimple", ", \"ratio\": 0.25")), encoded(lora_of(0.75)));
  BOOST_TEST((encoded(merged("CLIPMergeSimple", ", \"ratio\": 1.0")) == encoded(lora_of(0))));
  BOOST_TEST(relative_error(encoded(lora_of(0)), encoded(lora_of(0.75))) > 1e-3);
  check_same(encoded(merged("CLIPMergeSubtract", ", \"multiplier\": 1.0", R"(["with", 1])",
                            R"(["loader", 1])", "less") +
                     ", " + merged("CLIPMergeAdd", "", R"(["loader", 1])", R"(["less", 0])")),
             encoded(lora_of(1)));
  // What queries have more keys have less; T5's matrices have other names.
  const auto attention = [](const char* q, const char* k, const char* v) {
    return R"("merged": {"class_type": "CLIPAttentionMultiply", "inputs": {"clip": ["loader", 1], "q": )" +
           std::string(q) + ", \"k\": " + k + ", \"v\": " + v + ", \"out\": 1.0}}";
  };
  BOOST_TEST((encoded(attention("2.0", "0.5", "1.0")) == encoded(lora_of(0))));
  BOOST_TEST(relative_error(encoded(attention("1.0", "1.0", "2.0")), encoded(lora_of(0))) > 1e-3);
}

BOOST_AUTO_TEST_CASE(attention_of_unets_is_not_that_of_transformers) {
  for (const std::string type : {"UNetSelfAttentionMultiply", "UNetCrossAttentionMultiply"})
    BOOST_TEST((evaluate("\"merged\": {\"class_type\": \"" + type +
                         R"(", "inputs": {"model": ["plain", 0], "q": 2.0, "k": 2.0, "v": 2.0,
                            "out": 2.0}})") == evaluate(lora(0))));
}

BOOST_AUTO_TEST_CASE(the_bytes_do_not_depend_on_where_a_merged_model_runs) {
  const std::string merged = merge("ModelMergeSimple", ", \"ratio\": 0.25");
  const std::vector<float> alone = evaluate(merged);
  for (const std::string kind : {"cpu", "fake"}) {
    const std::string list = kind + ":0," + kind + ":1";
    Engine two(options_on({kind + ":0", kind + ":1"}));
    BOOST_TEST((evaluate_on(two, flow(merged, R"(, "parallel": "layers", "device": ")" + list +
                                                  "\"")) == alone),
               "layers on " << list);
  }
}

BOOST_AUTO_TEST_CASE(devices_that_divide_matrices_merge_each_their_own_rows_and_columns) {
  const std::string merged = merge("ModelMergeSimple", ", \"ratio\": 0.25");
  Engine two(options_on({"cpu:0", "cpu:1"}));
  check_same(evaluate_on(two, flow(merged, R"(, "parallel": "tensor", "device": "cpu:0,cpu:1")")),
             evaluate(merged));
}

BOOST_AUTO_TEST_CASE(a_merged_model_is_streamed_as_any_other) {
  const std::string text = flow(merge("ModelMergeSimple", ", \"ratio\": 0.25"));
  const FakeControl control;
  const auto copied_by = [&](Engine& engine) {
    const std::uint64_t before = control->bytes_copied(HEDDLE_FAKE_HOST, 0);
    BOOST_TEST((evaluate_on(engine, text) == evaluate_on(exact, text)));
    return control->bytes_copied(HEDDLE_FAKE_HOST, 0) - before;
  };
  Engine roomy(options_on({"fake:0"}));
  const std::uint64_t once = copied_by(roomy);
  bool is_streamed = false;
  for (std::uint64_t percent = 200; percent > 0 && !is_streamed; percent -= 10) {
    EngineOptions options = options_on({"fake:0"});
    options.budgets["fake:0"] = once * percent / 100;
    Engine little(options);
    try {
      is_streamed = copied_by(little) > once;
    } catch (const heddle::EngineError&) {  // too little for any way to run it
      break;
    }
  }
  BOOST_TEST(is_streamed);
}

BOOST_AUTO_TEST_SUITE_END()
