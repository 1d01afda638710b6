// Parametrisations by what they have to do: a perfect model gives back the clean picture, and the
// two scalings at the ends of a run undo each other.
#include "plugins/samplers/prediction.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>

namespace {

using namespace heddle::samplers;

constexpr double kPicture = 0.7;
constexpr double kNoise = -1.3;
constexpr double kTolerance = 1e-14;

double denoised(Prediction prediction, double sigma, double x, double output) {
  const ModelTerms terms = model_terms(prediction, sigma, 0.0);
  return terms.x * x + terms.output * output;
}

bool near(double a, double b) { return std::abs(a - b) <= kTolerance * (1.0 + std::abs(b)); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_perfect_model_of_each_kind_gives_back_the_picture) {
  for (const double sigma : {0.03, 0.5, 1.0, 14.6}) {
    const double x = kPicture + sigma * kNoise;
    const double root = std::sqrt(1.0 + sigma * sigma);
    BOOST_TEST(near(denoised(Prediction::kEps, sigma, x, kNoise), kPicture));
    // v is the noise times the signal's factor minus the picture times the noise's.
    const double v = kNoise / root - kPicture * sigma / root;
    BOOST_TEST(near(denoised(Prediction::kV, sigma, x, v), kPicture));
    BOOST_TEST(near(denoised(Prediction::kX0, sigma, x, kPicture), kPicture));
    BOOST_TEST(near(denoised(Prediction::kImgToImg, sigma, x, kPicture), kPicture));
    // EDM's network learns the picture minus c_skip x, over c_out, at sigma_data 0.5.
    const double total = sigma * sigma + 0.25;
    const double target = (kPicture - 0.25 / total * x) / (sigma * 0.5 / std::sqrt(total));
    BOOST_TEST(near(denoised(Prediction::kEdm, sigma, x, target), kPicture));
  }
  for (const double sigma : {0.03, 0.5, 1.0}) {
    const double x = (1.0 - sigma) * kPicture + sigma * kNoise;
    BOOST_TEST(near(denoised(Prediction::kFlow, sigma, x, kNoise - kPicture), kPicture));
  }
}

BOOST_AUTO_TEST_CASE(inputs_have_the_variance_that_models_are_trained_with) {
  for (const double sigma : {0.1, 2.0, 14.6}) {
    const double variance = 1.0 + sigma * sigma;
    for (const Prediction prediction :
         {Prediction::kEps, Prediction::kV, Prediction::kX0, Prediction::kLcm}) {
      const double input = model_terms(prediction, sigma, 0.0).input;
      BOOST_TEST(near(input * input * variance, 1.0));
    }
    const double edm = model_terms(Prediction::kEdm, sigma, 0.0).input;
    BOOST_TEST(near(edm * edm * (0.25 + sigma * sigma), 1.0));
    BOOST_TEST(model_terms(Prediction::kFlow, sigma, 0.0).input == 1.0);
    BOOST_TEST(model_terms(Prediction::kImgToImg, sigma, 0.0).input == 1.0);
  }
}

BOOST_AUTO_TEST_CASE(a_consistency_model_is_the_identity_at_timestep_zero) {
  const ModelTerms start = model_terms(Prediction::kLcm, 0.3, 0.0);
  BOOST_TEST(near(start.x, 1.0));
  BOOST_TEST(near(start.output, 0.0));
  // At timestep 259, t' = 2590: (t' / sqrt(t'^2 + 1/4)) (x - sigma F) + x / 4 / (t'^2 + 1/4).
  const ModelTerms later = model_terms(Prediction::kLcm, 1.2, 259.0);
  const double total = 2590.0 * 2590.0 + 0.25;
  BOOST_TEST(near(later.x, 2590.0 / std::sqrt(total) + 0.25 / total));
  BOOST_TEST(near(later.output, -1.2 * 2590.0 / std::sqrt(total)));
}

BOOST_AUTO_TEST_CASE(noise_has_full_variance_only_at_the_highest_level) {
  constexpr double kTop = 14.614642;
  const double full = std::sqrt(1.0 + kTop * kTop);
  BOOST_TEST(near(noise_scaling(Prediction::kEps, kTop, kTop).noise, full));
  const double within = kTop * (1.0 - 0.9e-5);
  BOOST_TEST(
      near(noise_scaling(Prediction::kV, within, kTop).noise, std::sqrt(1.0 + within * within)));
  const double below = kTop * (1.0 - 1.1e-5);
  BOOST_TEST(near(noise_scaling(Prediction::kEps, below, kTop).noise, below));
  BOOST_TEST(near(noise_scaling(Prediction::kEps, 20.0, kTop).noise, std::sqrt(401.0)));
  BOOST_TEST(noise_scaling(Prediction::kEps, 3.0, kTop).latent == 1.0);
}

BOOST_AUTO_TEST_CASE(a_flow_mixes_and_its_inverse_gives_the_latent_back) {
  const NoiseScaling scaling = noise_scaling(Prediction::kFlow, 0.3, 1.0);
  BOOST_TEST(scaling.noise == 0.3);
  BOOST_TEST(scaling.latent == 0.7);
  BOOST_TEST(near(inverse_noise_scaling(Prediction::kFlow, 0.3) * scaling.latent, 1.0));
  BOOST_TEST(near(inverse_noise_scaling(Prediction::kFlow, 0.001), 1.0 / 0.999));
  BOOST_TEST(inverse_noise_scaling(Prediction::kEps, 0.3) == 1.0);
  BOOST_TEST(inverse_noise_scaling(Prediction::kV, 14.6) == 1.0);
  BOOST_CHECK_THROW(inverse_noise_scaling(Prediction::kFlow, 1.0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(guidance_of_one_leaves_the_second_set_out) {
  BOOST_TEST(!guidance(1.0).needs_unconditioned());
  BOOST_TEST(!guidance(1.0 + 1e-10).needs_unconditioned());
  BOOST_TEST(guidance(1.0).conditioned == 1.0);
  BOOST_TEST(guidance(1.0 + 1e-8).needs_unconditioned());
  const Guidance strong = guidance(7.5);
  BOOST_TEST(strong.conditioned == 7.5);
  BOOST_TEST(strong.unconditioned == -6.5);
  BOOST_TEST(guidance(0.0).conditioned == 0.0);
  BOOST_TEST(guidance(0.0).unconditioned == 1.0);
}

BOOST_AUTO_TEST_CASE(predictions_are_found_by_the_names_workflows_use) {
  BOOST_TEST((find_prediction("eps") == Prediction::kEps));
  BOOST_TEST((find_prediction("v_prediction") == Prediction::kV));
  BOOST_TEST((find_prediction("edm") == Prediction::kEdm));
  BOOST_TEST((find_prediction("x0") == Prediction::kX0));
  BOOST_TEST((find_prediction("img_to_img") == Prediction::kImgToImg));
  BOOST_TEST((find_prediction("lcm") == Prediction::kLcm));
  BOOST_TEST((find_prediction("const") == Prediction::kFlow));
  BOOST_TEST((find_prediction("img_to_img_velocity") == Prediction::kImgToImgVelocity));
  BOOST_TEST(!find_prediction("flow"));
}
