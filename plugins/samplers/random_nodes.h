// Random numbers in the place of what a model reads, to measure it without its text encoders, and
// an end for workflows of which nobody keeps anything. Stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct RandomConditioning {
  static constexpr Widget kTokens{.number = 77, .min = 1, .max = 4096};
  static constexpr Widget kWidth{.number = 768, .min = 1, .max = 65536};
  static constexpr Widget kPooled{.number = 768, .max = 16384};
  static constexpr Widget kSeed{.max = 0xffffffffu};

  static constexpr Info info{"RandomConditioning",
                             1,
                             "",
                             "utils/bench",
                             "Standard normal numbers in the shape of an encoded text.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> tokens{"tokens", kTokens};
  static constexpr Input<std::int64_t> width{"width", kWidth, "Numbers for each token."};
  static constexpr Input<std::int64_t> pooled_width{
      "pooled_width", kPooled, "Numbers of the pooled output; 0: there is none."};
  static constexpr Input<std::int64_t> seed{"seed", kSeed};
  static constexpr Output<Value> out{"CONDITIONING", 0, "", "CONDITIONING"};
  static constexpr auto ports = heddle::ports(tokens, width, pooled_width, seed, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct RandomLatent {
  static constexpr Widget kPixels{.number = 1024, .min = 16, .max = 16384, .step = 8};
  static constexpr Widget kChannels{.number = 16, .min = 1, .max = 1024};
  static constexpr Widget kSeed{.max = 0xffffffffu};

  static constexpr Widget kFrames{.number = 1, .min = 1, .max = 16384, .step = 4};

  static constexpr Info info{
      "RandomLatent",
      1,
      "",
      "utils/bench",
      "Standard normal numbers in the shape of a picture's or a video's latent.",
      HEDDLE_NODE_HOST};
  static constexpr Input<std::int64_t> width{"width", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> height{"height", kPixels, "In pixels."};
  static constexpr Input<std::int64_t> channels{"channels", kChannels};
  static constexpr Input<std::int64_t> seed{"seed", kSeed};
  static constexpr Input<std::int64_t> length{
      "length", kFrames, "Frames of a video, four for each of the latent but the first."};
  static constexpr Output<Value> latent{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(width, height, channels, seed, length, latent);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct Discard {
  static constexpr Info info{"Discard",
                             1,
                             "",
                             "utils/bench",
                             "Does nothing with a value: what makes it runs, and nothing is saved.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_SINK};
  static constexpr Input<Value> value{"value", HEDDLE_PORT_PASS, "", "*"};
  static constexpr auto ports = heddle::ports(value);
  static void execute(Context&) {}
};

}  // namespace heddle::samplers
