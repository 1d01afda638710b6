// Entries by their shapes, in the place of a CONDITIONING that is not made yet, and back.
#include "conditioning.h"
#include "frame_noise.h"
#include "music_input.h"
#include "plugins/blocks/minimax_latents.h"
#include "sample_shapes.h"
#include "scail_input.h"
#include "sound_video_input.h"
#include "sources_input.h"
#include "told_controls.h"

#include <algorithm>

namespace heddle::samplers {

std::vector<EntryShapes> entries_told(const Value& list) {
  std::vector<EntryShapes> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value entry = list.item(i);
    const std::optional<heddle_tensor_info> text = info_of(entry.field("cross_attn"));
    if (!text) return {};
    entries.push_back({*text, info_of(entry.field("pooled_output")), info_of(entry.field("mask")),
                       entry, info_of(entry.field("concat_latent_image")),
                       info_of(entry.field("concat_mask"))});
    entries.back().glyphs = info_of(entry.field(kGlyphStates));
    entries.back().vision = blocks::seen_shapes(
        [&](const char* field) { return info_of(entry.field("clip_vision_output").field(field)); });
    entries.back().camera = info_of(entry.field("camera_conditions"));
    entries.back().pose = info_of(entry.field("pose_video_latent"));
    entries.back().face = info_of(entry.field("face_video_pixels"));
    entries.back().pose_text = info_of(entry.field("pose_cross_attn"));
    entries.back().pose_seen = blocks::seen_shapes([&](const char* field) {
      return info_of(entry.field("pose_clip_vision_output").field(field));
    });
    entries.back().kept_seen = blocks::seen_shapes(
        [&](const char* field) { return info_of(entry.field(kKeptSeen).field(field)); });
    entries.back().heard = info_of(entry.field(kHeardSound));
    entries.back().motion = info_of(entry.field(kEarlierLatent));
    entries.back().followed = info_of(entry.field(kFollowedLatent));
    entries.back().voice = info_of(entry.field(kVoiceField).field("tokens"));
    entries.back().pose_masks = info_of(entry.field(kPoseMasks));
    entries.back().reference_masks = info_of(entry.field(kReferenceMasks));
    const Value sources = entry.field(kContextLatents);
    for (std::uint32_t k = 0; k < sources.count(); ++k)
      if (const auto info = info_of(sources.item(k))) entries.back().sources.push_back(*info);
    const Value frames = entry.field("vace_frames"), masks = entry.field("vace_mask");
    for (std::uint32_t k = 0; k < std::min(frames.count(), masks.count()); ++k) {
      const auto video = info_of(frames.item(k)), mask = info_of(masks.item(k));
      if (video && mask) entries.back().vace.push_back({*video, *mask});
    }
    const Value shown = entry.field("reference_latents");
    for (std::uint32_t k = 0; k < shown.count(); ++k)
      if (const auto info = info_of(shown.item(k).field("samples")))
        entries.back().references.push_back(*info);
    const Value sounds = entry.field(blocks::kMinimaxSounds);
    for (std::uint32_t k = 0; k < sounds.count(); ++k)
      if (const auto info = info_of(sounds.item(k).field("samples")))
        entries.back().sounds.push_back(*info);
  }
  return entries;
}

std::vector<EntryShapes> own_entries(const GuidePlan& plan, std::size_t list,
                                     std::vector<EntryShapes> positive) {
  if (plan.repeats_positive(list)) return positive;
  const std::string lacks = plan.lacks_of_positive(list);
  if (lacks.empty()) return with_inherited_of(positive, entries_told(plan.list(list)));
  if (lacks != kVoiceField) return {};
  for (EntryShapes& entry : positive) entry.voice.reset();
  return positive;
}

Value told_shapes(const std::vector<EntryShapes>& entries) {
  std::vector<Value> told;
  for (const EntryShapes& entry : entries) {
    Record record(entry.scope);
    record.set("cross_attn", told_info(entry.text));
    if (entry.pooled) record.set("pooled_output", told_info(*entry.pooled));
    if (entry.mask) record.set("mask", told_info(*entry.mask));
    if (entry.concat_image) record.set("concat_latent_image", told_info(*entry.concat_image));
    if (entry.concat_mask) record.set("concat_mask", told_info(*entry.concat_mask));
    if (entry.glyphs) record.set(kGlyphStates, told_info(*entry.glyphs));
    if (entry.vision)
      record.set(
          "clip_vision_output",
          Record().set(entry.vision->field.c_str(), told_info(entry.vision->states)).value());
    if (entry.camera) record.set("camera_conditions", told_info(*entry.camera));
    if (entry.pose) record.set("pose_video_latent", told_info(*entry.pose));
    if (entry.face) record.set("face_video_pixels", told_info(*entry.face));
    if (entry.pose_text) record.set("pose_cross_attn", told_info(*entry.pose_text));
    if (entry.pose_seen)
      record.set(
          "pose_clip_vision_output",
          Record().set(entry.pose_seen->field.c_str(), told_info(entry.pose_seen->states)).value());
    if (entry.kept_seen)
      record.set(
          kKeptSeen,
          Record().set(entry.kept_seen->field.c_str(), told_info(entry.kept_seen->states)).value());
    if (entry.heard) record.set(kHeardSound, told_info(*entry.heard));
    if (entry.motion) record.set(kEarlierLatent, told_info(*entry.motion));
    if (entry.followed) record.set(kFollowedLatent, told_info(*entry.followed));
    if (entry.pose_masks) record.set(kPoseMasks, told_info(*entry.pose_masks));
    if (entry.reference_masks) record.set(kReferenceMasks, told_info(*entry.reference_masks));
    std::vector<Value> sources;
    for (const heddle_tensor_info& info : entry.sources) sources.push_back(told_info(info));
    if (!sources.empty()) record.set(kContextLatents, list_of(sources));
    if (entry.voice)
      record.set(kVoiceField, Record().set("tokens", told_info(*entry.voice)).value());
    std::vector<Value> shown;
    for (const heddle_tensor_info& info : entry.references)
      shown.push_back(Record().set("samples", told_info(info)).value());
    if (!shown.empty()) record.set("reference_latents", list_of(shown));
    std::vector<Value> heard;
    for (const heddle_tensor_info& info : entry.sounds)
      heard.push_back(Record().set("samples", told_info(info)).value());
    if (!heard.empty()) record.set(blocks::kMinimaxSounds, list_of(heard));
    std::vector<Value> frames, masks;
    for (const blocks::VaceShapes& context : entry.vace) {
      frames.push_back(told_info(context.frames));
      masks.push_back(told_info(context.mask));
    }
    if (!frames.empty())
      record.set("vace_frames", list_of(frames)).set("vace_mask", list_of(masks));
    told.push_back(record.value());
  }
  return list_of(told);
}

}  // namespace heddle::samplers
