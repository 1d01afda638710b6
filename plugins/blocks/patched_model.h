// plugins/blocks/patched_model.h - a MODEL with a model patch (heddle/diffusion/values.h): the
// patch's file is joined to the model's, whose family builds both anew. Any thread.
#pragma once

#include <heddle/model.hpp>
#include <heddle/value.hpp>

namespace heddle::blocks {

// A model's setting, a list of records: what nodes gave its patches.
inline constexpr const char* kModelPatches = "model_patches";
// A setting: the configuration that a model which takes patches was built of.
inline constexpr const char* kPatchedConfig = "patched_config";

// Throws where `patch`, the model of a MODEL_PATCH, is for models of another family or width, or
// the model takes none.
void check_model_patch(const Value& patch, const Value& model);

// The model with one more patch, `strength` times. given: what else is told of it.
Value with_patch_joined(const Value& model, const Value& patch, double strength, Record given);

}  // namespace heddle::blocks
