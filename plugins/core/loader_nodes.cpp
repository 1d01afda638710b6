#include "loader_nodes.h"

#include <array>

#include "audio_loader_nodes.h"
#include "checkpoint_config.h"
#include "checkpoint_parts.h"
#include "clip_value.h"
#include "diffusers_folder.h"
#include "model_files.h"
#include "model_roles.h"
#include "plugins/blocks/clip_stop.h"
#include "vae_value.h"

namespace heddle::loaders {
namespace {

// The file that a literal input names; one that is linked is known by what it comes from.
std::uint64_t fingerprint_of_inputs(Context& ctx,
                                    std::initializer_list<const Input<std::string>*> inputs) {
  std::vector<std::filesystem::path> paths;
  for (const Input<std::string>* input : inputs)
    if (ctx.has(*input)) paths.push_back(find_file(ctx, input->widget.source, ctx[*input]));
  return fingerprint_of(ctx, paths);
}

Checkpoint open(Context& ctx, const Input<std::string>& input) {
  return Checkpoint::open(find_file(ctx, input.widget.source, ctx[input]).string());
}

// The autoencoder's part: whatever is under one of the prefixes of whole checkpoints; empty when
// nothing is.
std::optional<Checkpoint> autoencoder_part(const Checkpoint& file, const Value& denoiser = {}) {
  if (denoiser) {  // files of some have two
    const auto prefix = model_settings(denoiser).get<std::string>("autoencoder_prefix", "");
    if (!prefix.empty())
      if (Checkpoint part = file.sub(prefix); part.size() > 0) return part;
  }
  for (const char* prefix : {"vae.", "first_stage_model."})
    if (Checkpoint part = file.sub(prefix); part.size() > 0) return part;
  return std::nullopt;
}

// An autoencoder with the statistics of latents that the diffusion model beside it was trained
// with.
Value with_statistics_of(const Value& autoencoder, const Value& denoiser) {
  const Value settings = model_settings(denoiser);
  if (!settings.has("latent_means") || autoencoder.has("latent_means")) return autoencoder;
  return Record(autoencoder)
      .set("latent_means", settings.field("latent_means"))
      .set("latent_deviations", settings.field("latent_deviations"))
      .value();
}

// What the diffusion model beside it knows of an autoencoder's latents, where it does.
Value latents_told_by(const Value& denoiser) {
  const Value settings = model_settings(denoiser);
  if (!settings.has("latent_scale")) return {};
  return Record()
      .set("scaling_factor", settings.field("latent_scale"))
      .set("shift_factor", settings.field("latent_shift"))
      .value();
}

// family: of the diffusion model beside it.
Value checkpoint_clip(Context& ctx, const Checkpoint& file, const std::string& family) {
  if (const Checkpoint words = file.sub(kDetectionTexts); words.size() > kFewTensors)
    return detection_clip(ctx, words);
  std::vector<Value> encoders;
  const Checkpoint all = file.sub("text_encoders.");  // tokenizers stand there by themselves
  for (const char* name :
       {"qwen25_7b", "qwen3_4b", "qwen3_8b", "mistral3_24b", "gemma2_2b", "qwen3vl_4b"})
    if (const Checkpoint part = encoder_part(file, name); part.size() > 0)
      return language_clip(
          ctx, single_file_encoder(ctx, part, &all),
          family == "flux2" || family == "flux3" || family == "krea2" ? family : "", file.path());
  for (const char* name : {"clip_l", "clip_g", "t5xxl", "umt5xxl"}) {
    const Checkpoint part = encoder_part(file, name);
    if (part.size() > 0) encoders.push_back(single_file_encoder(ctx, part, &all));
  }
  if (encoders.empty())
    for (const Checkpoint& part : classic_encoder_parts(file))
      encoders.push_back(single_file_encoder(ctx, part));
  if (encoders.empty())
    return no_clip(
        file.path() +
        ": this checkpoint has no text encoder that is known ('cond_stage_model.', "
        "'conditioner.embedders.', 'text_encoders.clip_l.transformer.', "
        "'text_encoders.clip_g.transformer.', 'text_encoders.t5xxl.transformer.', "
        "'text_encoders.umt5xxl.transformer.', "
        "'text_encoders.qwen25_7b.transformer.', 'text_encoders.qwen3_4b.transformer.', "
        "'text_encoders.gemma2_2b.transformer.', 'text_encoders.qwen3vl_4b.transformer.'). "
        "Load them from their own files, for instance with CLIPLoader.");
  const bool is_told = family == "sd3" || family == "chroma" || family == "ltxv";
  return clip_value(is_told ? family : clip_type(encoders, file.path()), encoders, file.path());
}

Value single_clip(Context& ctx, const Checkpoint& file, const std::string& type) {
  // Whatever the type is, as in ComfyUI: nothing else has one.
  if (has_text_projection(file)) return projected_clip(ctx, file, file);
  const Value encoder = single_file_encoder(ctx, file);
  if (is_language_encoder(encoder)) return language_clip(ctx, encoder, type, file.path());
  if (type != "stable_diffusion" && type != "sd3" && type != "chroma" && type != "wan" &&
      type != "ltxv")
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": this is the text encoder " + encoder.get<std::string>("name", "") +
                    ", of which type '" + type +
                    "' makes no CLIP. Known: clip_l, clip_h or clip_g with type stable_diffusion, "
                    "clip_l, clip_g or t5xxl with sd3, t5xxl with chroma and ltxv, umt5xxl with "
                    "wan, qwen2.5 with "
                    "qwen_image, qwen3 with lumina2; for FLUX take DualCLIPLoader or "
                    "DualCLIPLoaderGGUF with type flux.");
  return clip_value(type, {encoder}, file.path());
}

Value dual_clip(Context& ctx, const std::array<Checkpoint, 2>& files, const std::string& type) {
  if (type == "ltxv") return projected_clip(ctx, files[0], files[1]);
  const std::string where = files[0].path() + " and " + files[1].path();
  if (type == "hunyuan_video" || type == "hunyuan_video_15")
    return hunyuan_clip(
        ctx, type, {single_file_encoder(ctx, files[0]), single_file_encoder(ctx, files[1])}, where);
  if (type != "flux" && type != "sdxl" && type != "sd3")
    throw Error(
        HEDDLE_UNSUPPORTED,
        "type '" + type +
            "' is not known yet. Known: flux (clip_l and t5xxl), sdxl (clip_l and clip_g), "
            "sd3 (two of clip_l, clip_g and t5xxl), ltxv (gemma3 and the projection of LTX 2), "
            "hunyuan_video_15 (qwen2.5 and byt5), hunyuan_video (llama3 and clip_l).");
  return clip_value(type, {single_file_encoder(ctx, files[0]), single_file_encoder(ctx, files[1])},
                    where);
}

// The type is what the encoders make up.
Value several_clips(Context& ctx, std::initializer_list<const Input<std::string>*> inputs) {
  std::vector<Value> encoders;
  std::string where;
  for (const Input<std::string>* input : inputs) {
    const Checkpoint file = open(ctx, *input);
    encoders.push_back(single_file_encoder(ctx, file));
    where += (where.empty() ? "" : ", ") + file.path();
  }
  return clip_value(clip_type(encoders, where), encoders, where);
}

// The tiny autoencoders, each in two files of vae_approx, with the latents they were trained on: of
// Stable Diffusion, SDXL, Stable Diffusion 3, FLUX.1, as published with these.
struct Taesd {
  const char* name;
  double scale, shift;
};
constexpr Taesd kTaesds[] = {{"taesd", 0.18215, 0},
                             {"taesdxl", 0.13025, 0},
                             {"taesd3", 1.5305, 0.0609},
                             {"taef1", 0.3611, 0.1159}};

const Taesd* taesd_named(const std::string& name) {
  for (const Taesd& taesd : kTaesds)
    if (name == taesd.name) return &taesd;
  return nullptr;
}

// "taesd_decoder" with whatever ending it has.
std::optional<std::filesystem::path> taesd_file(Context& ctx, const Taesd& taesd,
                                                const char* side) {
  for (const char* ending : {".safetensors", ".sft", ".pth", ".pt", ".ckpt", ".bin"})
    if (auto path = try_find(ctx, "vae_approx", std::string(taesd.name) + side + ending))
      return path;
  return std::nullopt;
}

Value load_taesd(Context& ctx, const Taesd& taesd) {
  const auto decoder = taesd_file(ctx, taesd, "_decoder"),
             encoder = taesd_file(ctx, taesd, "_encoder");
  if (!decoder)
    throw Error(HEDDLE_NOT_FOUND, std::string("vae_name: '") + taesd.name +
                                      "' is made of files in vae_approx, but there is no '" +
                                      taesd.name +
                                      "_decoder.safetensors' (or .pth). Download it there.");
  std::optional<Checkpoint> encoding;
  if (encoder) encoding.emplace(Checkpoint::open(encoder->string()));
  return taesd_value(ctx, Checkpoint::open(decoder->string()), encoding ? &*encoding : nullptr,
                     taesd.scale, taesd.shift);
}

// A standalone file may carry the prefix of a whole checkpoint.
Value lone_denoiser(Context& ctx, const Checkpoint& file) {
  const Checkpoint part = file.sub("model.diffusion_model.");
  return build_denoiser(ctx, part.size() > kFewTensors ? part : file, training_marks(file));
}

// fp8_e4m3fn and fp8_e5m2 only store: their numbers are widened to be multiplied. The fast one is
// multiplied in 8 bits where a device can.
Checkpoint loaded_as(const Checkpoint& file, const std::string& weight_dtype) {
  if (weight_dtype == "fp8_e4m3fn_fast") return file.scale_to_fp8();
  if (weight_dtype == "fp8_e4m3fn") return file.cast(HEDDLE_F8_E4M3);
  if (weight_dtype == "fp8_e5m2") return file.cast(HEDDLE_F8_E5M2);
  return file;
}

}  // namespace

