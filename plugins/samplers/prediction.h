// What a model predicts, as numbers: how its input is made from the noisy state x, how the clean
// picture D ("denoised") follows from x and the model's output F, how noise and a clean latent are
// mixed, and how several predictions of one step are combined. Everything is linear in the tensors,
// so each function returns coefficients, in double. Formulas: ComfyUI's parametrisations, EDM after
// Karras et al. 2022, table 1. Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

namespace heddle::samplers {

enum class Prediction {
  kEps,               // the noise
  kV,                 // velocity between picture and noise at equal variance
  kEdm,               // EDM's preconditioned network, sigma_data 0.5
  kX0,                // the clean picture, from a scaled input
  kImgToImg,          // the clean picture, from x itself
  kLcm,               // the noise, with the boundary condition of consistency models
  kFlow,              // noise minus picture, for x = (1 - sigma) picture + sigma noise ("CONST")
  kImgToImgVelocity,  // what is to be taken from x, by x itself
};

// "eps", "v_prediction", "edm", "x0", "img_to_img", "lcm", "const", "img_to_img_velocity".
std::optional<Prediction> find_prediction(std::string_view name);

// Model input = input * x; D = x * x + output * F.
struct ModelTerms {
  double input = 1.0;
  double x = 1.0;
  double output = 0.0;
};
// `timestep` (NoiseLevels::timestep(sigma)) matters to kLcm only. REQUIRES: sigma >= 0.
ModelTerms model_terms(Prediction prediction, double sigma, double timestep);

// Start of a run: x = noise * n + latent * z.
struct NoiseScaling {
  double noise = 1.0;
  double latent = 1.0;
};
// `sigma_max` is the model's highest level: a run that starts there, or within 1e-5 of it, gets
// noise of full variance if the prediction is not kFlow.
NoiseScaling noise_scaling(Prediction prediction, double sigma, double sigma_max);

// End of a run: the factor that x at level `sigma` is multiplied by to give the latent. Throws
// std::invalid_argument for kFlow at sigma >= 1, where nothing of the picture is in x.
double inverse_noise_scaling(Prediction prediction, double sigma);

// Classifier-free guidance: D = conditioned * D_c + unconditioned * D_u.
struct Guidance {
  double conditioned = 1.0;
  double unconditioned = 0.0;

  // False: D_u is not needed, and its set of model inputs not run.
  bool needs_unconditioned() const { return unconditioned != 0.0; }
};
// D_u + scale (D_c - D_u); a scale of 1 (within 1e-9 of it) leaves D_u out.
Guidance guidance(double scale);

}  // namespace heddle::samplers
