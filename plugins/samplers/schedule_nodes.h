// Nodes that make and change lists of noise levels (SIGMAS). On the host; stateless.
#pragma once

#include "ksampler_nodes.h"

namespace heddle::samplers {

namespace schedule_widgets {
inline constexpr const char* kExact = R"({"round": false, "advanced": true})";
constexpr Widget level(double number, double max = 5000) {
  return {.number = number, .max = max, .step = 0.01, .extra = kExact};
}
inline constexpr Widget kSigmaMax = level(14.614642);
inline constexpr Widget kSigmaMin = level(0.0291675);
}  // namespace schedule_widgets

struct BasicScheduler {
  static constexpr Info info{"BasicScheduler",
                             1,
                             "BasicScheduler",
                             "sampling/custom_sampling/schedulers",
                             "The levels a model was trained on, by a schedule's name.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::string> scheduler{"scheduler", kScheduleNames};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> denoise{"denoise", kDenoise};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(model, scheduler, steps, denoise, sigmas);
  static void execute(Context& ctx);
  static void infer(Infer& question);
};

struct BetaSamplingScheduler {
  static constexpr Widget kParameter = schedule_widgets::level(0.6, 50);

  static constexpr Info info{"BetaSamplingScheduler",
                             1,
                             "BetaSamplingScheduler",
                             "model/sampling/schedulers",
                             "Levels at the quantiles of a beta distribution.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> alpha{"alpha", kParameter};
  static constexpr Input<double> beta{"beta", kParameter};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(model, steps, alpha, beta, sigmas);
  static void execute(Context& ctx);
};

struct KarrasScheduler {
  static constexpr Info info{"KarrasScheduler",
                             1,
                             "KarrasScheduler",
                             "model/sampling/schedulers",
                             "Karras et al.'s levels between two of them.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> sigma_max{"sigma_max", schedule_widgets::kSigmaMax};
  static constexpr Input<double> sigma_min{"sigma_min", schedule_widgets::kSigmaMin};
  static constexpr Input<double> rho{"rho", schedule_widgets::level(7, 100)};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, sigma_max, sigma_min, rho, sigmas);
  static void execute(Context& ctx);
};

struct ExponentialScheduler {
  static constexpr Info info{"ExponentialScheduler",
                             1,
                             "ExponentialScheduler",
                             "model/sampling/schedulers",
                             "Levels with equal ratios between two of them.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> sigma_max{"sigma_max", schedule_widgets::kSigmaMax};
  static constexpr Input<double> sigma_min{"sigma_min", schedule_widgets::kSigmaMin};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, sigma_max, sigma_min, sigmas);
  static void execute(Context& ctx);
};

struct PolyexponentialScheduler {
  static constexpr Info info{"PolyexponentialScheduler",
                             1,
                             "PolyexponentialScheduler",
                             "model/sampling/schedulers",
                             "Levels whose logarithms follow a power.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> sigma_max{"sigma_max", schedule_widgets::kSigmaMax};
  static constexpr Input<double> sigma_min{"sigma_min", schedule_widgets::kSigmaMin};
  static constexpr Input<double> rho{"rho", schedule_widgets::level(1, 100)};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, sigma_max, sigma_min, rho, sigmas);
  static void execute(Context& ctx);
};

struct LaplaceScheduler {
  static constexpr Widget kMu{
      .min = -10, .max = 10, .step = 0.1, .extra = schedule_widgets::kExact};
  static constexpr Widget kBeta{
      .number = 0.5, .max = 10, .step = 0.1, .extra = schedule_widgets::kExact};

  static constexpr Info info{"LaplaceScheduler",
                             1,
                             "LaplaceScheduler",
                             "model/sampling/schedulers",
                             "Quantiles of a Laplace distribution of the levels' logarithms.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> sigma_max{"sigma_max", schedule_widgets::kSigmaMax};
  static constexpr Input<double> sigma_min{"sigma_min", schedule_widgets::kSigmaMin};
  static constexpr Input<double> mu{"mu", kMu};
  static constexpr Input<double> beta{"beta", kBeta};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, sigma_max, sigma_min, mu, beta, sigmas);
  static void execute(Context& ctx);
};

struct VPScheduler {
  static constexpr Widget kEpsilon{
      .number = 0.001, .max = 1, .step = 0.0001, .extra = schedule_widgets::kExact};

  static constexpr Info info{"VPScheduler",
                             1,
                             "VPScheduler",
                             "model/sampling/schedulers",
                             "Levels of the variance-preserving process.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> beta_d{"beta_d", schedule_widgets::level(19.9)};
  static constexpr Input<double> beta_min{"beta_min", schedule_widgets::level(0.1)};
  static constexpr Input<double> eps_s{"eps_s", kEpsilon};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, beta_d, beta_min, eps_s, sigmas);
  static void execute(Context& ctx);
};

struct SDTurboScheduler {
  static constexpr Widget kPart{
      .number = 1, .min = 0, .max = 1, .step = 0.01, .extra = R"({"min": 0})"};