void DiffusersLoader::execute(Context& ctx) {
  const Pipeline pipeline =
      read_pipeline(ctx, find_file(ctx, model_path.widget.source, ctx[model_path]));
  ctx[model] = pipeline.model;
  ctx[clip] = pipeline.clip;
  ctx[vae] = pipeline.vae;
}
std::uint64_t DiffusersLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&model_path});
}

namespace {

// Whatever its file says; a table of noise without signal at its end stays.
Value with_velocities(const Value& denoiser) {
  constexpr const char* kZeroSnr = "discrete_zero_snr";
  const Value settings = model_settings(denoiser);
  const bool is_zero_snr = settings.get<std::string>("noise_table", "") == kZeroSnr;
  return with_settings(denoiser,
                       Record(settings)
                           .set("sampling", value_of("v_prediction"))
                           .set("noise_table", value_of(is_zero_snr ? kZeroSnr : "discrete"))
                           .value());
}

struct Drawing {
  Value denoiser, autoencoder;
};
Drawing load_drawing(Context& ctx, const Checkpoint& file, const CheckpointConfig& told = {}) {
  Value denoiser =
      with_view_projection(build_denoiser(ctx, denoiser_part(file), training_marks(file)), file);
  if (told.predicts_velocity) denoiser = with_velocities(denoiser);
  Value autoencoder = Record().value();
  if (const std::optional<Checkpoint> part = autoencoder_part(file, denoiser)) {
    autoencoder = with_statistics_of(vae_value(ctx, *part, latents_told_by(denoiser)), denoiser);
    denoiser = with_latents_of(denoiser, autoencoder);
  }
  return {denoiser, autoencoder};
}

template <class Loader>
void load_checkpoint(Context& ctx, const Checkpoint& file, const CheckpointConfig& told = {}) {
  const Drawing made = load_drawing(ctx, file, told);
  ctx[Loader::model] = made.denoiser;
  const Value clip =
      checkpoint_clip(ctx, file, model_settings(made.denoiser).get<std::string>("family", ""));
  ctx[Loader::clip] = told.stop_at_layer && clip.has("encoders")
                          ? blocks::stopped_clip(ctx, clip, *told.stop_at_layer)
                          : clip;
  ctx[Loader::vae] = made.autoencoder;
}

Value tower_in(Context& ctx, const Checkpoint& part) {
  return Record().set("model", build_for(ctx, "vision_encoder", part, Value())).value();
}

}  // namespace

