#include "conditioning.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>

#include "animate_input.h"
#include "boxes.h"
#include "camera_input.h"
#include "frame_noise.h"
#include "guide_inputs.h"
#include "music_input.h"
#include "noised_picture.h"
#include "pair_latent.h"
#include "parallel_heads.h"
#include "picture_embeddings.h"
#include "picture_numbers.h"
#include "plugins/blocks/minimax_latents.h"
#include "reference_tiles.h"
#include "scail_input.h"
#include "sound_levels.h"
#include "sound_references.h"
#include "sources_input.h"
#include "vace_input.h"
#include "video_inputs.h"
#include "vision_input.h"

namespace heddle::samplers {
namespace {

void refuse_guides(const Value& entry, const Value& model) {
  if (entry.field(kKeyframes).count() == 0 || !latent_format(model_settings(model)).has_sound ||
      model_takes(model, kGuideFrames))
    return;
  throw Error(HEDDLE_UNSUPPORTED,
              "the conditioning tells of guides (LTXVAddGuide), which this model does not read "
              "yet. Leave that node out.");
}

void refuse_voices(const Value& entry, const Value& model) {
  if (!entry.has(kVoiceField) || model_takes(model, kVoice)) return;
  throw Error(HEDDLE_UNSUPPORTED,
              "the conditioning has a voice (LTXVReferenceAudio), which this model does not read. "
              "Leave that node out, or use a model of LTX 2.");
}

Tensor tensor_field(const Value& entry, const char* key, const char* input) {
  if (entry.has(key)) return entry.field(key).as<Tensor>();
  throw Error(HEDDLE_INVALID_ARGUMENT, std::string("the model reads '") + input +
                                           "', and the conditioning has no '" + key +
                                           "'. Encode the text with the CLIP of this model.");
}

Tensor host_number(Context& ctx, double number) {
  const Tensor tensor = ctx.make_host({1}, HEDDLE_F32);
  *tensor.data<float>() = float(number);
  return tensor;
}

// Factors, then what is added, of the three axes.
Tensor positions_of(Context& ctx, const Value& given) {
  const Tensor tensor = ctx.make_host({2, 3}, HEDDLE_F32);
  for (std::uint32_t i = 0; i < 6; ++i) tensor.data<float>()[i] = float(given.item(i).as<double>());
  return tensor;
}

// Numbers of the model's settings, as (1, n), or where a camera stands, for each item.
Tensor task_of(Context& ctx, const Value& entry, const Value& settings, std::int64_t items) {
  if (settings.has(kReadsCameras)) return cameras_of(ctx, entry, items);
  const Value numbers = settings.field("task_numbers");
  const Tensor tensor = ctx.make_host({1, numbers.count()}, HEDDLE_F32);
  for (std::uint32_t i = 0; i < numbers.count(); ++i)
    tensor.data<float>()[i] = float(numbers.item(i).as<double>());
  return tensor;
}

// Seconds between two pictures; 25 a second is what ComfyUI takes where no node says otherwise.
double frame_time_of(const Value& entry) {
  const double rate = entry.get<double>("frame_rate", 25.0);
  if (rate > 0) return 1 / rate;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "the conditioning's frame_rate is " + std::to_string(rate) +
                  ", of which no video has a length. Give LTXVConditioning one above 0.");
}

// 1 at the tokens of a text of so many that are of a picture.
Tensor picture_rows_of(Context& ctx, const Value& spans, std::int64_t tokens) {
  const Tensor made = ctx.make_host({tokens, 1}, HEDDLE_F32);
  float* const rows = made.data<float>();
  std::fill_n(rows, tokens, 0.0f);
  for (std::uint32_t k = 0; k < spans.count(); ++k) {
    const auto begin =
                   std::clamp<std::int64_t>(spans.item(k).item(0).as<std::int64_t>(), 0, tokens),
               end = std::clamp<std::int64_t>(spans.item(k).item(1).as<std::int64_t>(), begin,
                                              tokens);
    std::fill(rows + begin, rows + end, 1.0f);
  }
  return made;
}

// Pictures that the model is shown, with what goes with them.
void add_references(Context& ctx, Record& constants, const std::string& name, const Value& entry,
                    const Value& settings, const ConcatPlace& place) {
  const ReferenceLayout layout = *reference_layout(settings);
  if (layout.slots > 0) {
    for (const PlacedInput& input :
         placed_references(ctx, entry, layout, latent_format(settings), place.items))
      constants.set(input.name, value_of(input.tensor));
    return;
  }
  const ReferenceTokens shown =
      reference_tokens(ctx, entry, layout, latent_format(settings), place.grid, place.items);
  constants.set(name, value_of(shown.tokens)).set(kReferencePositions, value_of(shown.positions));
  if (shown.text_start) constants.set(kTextStart, value_of(shown.text_start));
  if (shown.timestep) constants.set(kReferenceTimestep, value_of(shown.timestep));
  if (wants_tiles(settings))
    constants.set(kReferencePools,
                  value_of(clip_pools(ctx, entry.field("reference_latents"), layout.patch)));
}

// Sounds that the model is shown, with what goes with them.
void add_sounds(Context& ctx, Record& constants, const std::string& name, const Value& entry,
                const Value& settings, const ConcatPlace& place) {
  const ReferenceTokens heard = sound_reference_tokens(ctx, entry, place.parts);
  constants.set(name, value_of(heard.tokens)).set(kHeardPositions, value_of(heard.positions));
  if (wants_tiles(settings))
    constants.set(kSoundPools, value_of(sound_pools(ctx, entry.field(blocks::kMinimaxSounds))));
}

// Sources or sounds that the model is shown, with their places.
void add_places(Context& ctx, Record& constants, const ConditioningInput& input, const Value& entry,
                const Value& settings, const ConcatPlace& place) {
  if (input.kind == ConditioningInput::Kind::kSources) {
    const SourceTokens seen = source_tokens_of(ctx, entry, settings, place.items);
    constants.set(input.name, value_of(seen.tokens)).set(kSourcePlaces, value_of(seen.places));
    return;
  }
  add_sounds(ctx, constants, input.name, entry, settings, place);
}

// Rows of numbers that a model reads with a width of its own: a text encoder of another model is
// noticed here, not in a matrix product.
void check_width(std::int64_t width, const Value& settings, const char* setting,
                 const char* field) {
  const std::int64_t wanted = settings.get<std::int64_t>(setting, width);
  if (wanted == width) return;
  const auto family = settings.get<std::string>("family", ""),
             encoder = settings.get<std::string>("text_encoder", "the CLIP of this model");
  throw Error(HEDDLE_INVALID_ARGUMENT,
              std::string("the conditioning's '") + field + "' is " + std::to_string(width) +
                  " wide, the model" + (family.empty() ? "" : " (" + family + ")") + " reads " +
                  std::to_string(wanted) + ". Encode the text with " + encoder + ".");
}

// What a vision tower saw, or byT5 made of what is written.
Tensor states_beside_text(Context& ctx, const Value& entry, const Value& settings,
                          std::int64_t items, ConditioningInput::Kind kind) {
  using Kind = ConditioningInput::Kind;
  if (kind == Kind::kVision) return vision_states(ctx, entry.field(kVisionOutput), settings, items);
  if (kind == Kind::kPoseVision) return vision_states(ctx, entry.field(kPoseSeen), settings, items);
  const Tensor written = tensor_field(entry, kGlyphStates, "byt5");
  check_width(written.size(-1), settings, "byt5_width", kGlyphStates);
  return fit_batch(ctx, written, items);
}

}  // namespace

