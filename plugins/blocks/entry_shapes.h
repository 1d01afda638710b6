// plugins/blocks/entry_shapes.h - what infer() of a node knows of a CONDITIONING, entry by entry,
// and tells of the one that it gives. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::blocks {

// Fields of an entry that are told before a run, besides its tensors: those that decide where, when
// and how much it counts, and what the model reads.
inline constexpr const char* kScopeFields[] = {"area",
                                               "area_fractions",
                                               "strength",
                                               "start_percent",
                                               "end_percent",
                                               "mask_strength",
                                               "set_area_to_bounds",
                                               "default",
                                               "unguided",
                                               "hooks",
                                               "clip_start_percent",
                                               "clip_end_percent",
                                               "guiding_frame_index",
                                               "reference_latents_method",
                                               "image_slots",
                                               "image_spans",
                                               "control",
                                               "control_apply_to_uncond",
                                               "unclip_conditioning",
                                               "keyframe_idxs",
                                               "guide_attention_entries",
                                               "gligen",
                                               "concat_image",
                                               "cross_attn_controlnet",
                                               "noise_augmentation",
                                               "media_start",
                                               "ref_mask_flag",
                                               "fps",
                                               "audio_inject_scale"};

// A context for VACE, of vace_frames and vace_mask.
struct VaceShapes {
  heddle_tensor_info frames{}, mask{};
};

// States of a vision tower, of a clip_vision_output: those before its last layer, or, of a tower
// that gives no such ones (SigLIP), those behind it. `field` is their name.
struct SeenShapes {
  heddle_tensor_info states{};
  std::string field;
};
// `told` gives what is known of a field of it, or nothing.
template <class Told>
std::optional<SeenShapes> seen_shapes(Told&& told) {
  for (const char* field : {"penultimate", "last_hidden"})
    if (const std::optional<heddle_tensor_info> states = told(field))
      return SeenShapes{*states, field};
  return {};
}

// One entry of a CONDITIONING. Over 15 members: what any model family reads of one, each by a name
// of its own.
struct EntryShapes {
  heddle_tensor_info text{};                 // of cross_attn
  std::optional<heddle_tensor_info> pooled;  // of pooled_output
  std::optional<heddle_tensor_info> mask;
  Value scope;  // a record of those of kScopeFields that are known; or empty
  std::optional<heddle_tensor_info> concat_image,
      concat_mask;                                  // of concat_latent_image, concat_mask
  std::vector<heddle_tensor_info> references = {};  // of reference_latents, their samples
  std::vector<heddle_tensor_info> sounds = {};      // of reference_sounds, likewise
  std::optional<SeenShapes> vision = {};            // of clip_vision_output
  std::vector<VaceShapes> vace = {};
  std::optional<heddle_tensor_info> camera = {};           // of camera_conditions
  std::optional<heddle_tensor_info> glyphs = {};           // of conditioning_byt5small
  std::optional<heddle_tensor_info> pose = {};             // of pose_video_latent
  std::optional<heddle_tensor_info> face = {};             // of face_video_pixels
  std::optional<heddle_tensor_info> pose_text = {};        // of pose_cross_attn
  std::optional<SeenShapes> pose_seen = {};                // of pose_clip_vision_output
  std::optional<SeenShapes> kept_seen = {};                // of clip_vision_output_ref
  std::optional<heddle_tensor_info> heard = {};            // of audio_embed
  std::optional<heddle_tensor_info> motion = {};           // of reference_motion
  std::optional<heddle_tensor_info> followed = {};         // of control_video
  std::optional<heddle_tensor_info> voice = {};            // of ref_audio, its tokens
  std::optional<heddle_tensor_info> pose_masks = {};       // of driving_mask_28ch
  std::optional<heddle_tensor_info> reference_masks = {};  // of ref_mask_28ch
  std::vector<heddle_tensor_info> sources = {};            // of context_latents
};

inline Shape shape_of(const heddle_tensor_info& info) {
  return {info.shape, info.shape + info.rank};
}
// "positive" and "0" make "positive.0".
inline std::string path_join(const std::string& above, const std::string& name) {
  return above.empty() ? name : above + "." + name;
}

