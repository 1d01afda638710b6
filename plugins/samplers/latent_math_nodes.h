// Latents added, mixed, joined. On the host; stateless. The second latent takes the grid and the
// batch of the first: resized, then repeated or cut.
#pragma once

#include <heddle/node.hpp>

namespace heddle::samplers {

struct LatentAdd {
  static constexpr Info info{"LatentAdd",     1, "", "latent/advanced", "The sum of two latents.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentSubtract {
  static constexpr Info info{
      "LatentSubtract", 1, "", "latent/advanced", "The difference of two latents.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentMultiply {
  static constexpr Info info{"LatentMultiply", 1, "", "latent/advanced", "A latent times a number.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples{"samples", 0, "", "LATENT"};
  static constexpr Input<double> multiplier{
      "multiplier", Widget{.number = 1, .min = -10, .max = 10, .step = 0.01}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples, multiplier, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentInterpolate {
  static constexpr Info info{"LatentInterpolate",
                             1,
                             "",
                             "latent/advanced",
                             "Between two latents: directions over channels and lengths apart.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Input<double> ratio{"ratio",
                                       Widget{.number = 1, .min = 0, .max = 1, .step = 0.01}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, ratio, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentBlend {
  static constexpr Info info{"LatentBlend",
                             1,
                             "Latent Blend",
                             "_for_testing",
                             "The first times the factor, the second times the rest of 1.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Input<double> blend_factor{
      "blend_factor",
      Widget{.number = 0.5, .min = 0, .max = 1, .step = 0.01, .extra = R"({"min": 0, "max": 1})"}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, blend_factor, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentComposite {
  static constexpr Info info{
      "LatentComposite",
      1,
      "Latent Composite",
      "latent",
      "One latent at a place in another, fading over so many pixels at the edges inside.",
      HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples_to{"samples_to", 0, "", "LATENT"};
  static constexpr Input<Value> samples_from{"samples_from", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> feather{"feather",
                                               Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples_to, samples_from, x, y, feather, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentCompositeMasked {
  static constexpr Info info{"LatentCompositeMasked",
                             1,
                             "LatentCompositeMasked",
                             "latent",
                             "One latent at a place in another, where the mask is 1.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> destination{"destination", 0, "", "LATENT"};
  static constexpr Input<Value> source{"source", 0, "", "LATENT"};
  static constexpr Input<std::int64_t> x{"x", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Input<std::int64_t> y{"y", Widget{.min = 0, .max = 16384, .step = 8}};
  static constexpr Input<bool> resize_source{"resize_source", Widget{}};
  static constexpr Input<Tensor> mask{"mask", HEDDLE_PORT_OPTIONAL, "", "MASK"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(destination, source, x, y, resize_source, mask, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentBatch {
  static constexpr Info info{"LatentBatch",
                             1,
                             "Batch Latents (DEPRECATED)",
                             "model/latent/batch",
                             "Two batches, one after another.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DEPRECATED};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct LatentConcat {
  static constexpr const char* kDims[] = {"x", "-x", "y", "-y", "t", "-t", nullptr};

  static constexpr Info info{"LatentConcat",
                             1,
                             "",
                             "latent/advanced",
                             "Two latents side by side along an axis; - puts the second first.",
                             HEDDLE_NODE_HOST};
  static constexpr Input<Value> samples1{"samples1", 0, "", "LATENT"};
  static constexpr Input<Value> samples2{"samples2", 0, "", "LATENT"};
  static constexpr Input<std::string> dim{"dim", {.choices = kDims, .type = "COMBO"}};
  static constexpr Output<Value> out{"LATENT", 0, "", "LATENT"};
  static constexpr auto ports = heddle::ports(samples1, samples2, dim, out);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

}  // namespace heddle::samplers