void CheckpointLoaderSimple::execute(Context& ctx) {
  load_checkpoint<CheckpointLoaderSimple>(ctx, open(ctx, ckpt_name));
}
std::uint64_t CheckpointLoaderSimple::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&ckpt_name});
}

void CheckpointLoader::execute(Context& ctx) {
  const CheckpointConfig told =
      read_checkpoint_config(find_file(ctx, config_name.widget.source, ctx[config_name]));
  load_checkpoint<CheckpointLoader>(ctx, open(ctx, ckpt_name), told);
}
std::uint64_t CheckpointLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&config_name, &ckpt_name});
}

void unCLIPCheckpointLoader::execute(Context& ctx) {
  const Checkpoint file = open(ctx, ckpt_name);
  const Checkpoint tower = file.sub(kUnclipTower);
  if (tower.size() == 0)
    throw Error(HEDDLE_UNSUPPORTED,
                file.path() + ": none of its " + std::to_string(file.size()) +
                    " tensors begins with '" + kUnclipTower +
                    "', so it is no unCLIP checkpoint. Load it with CheckpointLoaderSimple.");
  load_checkpoint<unCLIPCheckpointLoader>(ctx, file);
  ctx[clip_vision] = tower_in(ctx, tower);
}
std::uint64_t unCLIPCheckpointLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&ckpt_name});
}

