// example.my_plugin makes a picture brighter or darker. execute() only enqueues work: on whatever
// device the engine has chosen for the node.
#include <heddle/ops.hpp>

namespace {

struct MyPluginNode {
  static constexpr heddle::Info info{"example.my_plugin", 1, "MyPlugin", "my_plugin",
                                     "Makes a picture brighter or darker."};
  static constexpr heddle::Input<heddle::Tensor> image{"image", 0, "The picture.", "IMAGE"};
  static constexpr heddle::Input<double> factor{"factor",
                                                {.number = 1.5, .min = 0, .max = 10, .step = 0.1},
                                                "What each channel is multiplied by."};
  static constexpr heddle::Output<heddle::Tensor> out{"IMAGE", 0, "", "IMAGE"};
  static constexpr auto ports = heddle::ports(image, factor, out);

  void execute(heddle::Context& ctx) {
    // A picture is f32 (batch, height, width, channels), from 0 to 1.
    ctx[out] = heddle::ops::scale_clamp(ctx, ctx[image], {ctx[factor], 0, 0, 1});
  }

  // The shape before anything runs, for plans and checks.
  static void infer(heddle::Infer& question) {
    if (const auto shape = question.shape(image)) question.out(out, "", HEDDLE_F32, *shape);
  }
};

}  // namespace

HEDDLE_PLUGIN("org.example.my_plugin", "1.0.0", MyPluginNode)
