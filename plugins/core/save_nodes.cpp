#include "save_nodes.h"

#include <vector>

#include "plugins/blocks/saved_files.h"
#include "saved_tensors.h"

namespace heddle::loaders {
namespace {

// ComfyUI's metadata: the workflow, as JSON texts.
template <class Node>
void save(Context& ctx, const std::string& prefix, const std::vector<SavedTensor>& tensors,
          std::vector<std::pair<std::string, std::string>> metadata = {}) {
  const blocks::WorkflowText workflow = blocks::workflow_text<Node>(ctx);
  for (const blocks::WorkflowPart& part : blocks::workflow_parts(workflow))
    metadata.emplace_back(part.key, part.json);
  blocks::SavedFiles(ctx, "output", prefix, {}, workflow.prompt)
      .make([&](const std::string& path) { return save_tensors(ctx, path, tensors, metadata); },
            ".safetensors");
}

// With what says how it was trained.
void add_denoiser(Context& ctx, const Value& model, std::vector<SavedTensor>& all) {
  add_tensors(model, "model.diffusion_model.", all);
  if (model_settings(model).field("model_patches").count() > 0)
    ctx.warn(
        "model: the model patches on it are no part of what is saved, as in ComfyUI. Load "
        "them from their own files behind the loader of what is saved.");
  if (!add_training_marks(model, all))
    ctx.warn(
        "model: none of its tensors is of floats, so that the file cannot say over which noise "
        "levels it predicts velocities. Link ModelSamplingContinuousEDM behind the loader of what "
        "is saved.");
}

}  // namespace

void ModelSave::execute(Context& ctx) {
  std::vector<SavedTensor> tensors;
  add_denoiser(ctx, ctx[model], tensors);
  save<ModelSave>(ctx, ctx[filename_prefix], tensors);
}

void CLIPSave::execute(Context& ctx) {
  const Value list = encoders_in(ctx[clip]);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    std::vector<SavedTensor> tensors;
    add_tensors(encoder.field("model"), "", tensors);
    save<CLIPSave>(ctx, ctx[filename_prefix] + "_" + encoder.get<std::string>("name", ""), tensors,
                   {{"format", "pt"}});
  }
}

void VAESave::execute(Context& ctx) {
  std::vector<SavedTensor> tensors;
  add_vae(ctx[vae], "", tensors);
  save<VAESave>(ctx, ctx[filename_prefix], tensors);
}

void CheckpointSave::execute(Context& ctx) {
  std::vector<SavedTensor> tensors;
  add_denoiser(ctx, ctx[model], tensors);
  add_encoders_beside(ctx[model], ctx[clip], tensors);
  add_vae_beside(ctx[model], ctx[vae], tensors);
  save<CheckpointSave>(ctx, ctx[filename_prefix], tensors);
}

void ImageOnlyCheckpointSave::execute(Context& ctx) {
  std::vector<SavedTensor> tensors;
  add_denoiser(ctx, ctx[model], tensors);
  add_tower_beside(ctx[model], ctx[clip_vision], tensors);
  add_vae_beside(ctx[model], ctx[vae], tensors);
  save<ImageOnlyCheckpointSave>(ctx, ctx[filename_prefix], tensors);
}

}  // namespace heddle::loaders