void ImageOnlyCheckpointLoader::execute(Context& ctx) {
  const Checkpoint file = open(ctx, ckpt_name);
  const Drawing made = load_drawing(ctx, file);
  ctx[model] = made.denoiser;
  ctx[vae] = made.autoencoder;
  for (const char* prefix : {kVideoTower, kUnclipTower, kViewTower})
    if (const Checkpoint tower = file.sub(prefix); tower.size() > 0) {
      ctx[clip_vision] = tower_in(ctx, tower);
      return;
    }
  throw Error(HEDDLE_UNSUPPORTED,
              file.path() + ": none of its " + std::to_string(file.size()) +
                  " tensors begins with '" + kVideoTower + "', '" + kUnclipTower + "' or '" +
                  kViewTower +
                  "', so it holds no vision tower. Load it with CheckpointLoaderSimple, and the "
                  "tower with CLIPVisionLoader.");
}
std::uint64_t ImageOnlyCheckpointLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&ckpt_name});
}

void UNETLoader::execute(Context& ctx) {
  ctx[model] = lone_denoiser(ctx, loaded_as(open(ctx, unet_name), ctx[weight_dtype]));
}
std::uint64_t UNETLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&unet_name});
}

void UnetLoaderGGUF::execute(Context& ctx) {
  ctx[model] = lone_denoiser(ctx, open(ctx, unet_name));
}
std::uint64_t UnetLoaderGGUF::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&unet_name});
}

void VAELoader::execute(Context& ctx) {
  if (std::string(ctx[vae_name]) == kPixelSpace) {
    ctx[vae] = pixel_space();
    return;
  }
  if (const Taesd* taesd = taesd_named(ctx[vae_name])) {
    ctx[vae] = load_taesd(ctx, *taesd);
    return;
  }
  const Checkpoint file = open(ctx, vae_name);
  const std::optional<Checkpoint> part = autoencoder_part(file);
  ctx[vae] = !part && is_audio_vae(ctx, file) ? audio_vae_value(ctx, file)
                                              : vae_value(ctx, part.value_or(file), Value());
}
std::uint64_t VAELoader::fingerprint(Context& ctx) {
  if (ctx.has(vae_name) && std::string(ctx[vae_name]) == kPixelSpace) return 0;
  if (const Taesd* taesd = ctx.has(vae_name) ? taesd_named(ctx[vae_name]) : nullptr) {
    std::vector<std::filesystem::path> paths;
    for (const char* side : {"_decoder", "_encoder"})
      if (const auto path = taesd_file(ctx, *taesd, side)) paths.push_back(*path);
    return fingerprint_of(ctx, paths);
  }
  return fingerprint_of_inputs(ctx, {&vae_name});
}

void CLIPLoader::execute(Context& ctx) {
  ctx[clip] = single_clip(ctx, open(ctx, clip_name), ctx[type]);
}
std::uint64_t CLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name});
}

void CLIPLoaderGGUF::execute(Context& ctx) {
  ctx[clip] = single_clip(ctx, open(ctx, clip_name), ctx[type]);
}
std::uint64_t CLIPLoaderGGUF::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name});
}

void DualCLIPLoader::execute(Context& ctx) {
  ctx[clip] = dual_clip(ctx, {open(ctx, clip_name1), open(ctx, clip_name2)}, ctx[type]);
}
std::uint64_t DualCLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name1, &clip_name2});
}

void LTXAVTextEncoderLoader::execute(Context& ctx) {
  ctx[clip] = projected_clip(ctx, open(ctx, text_encoder), open(ctx, ckpt_name));
}
std::uint64_t LTXAVTextEncoderLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&text_encoder, &ckpt_name});
}

void TripleCLIPLoader::execute(Context& ctx) {
  ctx[clip] = several_clips(ctx, {&clip_name1, &clip_name2, &clip_name3});
}
std::uint64_t TripleCLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name1, &clip_name2, &clip_name3});
}

void QuadrupleCLIPLoader::execute(Context& ctx) {
  ctx[clip] = several_clips(ctx, {&clip_name1, &clip_name2, &clip_name3, &clip_name4});
}
std::uint64_t QuadrupleCLIPLoader::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name1, &clip_name2, &clip_name3, &clip_name4});
}

void DualCLIPLoaderGGUF::execute(Context& ctx) {
  ctx[clip] = dual_clip(ctx, {open(ctx, clip_name1), open(ctx, clip_name2)}, ctx[type]);
}
std::uint64_t DualCLIPLoaderGGUF::fingerprint(Context& ctx) {
  return fingerprint_of_inputs(ctx, {&clip_name1, &clip_name2});
}

}  // namespace heddle::loaders