Tensor fit_batch(Context& ctx, const Tensor& tensor, std::int64_t items) {
  const std::int64_t rows = tensor.size(0);
  if (rows < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning is empty. Link the CONDITIONING of a text encoder.");
  if (rows == fitted_rows(rows, items)) return tensor;
  if (rows > items) return tensor.slice(0, 0, items);
  Shape shape = tensor.shape();
  shape[0] = items;
  const Tensor whole = ctx.make(shape, tensor.dtype());
  for (std::int64_t at = 0; at < items; at += rows) {
    const std::int64_t count = std::min(rows, items - at);
    ops::copy_into(ctx, tensor.slice(0, 0, count), whole.slice(0, at, at + count));
  }
  return whole;
}

void check_text_width(std::int64_t width, const Value& model) {
  const Value settings = model_settings(model);
  if (settings.get<std::int64_t>("view_context_width", 0) == width) return;
  check_width(width, settings, "context_width", "cross_attn");
}

std::vector<ConditioningInput> conditioning_inputs(const Value& model) {
  using Kind = ConditioningInput::Kind;
  const auto& models = service<heddle_model_service>();
  std::vector<ConditioningInput> inputs;
  for (std::uint32_t i = 0; i < models.input_count(model.raw()); ++i) {
    std::uint32_t flags = 0;
    const std::string name = models.input(model.raw(), i, &flags);
    if (name == "x" || name == "timestep" || name == kTargetTimestep || name == kHint ||
        name == kMode || name == kKinds || name == kTokens || name == kVaceStrength ||
        name == kVideoHeads || name == kSoundHeads || name == kSourcePlaces ||
        std::ranges::count(kSoundInputs, name) > 0 ||
        (name == kSound && latent_format(model_settings(model)).has_sound))
      continue;
    if (name == "context")
      inputs.push_back({Kind::kText, name});
    else if (name == "y")
      inputs.push_back({is_told_task(model_settings(model)) ? Kind::kTask : Kind::kPooled, name});
    else if (name == "level" && model_settings(model).has("concat_levels"))
      inputs.push_back({Kind::kLevel, name});
    else if (name == "sizes" && model_settings(model).has("size_numbers"))
      inputs.push_back({Kind::kSizes, name});
    else if (name == "guidance")
      inputs.push_back({Kind::kGuidance, name});
    else if (name == "frame_time")
      inputs.push_back({Kind::kFrameTime, name});
    else if (name == kFirstTimestep)
      inputs.push_back({Kind::kFirstTimestep, name});
    else if (const auto noise = noise_input_kind(name))
      inputs.push_back({*noise, name});
    else if (const auto guided = guide_input_kind(name))
      inputs.push_back({*guided, name});
    else if (name == kPictureRows)
      inputs.push_back({Kind::kPictureRows, name});
    else if (name == "unguided")
      inputs.push_back({Kind::kUnguided, name});
    else if (name == "positions" && model_settings(model).has("positions"))
      inputs.push_back({Kind::kPositions, name});
    else if (name == "concat" && concat_layout(model_settings(model)))
      inputs.push_back({Kind::kConcat, name});
    else if (name == "vace" && model_settings(model).has("vace_channels"))
      inputs.push_back({Kind::kVace, name});
    else if (name == "vision" && model_settings(model).has("vision_width"))
      inputs.push_back({Kind::kVision, name});
    else if (const auto kind = video_input_kind(name, model_settings(model)))
      inputs.push_back({*kind, name});
    else if (name == "pose_context")
      inputs.push_back({Kind::kPoseText, name});
    else if (name == "pose_vision")
      inputs.push_back({Kind::kPoseVision, name});
    else if (name == "byt5" && model_settings(model).has("byt5_width"))
      inputs.push_back({Kind::kGlyphs, name});
    else if ((name == "references" || name == "reference.0") &&
             reference_layout(model_settings(model)))
      inputs.push_back({Kind::kReferences, name});
    else if (name == kSources)
      inputs.push_back({Kind::kSources, name});
    else if (name == kSoundReferences)
      inputs.push_back({Kind::kSoundReferences, name});
    else if (name == kMediaStart)
      inputs.push_back({Kind::kMediaStart, name});
    else if ((flags & HEDDLE_INPUT_OPTIONAL) == 0)
      throw Error(HEDDLE_UNSUPPORTED, "the model reads '" + name +
                                          "', which the samplers cannot give it yet. Use a model "
                                          "that draws from text alone.");
  }
  return inputs;
}

bool is_given(ConditioningInput::Kind kind, const Value& entry, const Value& latent) {
  using Kind = ConditioningInput::Kind;
  if (kind == Kind::kFrameNoise) return latent.has("noise_mask");
  if (kind == Kind::kVoice) return entry.has(kVoiceField);
  if (kind == Kind::kFirstTimestep) return entry.has(kGuidingFrame);
  if (kind == Kind::kSoundNoise) return latent.has("noise_mask") || entry.has(kVoiceField);
  if (is_guide_input(kind)) return is_guide_given(kind, entry);
  if (kind == Kind::kPictureRows) return entry.field(kImageSpans).count() > 0;
  if (kind == Kind::kApart) return lies_apart(entry);
  if (kind == Kind::kSources) return entry.field(kContextLatents).count() > 0;
  if (kind == Kind::kFramePlaces) return frames_lie_apart(entry);
  if (const char* const field = video_field(kind)) return entry.has(field);
  if (kind == Kind::kPoseText) return entry.has(kPoseText);
  if (kind == Kind::kPoseVision) return entry.has(kPoseSeen);
  if (kind == Kind::kReferences || kind == Kind::kReferenceFrame)
    return entry.field("reference_latents").count() > 0;
  if (kind == Kind::kSoundReferences) return entry.field(blocks::kMinimaxSounds).count() > 0;
  if (kind == Kind::kMediaStart) return entry.has(blocks::kMinimaxStart);
  if (kind == Kind::kVision) return entry.has(kVisionOutput);
  if (kind == Kind::kGlyphs) return entry.has(kGlyphStates);
  const bool unguided = entry.get<bool>("unguided", false);
  return kind == Kind::kGuidance ? !unguided : kind != Kind::kUnguided || unguided;
}

Value constants_of(Context& ctx, const Value& entry, const Value& model, const ConcatPlace& place) {
  using Kind = ConditioningInput::Kind;
  refuse_references(entry, model);
  refuse_guides(entry, model);
  refuse_voices(entry, model);
  refuse_poses(entry, model);
  refuse_sources(entry, model);
  check_pictures(entry, model);
  const Value settings = model_settings(model);
  const std::int64_t items = place.items;
  const std::optional<PictureLayout> pictures = picture_layout(settings);
  Record constants;
  for (const auto& [kind, name] : conditioning_inputs(model)) {
    if (!is_given(kind, entry, place.latent)) continue;
    if (kind == Kind::kText || kind == Kind::kPoseText) {
      const char* const field = kind == Kind::kText ? "cross_attn" : kPoseText;
      const Tensor text = tensor_field(entry, field, name.c_str());
      check_text_width(text.size(-1), model);
      constants.set(name, value_of(fit_batch(ctx, text, items)));
    } else if (kind == Kind::kPooled && is_of_pictures(entry, pictures)) {
      constants.set(name, value_of(pictures_of(ctx, entry, *pictures, place.seed)));
    } else if (kind == Kind::kPooled) {
      const Tensor pooled = tensor_field(entry, "pooled_output", name.c_str());
      check_width(pooled.size(-1), settings, "pooled_width", "pooled_output");
      constants.set(name, value_of(fit_batch(ctx, pooled, items)));
    } else if (kind == Kind::kTask) {
      constants.set(name, value_of(task_of(ctx, entry, settings, items)));
    } else if (kind == Kind::kLevel) {
      const auto level = std::int32_t(noise_level_of(entry, concat_layout(settings)->levels));
      constants.set(name, value_of(ctx.upload({1}, HEDDLE_I32, &level)));
    } else if (kind == Kind::kSizes) {
      constants.set(name, value_of(picture_numbers(ctx, entry, settings, place)));
    } else if (kind == Kind::kPositions) {
      constants.set(name, value_of(positions_of(ctx, settings.field("positions"))));
    } else if (kind == Kind::kReferences) {
      add_references(ctx, constants, name, entry, settings, place);
    } else if (kind == Kind::kSources || kind == Kind::kSoundReferences) {
      add_places(ctx, constants, {kind, name}, entry, settings, place);
    } else if (kind == Kind::kApart) {
      constants.set(name, value_of(host_number(ctx, 1.0)));
    } else if (kind == Kind::kMediaStart) {
      constants.set(name, value_of(host_number(ctx, entry.get<double>(blocks::kMinimaxStart, 0))));
    } else if (kind == Kind::kConcat) {
      constants.set(name, value_of(concat_of(ctx, entry, *concat_layout(settings),
                                             latent_format(settings), place)));
    } else if (kind == Kind::kVace) {
      const VaceInput given = vace_of(ctx, entry, settings, place);
      constants.set(name, value_of(given.contexts)).set(kVaceStrength, value_of(given.strength));
    } else if (is_video_input(kind)) {
      constants.set(name, value_of(video_input_of(ctx, kind, entry, settings, place)));
    } else if (kind == Kind::kVision || kind == Kind::kGlyphs || kind == Kind::kPoseVision) {
      constants.set(name, value_of(states_beside_text(ctx, entry, settings, items, kind)));
    } else if (kind == Kind::kFrameNoise || kind == Kind::kSoundNoise) {
      constants.set(name,
                    value_of(frame_noise_of(ctx, name, entry, place,
                                            settings.get<bool>("frame_noise_is_mean", false))));
    } else if (kind == Kind::kVoice) {
      const Tensor tokens = tensor_field(entry.field(kVoiceField), "tokens", name.c_str());
      constants.set(name, value_of(fit_batch(ctx, tokens, items)));
    } else if (is_guide_input(kind)) {
      constants.set(name, value_of(guide_input_of(ctx, kind, entry, place)));
    } else if (kind == Kind::kPictureRows) {
      const Tensor text = tensor_field(entry, "cross_attn", name.c_str());
      constants.set(name, value_of(picture_rows_of(ctx, entry.field(kImageSpans), text.size(1))));
    } else if (kind == Kind::kFrameTime) {
      constants.set(name, value_of(host_number(ctx, frame_time_of(entry))));
    } else if (kind == Kind::kFirstTimestep) {
      constants.set(name, value_of(host_number(ctx, entry.get<double>(kGuidingFrame, 0.0))));
    } else if (kind == Kind::kUnguided) {
      constants.set(name, value_of(host_number(ctx, 1.0)));
    } else {
      // 3.5 is what ComfyUI gives FLUX when no node says otherwise.
      const auto usual = settings.get<double>("default_guidance", 3.5);
      constants.set(name, value_of(host_number(ctx, entry.get<double>("guidance", usual))));
    }
  }
  add_boxes(ctx, constants, entry, model, place.box ? place.box->size : place.grid);
  return constants.value();
}

std::vector<Value> entries_of(const Value& list) {
  if (list.count() == 0)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "the conditioning is an empty list. Link a text encoder's output.");
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) entries.push_back(list.item(i));
  return entries;
}

}  // namespace heddle::samplers
