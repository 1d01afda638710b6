#include "saved_tensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include <heddle/diffusion/module_names.h>
#include <heddle/weight_change.hpp>

#include "checkpoint_parts.h"

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

// A layer that a LoRA makes wider has no place in the file of the narrower model.
void require_own_width(const Value& model) {
  const Value settings = model_settings(model),
              wider = settings.field("widened_config").field("widened");
  if (wider.count() == 0) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "model: the LoRA '" + wider.item(0).get<std::string>("file", "") +
                  "' makes its layer " + settings.get<std::string>("widens", "") +
                  " wider, which is not saved. Save the model without this LoRA, and load the LoRA "
                  "behind the loader of what is saved.");
}

// Where Stable Diffusion 1.x and 2.x, SDXL and its refiner have a text encoder, `names` being all
// of them; empty for others.
std::string classic_prefix(const std::string& name, const std::set<std::string>& names) {
  const bool has_g = names.count("clip_g") != 0;
  if (name == "clip_l")
    return has_g ? "conditioner.embedders.0.transformer." : "cond_stage_model.transformer.";
  if (name == "clip_h") return "cond_stage_model.model.";
  if (name == "clip_g")
    return names.count("clip_l") != 0 ? "conditioner.embedders.1.model."
                                      : "conditioner.embedders.0.model.";
  return "";
}

// An encoder under the prefix above. ComfyUI looks for "text_model." in CLIP-L's names, which not
// every version of transformers writes; under the prefixes of OpenCLIP's it reads OpenCLIP's names,
// and those of transformers behind "transformer.".
void add_classic(const Value& model, const std::string& prefix, std::vector<SavedTensor>& all) {
  const Checkpoint file = model_checkpoint(model);
  const bool is_open = file.sub("transformer.resblocks.").size() > 0,
             is_of_open = prefix.ends_with(".model.");
  const std::string before = is_of_open && !is_open && file.sub("transformer.").size() == 0
                                 ? prefix + "transformer."
                                 : prefix;
  const std::size_t first = all.size();
  add_tensors(model, before, all);
  for (std::size_t i = first; i < all.size(); ++i)
    for (const char* inner : {"embeddings.", "encoder.", "final_layer_norm."})
      if (all[i].name.compare(before.size(), std::strlen(inner), inner) == 0)
        all[i].name.insert(before.size(), "text_model.");
}

}  // namespace

void add_tensors(const Value& model, const std::string& prefix, std::vector<SavedTensor>& all) {
  require_own_width(model);
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
      all.push_back(
          {name.starts_with(kViewProjection) ? name : prefix + name, model, {{name}}, {}});
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

void add_encoders_beside(const Value& model, const Value& clip, std::vector<SavedTensor>& all) {
  if (model_family(model) != "unet")
    return add_encoders(clip, "text_encoders.", ".transformer.", all);
  const Value list = encoders_in(clip);
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    names.insert(list.item(i).get<std::string>("name", ""));
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const std::string name = list.item(i).get<std::string>("name", ""),
                      prefix = classic_prefix(name, names);
    if (prefix.empty())
      throw Error(HEDDLE_UNSUPPORTED,
                  "clip: a checkpoint of Stable Diffusion has no place for the "
                  "text encoder " +
                      name + ". Save it with CLIPSave.");
    add_classic(list.item(i).field("model"), prefix, all);
  }
}

