#include "plugins/blocks/patched_model.h"

#include <heddle/joined_model.hpp>

#include "plugins/blocks/lists.h"
#include "plugins/blocks/sparse_config.h"

namespace heddle::blocks {
namespace {

void refuse(const std::string& why) { throw Error(HEDDLE_INVALID_ARGUMENT, "model_patch: " + why); }

}  // namespace

void check_model_patch(const Value& patch, const Value& model) {
  if (!patch.is(HEDDLE_KIND_MODEL)) refuse("it holds no model. Link a ModelPatchLoader.");
  const Value settings = model_settings(patch), drawn = model_settings(model);
  const std::string family = model_family(model), wanted = settings.get<std::string>("patches", "");
  if (wanted != family)
    refuse("this patch (" + model_family(patch) + ") is for models of the family '" + wanted +
           "', and the model is of '" + family + "'. Load a patch that was made for this model.");
  const auto width = settings.get<std::int64_t>("patch_width", 0),
             drawn_width = drawn.get<std::int64_t>("patched_width", 0);
  if (drawn_width == 0 && width != 0)
    refuse("this model (" + family +
           ") takes no patches. Leave the patch out, or load a model that takes one.");
  if (width != drawn_width)
    refuse("its tokens are " + std::to_string(width) + " wide, those of the model (" + family +
           ") " + std::to_string(drawn_width) + ". Load a patch that was made for this model.");
}

Value with_patch_joined(const Value& model, const Value& patch, double strength, Record given) {
  const Value settings = model_settings(model), before = settings.field(kModelPatches),
              settings_of_patch = model_settings(patch);
  const std::string prefix = "model_patch." + std::to_string(before.count()) + ".";
  const Checkpoint file = model_checkpoint(patch);
  const Value built_of = settings.field(kPatchedConfig);
  const Value told = Record(settings_of_patch.field("patch_config"))
                         .set("prefix", value_of(prefix))
                         .set("file", value_of(file.path()))
                         .set("strength", value_of(strength))
                         .value();
  const Value config =
      Record(built_of).set(kModelPatches, appended(built_of.field(kModelPatches), told)).value();
  given.set("model", patch);
  Record all(settings);
  all.set(kPatchedConfig, config).set(kModelPatches, appended(before, given.value()));
  // Who tells of sparse attention builds the model of this one.
  if (settings.has(kSparseConfig)) all.set(kSparseConfig, config);
  return with_settings(joined_model(model, file, prefix, config), all.value());
}

}  // namespace heddle::blocks