// A tensor's type and shape as a value, in the place of one that is not made yet.
inline Value told_info(const heddle_tensor_info& info) {
  std::vector<Value> shape;
  for (const std::int64_t side : shape_of(info)) shape.push_back(value_of(side));
  return Record()
      .set("dtype", value_of(std::int64_t(info.dtype)))
      .set("shape", list_of(shape))
      .value();
}

// Of such a value, or of a tensor; none where it is neither.
inline std::optional<heddle_tensor_info> info_of(const Value& told) {
  if (told.is(HEDDLE_KIND_TENSOR)) {
    const Tensor tensor = told.as<Tensor>();
    return tensor_info(tensor.dtype(), tensor.shape());
  }
  if (!told.is(HEDDLE_KIND_RECORD)) return {};
  Shape shape;
  const Value sides = told.field("shape");
  for (std::uint32_t i = 0; i < sides.count(); ++i)
    shape.push_back(sides.item(i).as<std::int64_t>());
  return tensor_info(heddle_dtype(told.get<std::int64_t>("dtype", HEDDLE_F32)), shape);
}

// Calls visit(path, info) for the hints and masks of an entry's ControlNets, for embeddings of its
// pictures and of phrases in boxes, for masks of guides, for a picture beside the point and for the
// text of ControlNets, which are told of as above.
template <class Visit>
void each_told_tensor(const Value& scope, Visit&& visit) {
  const Value pictures = scope.field("unclip_conditioning");
  for (std::uint32_t k = 0; k < pictures.count(); ++k)
    if (const auto info = info_of(pictures.item(k).field("embeds")))
      visit("unclip_conditioning." + std::to_string(k) + ".embeds", *info);
  const Value boxes = scope.field("gligen").field("boxes");
  for (std::uint32_t k = 0; k < boxes.count(); ++k)
    if (const auto info = info_of(boxes.item(k).field("embeds")))
      visit("gligen.boxes." + std::to_string(k) + ".embeds", *info);
  const Value guides = scope.field("guide_attention_entries");
  for (std::uint32_t k = 0; k < guides.count(); ++k)
    if (const auto info = info_of(guides.item(k).field("mask")))
      visit("guide_attention_entries." + std::to_string(k) + ".mask", *info);
  for (const char* field : {"concat_image", "cross_attn_controlnet"})
    if (const auto info = info_of(scope.field(field))) visit(field, *info);
  Value control = scope.field("control");
  for (std::string at = "control"; control.is(HEDDLE_KIND_RECORD); at += ".previous") {
    for (const char* field : {"hint", "mask"})
      if (const auto info = info_of(control.field(field))) visit(at + "." + field, *info);
    control = control.field("previous");
  }
}