void add_tower_beside(const Value& model, const Value& tower, std::vector<SavedTensor>& all) {
  const Value settings = model_settings(model);
  const bool is_unclip = settings.has("picture_width") && !settings.has("size_numbers"),
             is_video = model_family(model) == "svd", is_view = settings.has("view_context_width");
  if (!is_video && !is_unclip && !is_view)
    throw Error(HEDDLE_UNSUPPORTED,
                "model: a checkpoint of the family '" + model_family(model) +
                    "' has no place for a vision tower. Save it with CheckpointSave.");
  const Value seeing = tower.field("model");
  if (!seeing.is(HEDDLE_KIND_MODEL))
    throw Error(HEDDLE_INVALID_ARGUMENT, "clip_vision: it holds no model. Link a loader.");
  const Checkpoint file = model_checkpoint(seeing);
  const auto starts = [](const std::string& name, std::initializer_list<const char*> begins) {
    return std::any_of(begins.begin(), begins.end(),
                       [&](const char* begin) { return name.starts_with(begin); });
  };
  // A file of a whole CLIP has a text encoder beside, and OpenCLIP's tower a name there.
  constexpr std::string_view kVisual = "visual.";
  bool is_named = false, is_whole = false;
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    is_named |= file.name(i).starts_with(kVisual);
    is_whole |= file.name(i).starts_with("vision_model.");
  }
  const std::string prefix = is_video ? kVideoTower : is_view ? kViewTower : kUnclipTower;
  for (std::uint32_t i = 0; i < file.size(); ++i) {
    const std::string name = file.name(i);
    const bool is_taken = is_named   ? name.starts_with(kVisual)
                          : is_whole ? starts(name, {"vision_model.", "visual_projection."})
                                     : true;
    if (!is_taken || name.ends_with(".position_ids")) continue;
    all.push_back({prefix + (is_named ? name.substr(kVisual.size()) : name), seeing, {{name}}, {}});
  }
}

void add_vae_beside(const Value& model, const Value& vae, std::vector<SavedTensor>& all) {
  const std::string family = model_family(model),
                    own = model_settings(model).get<std::string>("autoencoder_prefix", "");
  if (!own.empty()) return add_vae(vae, own, all);
  add_vae(vae,
          family == "unet" || family == "sd3" || family == "svd" ? "first_stage_model." : "vae.",
          all);
}

namespace {

// A number as a tensor: the first one of a vector of the model, changed into it.
SavedTensor number_in(const Value& model, const std::string& vector, const char* name,
                      double number) {
  const Part place{vector, 0, 1};
  const Value changed = with_changes(
      model, model_checkpoint(model),
      {{place, name + std::to_string(std::bit_cast<std::uint64_t>(number)),
        [number](std::int64_t, std::int64_t, float* numbers) { *numbers = float(number); }}});
  return {name, changed, {place}, {1}, HEDDLE_F32};
}

// A vector of floats among those of a model; empty where there is none.
std::string vector_of_floats(const Value& model, const std::vector<SavedTensor>& all) {
  const Checkpoint file = model_checkpoint(model);
  for (const SavedTensor& tensor : all) {
    if (tensor.parts.empty()) continue;
    const std::string& name = tensor.parts.front().tensor;
    const heddle_tensor_info& info = file.info(name);
    const bool is_float =
        info.dtype == HEDDLE_F32 || info.dtype == HEDDLE_F16 || info.dtype == HEDDLE_BF16;
    if (is_float && info.rank == 1 && info.shape[0] > 0) return name;
  }
  return "";
}

}  // namespace

bool add_training_marks(const Value& model, std::vector<SavedTensor>& all) {
  const Value settings = model_settings(model);
  if (model_family(model) != "unet" || !settings.has("size_numbers")) return true;
  const auto sampling = settings.get<std::string>("sampling", ""),
             table = settings.get<std::string>("noise_table", "");
  std::vector<const char*> marks;
  const bool is_velocity = sampling == "v_prediction",
             is_discrete = table == "discrete" || table == "discrete_zero_snr";
  if (is_velocity && is_discrete) marks.push_back("v_pred");
  if (is_velocity && table == "discrete_zero_snr") marks.push_back("ztsnr");
  if (sampling == "edm" && settings.has("latent_means")) marks = {"edm_mean", "edm_std"};
  const std::vector<Part> nothing{{all.front().parts.front().tensor, 0, 0}};
  for (const char* mark : marks) all.push_back({mark, model, nothing, {0}});
  if (!is_velocity || table != "continuous_edm") return true;
  const std::string vector = vector_of_floats(model, all);
  if (vector.empty()) return false;
  for (const auto& [mark, key] : {std::pair("edm_vpred.sigma_max", "noise_highest"),
                                  std::pair("edm_vpred.sigma_min", "noise_lowest")})
    all.push_back(number_in(model, vector, mark, settings.get<double>(key, 0.0)));
  return true;
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
