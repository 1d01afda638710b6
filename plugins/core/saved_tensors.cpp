#include "saved_tensors.h"

#include <set>

#include <heddle/diffusion/module_names.h>

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

// Files of whole CLIPs have more than the text encoder, and some a table of its positions. What a
// patch brings is no part of the model.
bool is_of_model(const std::string& tensor) {
  return !tensor.starts_with("vision_model.") && !tensor.starts_with("visual_projection.") &&
         !tensor.starts_with("model_patch.") && !tensor.ends_with(".position_ids");
}

}  // namespace

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

void add_encoders(const Value& clip, const std::string& before, const std::string& behind,
                  std::vector<SavedTensor>& all) {
  const Value list = encoders_in(clip);
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value encoder = list.item(i);
    add_tensors(encoder.field("model"), before + encoder.get<std::string>("name", "") + behind,
                all);
  }
}

Shape shape_of(const SavedTensor& tensor) {
  if (!tensor.shape.empty()) return tensor.shape;
  const Checkpoint file = model_checkpoint(tensor.model);
  Shape shape;
  std::int64_t rows = 0;
  for (const Part& part : tensor.parts) {
    const heddle_tensor_info& info = file.info(part.tensor);
    shape.assign(info.shape, info.shape + info.rank);
    if (info.rank > 0) rows += (part.end < 0 ? info.shape[0] : part.end) - part.begin;
  }
  if (!shape.empty()) shape[0] = rows;
  return shape;
}

}  // namespace heddle::loaders
