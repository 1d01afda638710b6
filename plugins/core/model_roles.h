// Models built for what a loader is asked for, or refused with what their files are. Any thread; a
// Context belongs to one call.
#pragma once

#include <heddle/model.hpp>

namespace heddle::loaders {

// As build_model(). Of a file that no family of `role` knows, but one of another role, the error
// says which that is and who loads it.
Value build_for(Context& ctx, const char* role, const Checkpoint& file, const Value& config);
// Empty where no family of `role` knows the file. Throws where one does and cannot build it.
Value build_if_there(Context& ctx, const char* role, const Checkpoint& file, const Value& config);

// A diffusion model, as build_for(); with its parts in its settings ("parts"), where its family
// tells of such ("part_configs").
Value build_denoiser(Context& ctx, const Checkpoint& file, const Value& config);

}  // namespace heddle::loaders
