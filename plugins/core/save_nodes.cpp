#include "save_nodes.h"

#include <set>
#include <vector>

#include <heddle/diffusion/module_names.h>
#include <heddle/model.hpp>

#include "plugins/blocks/saved_files.h"

namespace heddle::loaders {
namespace {

// The family's names where they differ from the file's.
std::vector<SavedTensor> original_tensors(const Value& model, const Checkpoint& file) {
  const std::string family = model_family(model);
  const auto* desc = find_provided<heddle_module_names_desc>(
      HEDDLE_MODULE_NAMES, [&](const heddle_module_names_desc& each) {
        return each.size >= sizeof each && each.originals != nullptr && family == each.family;
      });
  std::vector<SavedTensor> list;
  if (desc == nullptr) return list;
  struct To {
    const Value& model;
    std::vector<SavedTensor>& list;
  } to{model, list};
  const auto found = [](void* raw, const char* tensor, std::uint32_t count,
                        const heddle_part* const* parts, std::uint32_t rank,
                        const std::int64_t* shape) {
    const To& into = *static_cast<To*>(raw);
    SavedTensor& saved = into.list.emplace_back(SavedTensor{tensor, into.model, {}, {}});
    for (std::uint32_t i = 0; i < count; ++i)
      saved.parts.push_back({parts[i]->tensor, parts[i]->begin, parts[i]->end});
    if (shape != nullptr) saved.shape.assign(shape, shape + rank);
  };
  check(desc->originals(services.host, file.raw(), found, &to));
  return list;
}

// Files of whole CLIPs have more than the text encoder, and some a table of its positions.
bool is_of_model(const std::string& tensor) {
  return !tensor.starts_with("vision_model.") && !tensor.starts_with("visual_projection.") &&
         !tensor.ends_with(".position_ids");
}

void add_tensors(const Value& model, const std::string& prefix, std::vector<SavedTensor>& all) {
  const Checkpoint file = model_checkpoint(model);
  std::set<std::string> taken;  // names, and tensors that have one
  for (SavedTensor& saved : original_tensors(model, file)) {
    taken.insert(saved.name);
    for (const Part& part : saved.parts) taken.insert(part.tensor);
    saved.name = prefix + saved.name;
    all.push_back(std::move(saved));
  }
  for (std::uint32_t i = 0; i < file.size(); ++i)
    if (const std::string name = file.name(i); taken.count(name) == 0 && is_of_model(name))
      all.push_back({prefix + name, model, {{name}}, {}});
}

// Both sides are of one file; one that only decodes has no encoder.
void add_vae(const Value& vae, const std::string& prefix, std::vector<SavedTensor>& all) {
  if (!vae.has("decoder"))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "vae: there is none: the file that it comes from holds no autoencoder");
  add_tensors(vae.field("decoder"), prefix, all);
}

Value encoders_in(const Value& clip) {
  if (clip.has("missing")) throw Error(HEDDLE_NOT_FOUND, clip.get<std::string>("missing", ""));
  return clip.field("encoders");
}

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

}  // namespace

void ModelSave::execute(Context& ctx) {
  std::vector<SavedTensor> tensors;
  add_tensors(ctx[model], "model.diffusion_model.", tensors);
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
  add_tensors(ctx[model], "model.diffusion_model.", tensors);
  const Value list = encoders_in(ctx[clip]);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    add_tensors(encoder.field("model"),
                "text_encoders." + encoder.get<std::string>("name", "") + ".transformer.", tensors);
  }
  add_vae(ctx[vae], "vae.", tensors);
  save<CheckpointSave>(ctx, ctx[filename_prefix], tensors);
}

}  // namespace heddle::loaders
