#include "plugins/samplers/sampler_algebra.h"

namespace heddle::samplers::steps {
namespace {

const Registered kEuler({.name = "euler", .place = 10, .step = &euler_step});
// ddim differs from euler in the noise of inpainting alone.
const Registered kDdim(
    {.name = "ddim", .place = 410, .step = &euler_step, .flags = HEDDLE_SAMPLER_NEW_MASK_NOISE});

}  // namespace
}  // namespace heddle::samplers::steps
