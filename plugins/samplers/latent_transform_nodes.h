// Latents cut, turned, and told which noise they get. On the host; stateless.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct LatentRotate {
  static constexpr const char* kRotations[] = {"none", "90 degrees", "180 degrees", "270 degrees",
                                               nullptr};

  static constexpr Info info{"LatentRotate",      1,
                             "Rotate Latent",     "latent/transform",
                             "Turned clockwise.", HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> rotation{"rotation", {.choices = kRotations}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, rotation, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentFlip {
  static constexpr const char* kFlipMethods[] = {"x-axis: vertically", "y-axis: horizontally",
                                                 nullptr};

  static constexpr Info info{"LatentFlip",
                             1,
                             "Flip Latent",
                             "latent/transform",
                             "Mirrored: rows or columns in reverse order.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> flip_method{"flip_method", {.choices = kFlipMethods}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, flip_method, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentCrop {
  static constexpr Info info{
      "LatentCrop", 1, "Crop Latent", "latent/transform", "A part, in pixels.", HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> width{
      "width", Widget{.number = 512, .min = 64, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> height{
      "height", Widget{.number = 512, .min = 64, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, width, height, x, y, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentCut {
  static constexpr const char* kDims[] = {"x", "y", "t", nullptr};

  static constexpr Info info{"LatentCut",
                             1,
                             "",
                             "latent/advanced",
                             "Some cells along an axis; a negative index counts from the end.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> dim{"dim", {.choices = kDims, .type = "COMBO"}};
  static constexpr Input<std::int64_t> index{"index",
                                             Widget{.min = -16384, .max = 16384, .step = 1}};
  static constexpr Input<std::int64_t> amount{
      "amount", Widget{.number = 1, .min = 1, .max = 16384, .step = 1}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, dim, index, amount, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentCutToBatch {
  static constexpr const char* kDims[] = {"t", "x", "y", nullptr};

  static constexpr Info info{"LatentCutToBatch",
                             1,
                             "",
                             "model/latent/advanced",
                             "Cut along an axis into slices, which become items of the batch.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> dim{"dim", {.choices = kDims, .type = "COMBO"}};
  static constexpr Input<std::int64_t> slice_size{
      "slice_size", Widget{.number = 1, .min = 1, .max = 16384, .step = 1}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, dim, slice_size, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct TrimVideoLatent {
  static constexpr Info info{"TrimVideoLatent", 1, "", "latent/video", "Without the first frames.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> trim_amount{"trim_amount", Widget{.min = 0, .max = 99999}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, trim_amount, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentBatchSeedBehavior {
  static constexpr const char* kSeedBehaviors[] = {"random", "fixed", nullptr};

  static constexpr Info info{
      "LatentBatchSeedBehavior",
      1,
      "",
      "latent/advanced",
      "Whether all items of a batch get the noise of the first, or each its own.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<std::string> seed_behavior{
      "seed_behavior", {.text = "fixed", .choices = kSeedBehaviors, .type = "COMBO"}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, seed_behavior, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
