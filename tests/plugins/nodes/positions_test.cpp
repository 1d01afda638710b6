// Positions of image tokens, scaled and shifted, against diffusers (make_position_goldens.py).
#include "engine/base/text.h"
#include "tests/plugins/nodes/infer_check.h"
#include "tests/plugins/nodes/node_fixture.h"

using heddle::engine::cat;
using namespace heddle::test;

namespace {

struct Positions : NodeFixture {
  TensorFile moved{here() / "position_goldens.safetensors"};

  // The KSampler whose model has the node's numbers, in its order: scale and shift of x, y, t.
  static std::string drawing(std::vector<double> numbers) {
    std::string inputs;
    const char* const names[] = {"scale_x", "shift_x", "scale_y", "shift_y", "scale_t", "shift_t"};
    for (std::size_t i = 0; i < numbers.size(); ++i)
      inputs += cat(", \"", names[i], "\": ", numbers[i]);
    return cat(R"("moved": {"class_type": "ScaleROPE", "inputs": {"model": ["model", 0])", inputs,
               R"(}}, "out": )", ksampler(R"("model": ["moved", 0])"), ", ", kLook);
  }
  std::vector<float> drawn(const std::vector<double>& numbers) {
    return run(drawing(numbers), {"out.LATENT"}).floats("out.LATENT", "samples");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(positions, Positions)

BOOST_AUTO_TEST_CASE(image_tokens_lie_where_they_are_moved_to) {
  for (const auto& [golden, numbers] :
       {std::pair("scaled", std::vector<double>{0.4, 0, 2.5, 0, 1, 0}),
        std::pair("shifted", std::vector<double>{1, 7, 1.5, -2.5, 1, 3})}) {
    const double error = relative_error(drawn(numbers), moved.floats(golden));
    BOOST_TEST(error < kTolerance, golden << ": relative error " << error);
  }
}

BOOST_AUTO_TEST_CASE(where_nothing_moves_the_picture_is_the_same) {
  compare(drawn({1, 0, 1, 0, 1, 0}), "guidance");
}

BOOST_AUTO_TEST_CASE(what_is_asked_of_the_model_is_told_before) {
  heddle::EngineOptions options = engine_options();
  options.compute[test_device_kind()] = "f32";
  options.model_dirs.push_back(folder / "models");
  heddle::Engine::Data planned(options);
  check_inference(
      planned,
      R"({"model": {"class_type": "DiffusersLoader", "inputs": {"model_path": "random"}},
          "one": {"class_type": "CLIPTextEncode", "inputs": {"text": "a house", "clip": ["model", 1]}},
          "two": {"class_type": "CLIPTextEncode", "inputs": {"text": "by night", "clip": ["model", 1]}},
          "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 64, "height": 48, "batch_size": 1}}, )" +
          drawing({2, 1, 1, 0, 1, 0}) + "}");
}

BOOST_AUTO_TEST_SUITE_END()
