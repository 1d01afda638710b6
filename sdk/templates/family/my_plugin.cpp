// my_plugin, a model family of two blocks: it reads my_plugin.safetensors with UpscaleModelLoader,
// and ImageUpscaleWithModel runs it. For each pixel x (three channels):
//   y = x + second (SiLU(first x + first_bias)) + second_bias
#include <heddle/model.hpp>
#include <heddle/ops.hpp>

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;
using heddle::Weight;

// A block is traced once: its execute() issues ops on tensors that have shapes and no data.
struct MyPluginFirst {
  static constexpr heddle::Info info{"my_plugin.first", 1,  "First layer",
                                     "my_plugin",       "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(image, weight, bias, out);
  static void execute(Context& ctx) {
    const Tensor pixels = heddle::ops::cast(ctx, ctx[image], ctx.compute());
    ctx[out] = heddle::ops::linear(ctx, pixels, ctx[weight], ctx[bias], HEDDLE_ACT_SILU);
  }
};

struct MyPluginSecond {
  static constexpr heddle::Info info{"my_plugin.second", 1,  "Second layer",
                                     "my_plugin",        "", HEDDLE_NODE_BLOCK};
  static constexpr Input<Tensor> image{"image"};
  static constexpr Input<Tensor> hidden{"hidden"};
  static constexpr Weight weight{"weight", HEDDLE_USE_LINEAR};
  static constexpr Weight bias{"bias", HEDDLE_USE_VECTOR};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(image, hidden, weight, bias, out);
  static void execute(Context& ctx) {
    const Tensor change = heddle::ops::linear(ctx, ctx[hidden], ctx[weight], ctx[bias]);
    ctx[out] = heddle::ops::add(ctx, heddle::ops::cast(ctx, ctx[image], HEDDLE_F32),
                                heddle::ops::cast(ctx, change, HEDDLE_F32));
  }
};

// Which files are of this family, and what graph of blocks they make.
struct MyPluginFamily {
  static constexpr heddle::Family family{"my_plugin", "upscaler", 1, "Changes each pixel."};

  // How sure the family is: 0 is no; the family with the highest answer has the file.
  static int match(const heddle::Checkpoint& file, const heddle::Value&) {
    return file.has("my_plugin.first.weight") ? 100 : 0;
  }
  static void build(const heddle::Checkpoint& file, const heddle::Value&, heddle::Blocks& graph) {
    if (file.size("my_plugin.first.weight", 1) != 3)
      throw heddle::Error(HEDDLE_UNSUPPORTED,
                          file.path() + ": 'my_plugin.first.weight' has to take 3 channels");
    const heddle::Source image =
        graph.input("image", HEDDLE_INPUT_LOOP_INVARIANT | HEDDLE_INPUT_BATCH);
    const heddle::Source hidden =
        graph.add<MyPluginFirst>("first")
            .link(MyPluginFirst::image, image)
            .weight(MyPluginFirst::weight, "my_plugin.first.weight")
            .weight(MyPluginFirst::bias, "my_plugin.first.bias")[MyPluginFirst::out];
    graph.output("image",
                 graph.add<MyPluginSecond>("second")
                     .link(MyPluginSecond::image, image)
                     .link(MyPluginSecond::hidden, hidden)
                     .weight(MyPluginSecond::weight, "my_plugin.second.weight")
                     .weight(MyPluginSecond::bias, "my_plugin.second.bias")[MyPluginSecond::out]);
    // What ImageUpscaleWithModel has to know of an upscaler.
    graph.setting("family", "my_plugin");
    for (const char* side : {"scale", "minimum", "multiple"}) graph.setting(side, std::int64_t{1});
    for (const char* channels : {"in_channels", "out_channels"})
      graph.setting(channels, std::int64_t{3});
  }
};

}  // namespace

HEDDLE_PLUGIN("org.example.my_plugin", "1.0.0", MyPluginFamily, MyPluginFirst, MyPluginSecond)
