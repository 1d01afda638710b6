// SAMPLER values: a sampler and its numbers as a record (heddle/diffusion/values.h). Any thread.
#pragma once

#include <heddle/node.hpp>

#include "sampler_kind.h"

namespace heddle::samplers {

Value sampler_record(const SamplerChoice& choice);
// Throws as check_options(), and where it gives options to a sampler that is not there.
SamplerChoice sampler_choice(const Value& sampler);

}  // namespace heddle::samplers
