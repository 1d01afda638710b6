// plugins/denoisers/model_patches.h - model patches: files whose blocks run among those of a
// denoiser, in its own graph, beside a hint. Who applies one joins its file to the model's under a
// prefix, and builds the model anew with its place in the configuration:
//
// model_patches   list of records: prefix ("model_patch.0.", of its tensors), file (its path, for
//                 messages), strength (float), and what the patch's own setting `patch_config`, a
//                 record, has besides
//
// The model has an input "patch.<n>.hint" for the nth, and its blocks lie under "patch.<n>":
// without these the model is the one without the patch. Used while a model is built; one call's
// thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/model.hpp>

namespace heddle::denoisers {

inline constexpr const char* kPatchRole = "model_patch";

struct ModelPatch {
  std::string prefix, file;
  double strength = 1;
  Value config;       // the record itself
  std::string path;   // of its blocks: "patch.0"
  std::string input;  // the model's: "patch.0.hint"
};
std::vector<ModelPatch> model_patches(const Value& config);

// The input of its hint, (1|B, C', H, W), constant. The patch outlives the build.
Source add_hint_input(const ModelPatch& patch, Blocks& graph);

// Whether a name is that of a patch's tensor in a joined file.
bool is_patch_tensor(const std::string& name);

// What a denoiser says that takes patches: `family` of those, and what it was built of.
void add_patched_settings(const Value& config, std::int64_t width, Blocks& graph);
// What a patch says: of which family its denoiser is, how wide its streams are, and how many
// channels its hint has: those of a picture's latent alone, or with more behind them.
void add_patch_settings(const char* family, std::int64_t width, std::int64_t latent_channels,
                        std::int64_t hint_channels, Blocks& graph);

// Runs a part of a build whose errors are about the patch's file.
template <class Build>
auto of_patch(const ModelPatch& patch, Build&& build) {
  try {
    return build();
  } catch (const Error& error) {
    throw Error(error.code, "the model patch " + patch.file + " does not fit: " + error.what());
  }
}

}  // namespace heddle::denoisers
