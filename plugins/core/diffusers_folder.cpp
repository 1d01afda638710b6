#include "diffusers_folder.h"

#include "clip_value.h"
#include "model_files.h"
#include "model_roles.h"
#include "vae_value.h"

namespace heddle::loaders {
namespace {

namespace fs = std::filesystem;

// model_index.json maps a part to [library, class], or to [null, null] when there is none.
bool has_part(const Value& index, const std::string& part) {
  const Value entry = index.field(part.c_str());
  return entry.count() == 2 && entry.item(1).is(HEDDLE_KIND_STR);
}

Value read_index(const fs::path& folder) {
  const fs::path path = folder / "model_index.json";
  const Value index = read_json_if_there(path);
  if (!index)
    throw Error(HEDDLE_NOT_FOUND, path.string() +
                                      ": there is no such file, so this is no diffusers folder, or "
                                      "its download is incomplete.");
  if (!index.is(HEDDLE_KIND_RECORD))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                path.string() + ": expected an object that names the pipeline's parts.");
  return index;
}

[[noreturn]] void refuse(const fs::path& folder, const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              (folder / "model_index.json").string() + ": the pipeline has no " + what);
}

Value read_denoiser(Context& ctx, const fs::path& folder, const Value& index) {
  const char* part = has_part(index, "transformer") ? "transformer"
                     : has_part(index, "unet")      ? "unet"
                                                    : nullptr;
  if (part == nullptr) refuse(folder, "'transformer' and no 'unet'. Nothing in it can draw.");
  const fs::path place = folder / part;
  const Value model = build_for(ctx, "diffusion_model", Checkpoint::open(place.string()),
                                read_json_if_there(place / "config.json"));
  const Value scheduler = read_json_if_there(folder / "scheduler" / "scheduler_config.json");
  // FLUX.2's shift depends on the picture's size and on the number of steps (Flux2Scheduler).
  const bool is_told = model_settings(model).get<std::string>("family", "") != "flux2";
  if (!scheduler || !is_told) return model;
  return with_settings(model, with_schedule(model_settings(model), scheduler).value());
}

// What CLIPLoader calls the use of a text encoder that several families have; else empty.
std::string pipeline_type(const Value& index) {
  const std::string name = index.get<std::string>("_class_name", "");
  return name.starts_with("Flux2")    ? "flux2"
         : name.starts_with("Flux3")  ? "flux3"
         : name.starts_with("Krea2")  ? "krea2"
         : name.starts_with("Chroma") ? "chroma"
                                      : "";
}

Value read_clip(Context& ctx, const fs::path& folder, const Value& index) {
  std::vector<Value> encoders;
  for (const char* suffix : {"", "_2", "_3"}) {
    const std::string part = std::string("text_encoder") + suffix;
    if (has_part(index, part))
      encoders.push_back(folder_encoder(ctx, {folder, part, std::string("tokenizer") + suffix}));
  }
  if (encoders.empty())
    return no_clip(folder.string() +
                   ": this folder has no text encoder. Load one from a file of its own, for "
                   "instance with CLIPLoader, or what sees pictures with CLIPVisionLoader.");
  if (encoders.size() == 1 && is_language_encoder(encoders[0]))
    return language_clip(ctx, encoders[0], pipeline_type(index), folder.string());
  const std::string where = folder.string(), type = pipeline_type(index);
  return clip_value(type == "chroma" ? type : clip_type(encoders, where), encoders, where);
}

}  // namespace

Record with_schedule(const Value& settings, const Value& scheduler) {
  Record changed(settings);
  const auto table = settings.get<std::string>("noise_table", "");
  if (table.starts_with("discrete") && table != "discrete_flow") {
    if (scheduler.get<std::string>("prediction_type", "") == "v_prediction")
      changed.set("sampling", value_of("v_prediction"));
    if (scheduler.get<std::string>("prediction_type", "") == "epsilon")
      changed.set("sampling", value_of("eps"));
    if (scheduler.get<bool>("rescale_betas_zero_snr", false))
      changed.set("noise_table", value_of("discrete_zero_snr"));
    return changed;
  }
  if (scheduler.get<bool>("use_dynamic_shifting", false))
    return changed.set("noise_table", value_of("flux"))
        .set("noise_mu", value_of(scheduler.get<double>("max_shift", 1.15)));
  if (scheduler.has("shift"))
    changed.set("noise_table", value_of("discrete_flow"))
        .set("noise_shift", value_of(scheduler.get<double>("shift", 1.0)));
  return changed;
}

Pipeline read_pipeline(Context& ctx, const fs::path& folder) {
  const Value index = read_index(folder);
  if (!has_part(index, "vae")) refuse(folder, "'vae', which turns latents into pictures.");
  const fs::path vae_folder = folder / "vae";
  const Value vae = vae_value(ctx, Checkpoint::open(vae_folder.string()),
                              read_json_if_there(vae_folder / "config.json"));
  const Value model = with_latents_of(read_denoiser(ctx, folder, index), vae);
  return {model, read_clip(ctx, folder, index), vae};
}

}  // namespace heddle::loaders
