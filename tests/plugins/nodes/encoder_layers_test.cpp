// Which layer of T5 is read, and how its texts are padded, against transformers
// (make_layer_goldens.py).
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

namespace heddle::test {
namespace {

struct LayersFixture : NodeFixture {
  TensorFile layers{here() / "layer_goldens.safetensors"};

  static std::string flow(const std::string& nodes, const std::string& clip = "changed") {
    return R"({"loader": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}}, )" +
           nodes +
           R"("text": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red house by the sea", "clip": [")" +
           clip + R"(", 0]}},
      "out": {"class_type": "test.first", "inputs": {"list": ["text", 0]}}, )" +
           kLook + "}";
  }
  static std::string stop(int layer, const std::string& name = "changed",
                          const std::string& clip = R"(["loader", 1])") {
    return "\"" + name + R"(": {"class_type": "CLIPSetLastLayer", "inputs": {"clip": )" + clip +
           R"(, "stop_at_clip_layer": )" + std::to_string(layer) + "}}, ";
  }
  static std::string options_of(int padding, int length) {
    return R"("changed": {"class_type": "T5TokenizerOptions", "inputs": {"clip": ["loader", 1], "min_padding": )" +
           std::to_string(padding) + R"(, "min_length": )" + std::to_string(length) + "}}, ";
  }
  void check(const std::string& nodes, const std::string& golden,
             const std::string& clip = "changed") {
    const Results results = run_whole(flow(nodes, clip), {"out.value"});
    const double error =
        relative_error(results.floats("out.value", "cross_attn"), layers.floats(golden));
    BOOST_TEST(error < 1e-5, golden << ": relative error " << error);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(encoder_layers, LayersFixture)

BOOST_AUTO_TEST_CASE(t5_ends_at_the_layer_that_is_asked_for_under_its_last_norm) {
  check(stop(-1), "t5.last");
  check(stop(-2), "t5.first");
  check(stop(-3), "t5.last");  // it has two
  // The later word counts.
  check(stop(-2, "first") + stop(-1, "changed", R"(["first", 0])"), "t5.last");
}

BOOST_AUTO_TEST_CASE(the_pooled_vector_does_not_change) {
  const auto pooled = [&](const std::string& nodes) {
    return run_whole(flow(nodes), {"out.value"}).floats("out.value", "pooled_output");
  };
  BOOST_TEST((pooled(stop(-2)) == pooled(stop(-1))));
}

BOOST_AUTO_TEST_CASE(texts_are_padded_as_they_are_asked_to_be) {
  check(options_of(2, 0), "t5.padded");
  check(options_of(0, 0), "t5.bare");
  check(options_of(0, 16), "t5.last");
  check(options_of(2, 16), "t5.last");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace heddle::test