// The entries of the CONDITIONING at a path of an input; none: it is not known. Who tells of a list
// tells of all its entries.
template <class T>
std::vector<EntryShapes> entry_shapes(const Infer& question, const Input<T>& input,
                                      const std::string& path = "") {
  std::vector<EntryShapes> entries;
  while (true) {
    const std::string at = path_join(path, std::to_string(entries.size()));
    const auto text = question.tensor(input, at + ".cross_attn");
    if (!text) return entries;
    Record scope;
    for (const char* field : kScopeFields)
      if (const Value known = question.part(input, path_join(at, field))) scope.set(field, known);
    entries.push_back({*text, question.tensor(input, at + ".pooled_output"),
                       question.tensor(input, at + ".mask"), scope.value(),
                       question.tensor(input, at + ".concat_latent_image"),
                       question.tensor(input, at + ".concat_mask")});
    std::vector<heddle_tensor_info>& references = entries.back().references;
    while (const auto shown = question.tensor(
               input, at + ".reference_latents." + std::to_string(references.size()) + ".samples"))
      references.push_back(*shown);
    std::vector<heddle_tensor_info>& sounds = entries.back().sounds;
    while (const auto heard = question.tensor(
               input, at + ".reference_sounds." + std::to_string(sounds.size()) + ".samples"))
      sounds.push_back(*heard);
    entries.back().glyphs = question.tensor(input, at + ".conditioning_byt5small");
    entries.back().vision = seen_shapes([&](const std::string& field) {
      return question.tensor(input, at + ".clip_vision_output." + field);
    });
    entries.back().camera = question.tensor(input, at + ".camera_conditions");
    entries.back().pose = question.tensor(input, at + ".pose_video_latent");
    entries.back().face = question.tensor(input, at + ".face_video_pixels");
    entries.back().pose_text = question.tensor(input, at + ".pose_cross_attn");
    entries.back().pose_seen = seen_shapes([&](const std::string& field) {
      return question.tensor(input, at + ".pose_clip_vision_output." + field);
    });
    entries.back().kept_seen = seen_shapes([&](const std::string& field) {
      return question.tensor(input, at + ".clip_vision_output_ref." + field);
    });
    entries.back().heard = question.tensor(input, at + ".audio_embed");
    entries.back().motion = question.tensor(input, at + ".reference_motion");
    entries.back().followed = question.tensor(input, at + ".control_video");
    entries.back().voice = question.tensor(input, at + ".ref_audio.tokens");
    entries.back().pose_masks = question.tensor(input, at + ".driving_mask_28ch");
    entries.back().reference_masks = question.tensor(input, at + ".ref_mask_28ch");
    std::vector<heddle_tensor_info>& sources = entries.back().sources;
    while (const auto source =
               question.tensor(input, at + ".context_latents." + std::to_string(sources.size())))
      sources.push_back(*source);
    std::vector<VaceShapes>& vace = entries.back().vace;
    const auto context = [&](const char* field) {
      return question.tensor(input, at + "." + field + "." + std::to_string(vace.size()));
    };
    while (const auto frames = context("vace_frames")) {
      const auto shown = context("vace_mask");
      if (!shown) break;
      vace.push_back({*frames, *shown});
    }
  }
}
template <class T>
void infer_entries(Infer& question, const Output<T>& output,
                   const std::vector<EntryShapes>& entries, const std::string& path = "") {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string at = path_join(path, std::to_string(i));
    const EntryShapes& entry = entries[i];
    question.out(output, at + ".cross_attn", entry.text.dtype, shape_of(entry.text));
    const auto tell = [&](const char* field, const std::optional<heddle_tensor_info>& info) {
      if (info) question.out(output, path_join(at, field), info->dtype, shape_of(*info));
    };
    tell("pooled_output", entry.pooled);
    tell("mask", entry.mask);
    tell("concat_latent_image", entry.concat_image);
    tell("concat_mask", entry.concat_mask);
    tell("conditioning_byt5small", entry.glyphs);
    if (entry.vision)
      tell(("clip_vision_output." + entry.vision->field).c_str(), entry.vision->states);
    tell("camera_conditions", entry.camera);
    tell("pose_video_latent", entry.pose);
    tell("face_video_pixels", entry.face);
    tell("pose_cross_attn", entry.pose_text);
    if (entry.pose_seen)
      tell(("pose_clip_vision_output." + entry.pose_seen->field).c_str(), entry.pose_seen->states);
    if (entry.kept_seen)
      tell(("clip_vision_output_ref." + entry.kept_seen->field).c_str(), entry.kept_seen->states);
    tell("audio_embed", entry.heard);
    tell("reference_motion", entry.motion);
    tell("control_video", entry.followed);
    tell("ref_audio.tokens", entry.voice);
    tell("driving_mask_28ch", entry.pose_masks);
    tell("ref_mask_28ch", entry.reference_masks);
    for (std::size_t k = 0; k < entry.sources.size(); ++k)
      tell(("context_latents." + std::to_string(k)).c_str(), entry.sources[k]);
    for (std::size_t k = 0; k < entry.references.size(); ++k)
      tell(("reference_latents." + std::to_string(k) + ".samples").c_str(), entry.references[k]);
    for (std::size_t k = 0; k < entry.sounds.size(); ++k)
      tell(("reference_sounds." + std::to_string(k) + ".samples").c_str(), entry.sounds[k]);
    for (std::size_t k = 0; k < entry.vace.size(); ++k) {
      tell(("vace_frames." + std::to_string(k)).c_str(), entry.vace[k].frames);
      tell(("vace_mask." + std::to_string(k)).c_str(), entry.vace[k].mask);
    }
    each_told_tensor(entry.scope, [&](const std::string& field, const heddle_tensor_info& info) {
      question.out(output, path_join(at, field), info.dtype, shape_of(info));
    });
    for (std::uint32_t k = 0; k < entry.scope.count(); ++k)
      question.known(output, path_join(at, entry.scope.key(k)), entry.scope.item(k));
  }
}

}  // namespace heddle::blocks