  static constexpr Info info{"SDTurboScheduler",
                             1,
                             "SDTurboScheduler",
                             "sampling/custom_sampling/schedulers",
                             "The levels that turbo models were distilled at.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<Value> model{"model", HEDDLE_PORT_PASS, "", "MODEL"};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 1, .min = 1, .max = 10}};
  static constexpr Input<double> denoise{"denoise", kPart};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(model, steps, denoise, sigmas);
  static void execute(Context& ctx);
};

struct AlignYourStepsScheduler {
  static constexpr const char* kModels[] = {"SD1", "SDXL", "SVD", nullptr};

  static constexpr Info info{"AlignYourStepsScheduler",
                             1,
                             "",
                             "sampling/custom_sampling/schedulers",
                             "The published tables of Align Your Steps.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> model_type{"model_type",
                                                 Widget{.choices = kModels, .type = "COMBO"}};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 10, .min = 1, .max = 10000}};
  static constexpr Input<double> denoise{"denoise", kDenoise};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(model_type, steps, denoise, sigmas);
  static void execute(Context& ctx);
};

struct OptimalStepsScheduler {
  static constexpr const char* kModels[] = {"FLUX", "Wan", "Chroma", nullptr};

  static constexpr Info info{"OptimalStepsScheduler",
                             1,
                             "",
                             "sampling/custom_sampling/schedulers",
                             "The published tables of OptimalSteps.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::string> model_type{"model_type",
                                                 Widget{.choices = kModels, .type = "COMBO"}};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 20, .min = 3, .max = 1000}};
  static constexpr Input<double> denoise{"denoise", kDenoise};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(model_type, steps, denoise, sigmas);
  static void execute(Context& ctx);
};

struct GITSScheduler {
  static constexpr Info info{"GITSScheduler",
                             1,
                             "GITSScheduler",
                             "model/sampling/schedulers",
                             "The published levels of GITS. Greater coefficients leave more of "
                             "them to small ones.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<double> coeff{
      "coeff",
      Widget{
          .number = 1.2, .min = 0.8, .max = 1.5, .step = 0.05, .extra = R"({"advanced": true})"}};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 10, .min = 2, .max = 1000}};
  static constexpr Input<double> denoise{"denoise", kDenoise};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(coeff, steps, denoise, sigmas);
  static void execute(Context& ctx);
};

struct LTXVScheduler {
  static constexpr Info info{"LTXVScheduler",
                             1,
                             "",
                             "model/sampling/schedulers",
                             "The levels of LTX-Video: shifted by the size of the latent, then "
                             "stretched.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", kSteps};
  static constexpr Input<double> max_shift{"max_shift",
                                           Widget{.number = 2.05, .max = 100, .step = 0.01}};
  static constexpr Input<double> base_shift{"base_shift",
                                            Widget{.number = 0.95, .max = 100, .step = 0.01}};
  static constexpr Input<bool> stretch{"stretch",
                                       Widget{.number = 1, .extra = R"({"advanced": true})"}};
  static constexpr Input<double> terminal{
      "terminal",
      Widget{.number = 0.1, .max = 0.99, .step = 0.01, .extra = R"({"advanced": true})"}};
  static constexpr Input<Value> latent{"latent", HEDDLE_PORT_OPTIONAL, "", "LATENT"};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports =
      heddle::ports(steps, max_shift, base_shift, stretch, terminal, latent, sigmas);
  static void execute(Context& ctx);
};

struct Flux2Scheduler {
  static constexpr Widget kSide{.number = 1024, .min = 16, .max = 16384, .step = 1};

  static constexpr Info info{"Flux2Scheduler",
                             1,
                             "",
                             "model/sampling/schedulers",
                             "The levels of FLUX.2 for a picture's size and a number of steps.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 20, .min = 1, .max = 4096}};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, width, height, sigmas);
  static void execute(Context& ctx);
};

struct Ideogram4Scheduler {
  static constexpr Widget kSide{.number = 1024, .min = 256, .max = 8192, .step = 16};

  static constexpr Info info{"Ideogram4Scheduler",
                             1,
                             "Ideogram 4 Scheduler",
                             "model/sampling/schedulers",
                             "Levels at the quantiles of a normal distribution of the logit.",
                             HEDDLE_NODE_HOST | HEDDLE_NODE_DESCRIBES};
  static constexpr Input<std::int64_t> steps{"steps", Widget{.number = 20, .min = 1, .max = 200}};
  static constexpr Input<std::int64_t> width{"width", kSide};
  static constexpr Input<std::int64_t> height{"height", kSide};
  static constexpr Input<double> mu{"mu", Widget{.number = 0, .min = -10, .max = 10, .step = 0.05}};
  static constexpr Input<double> std{"std",
                                     Widget{.number = 1.75, .min = 0.1, .max = 5, .step = 0.05}};
  static constexpr Output<Tensor> sigmas{"SIGMAS", 0, "", "SIGMAS"};
  static constexpr auto ports = heddle::ports(steps, width, height, mu, std, sigmas);
  static void execute(Context& ctx);
};

}  // namespace heddle::samplers
