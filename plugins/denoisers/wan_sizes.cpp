#include "wan_sizes.h"

#include "patches.h"
#include "preview_factors.h"
#include "rotary_axes.h"
#include "wan_animate.h"
#include "wan_causal.h"
#include "wan_dancer.h"
#include "wan_humo.h"
#include "wan_latent_settings.h"
#include "wan_scail.h"
#include "wan_sound.h"

namespace heddle::denoisers {
WanSizes read_wan_sizes(const Checkpoint& file, const Value& config, const WanNames& names) {
  const auto size = [&](const char* name, std::uint32_t axis) {
    return file.size(names.one(name), axis);
  };
  WanSizes s{};
  s.width = size("patch_embedding.weight", 0);
  s.in_channels = size("patch_embedding.weight", 1);
  s.channels = size("head.head.weight", 0) / kPatchArea;
  s.mlp = size("blocks.0.ffn.0.weight", 0);
  s.waves = size("time_embedding.0.weight", 1);
  s.text = size("text_embedding.0.weight", 1);
  s.layers = names.layers();
  s.vace.layers = names.vace_layers();
  if (s.vace.layers > s.layers)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": " + std::to_string(s.vace.layers) +
                                             " layers of VACE beside " + std::to_string(s.layers) +
                                             ". The file is damaged or of another model.");
  if (s.vace.layers > 0) s.vace.channels = size("vace_patch_embedding.weight", 1);
  if (names.has("control_adapter.conv.weight"))
    s.fun.camera = size("control_adapter.conv.weight", 1);
  if (names.has("ref_conv.weight")) s.fun.reference = size("ref_conv.weight", 1);
  s.animate = read_animate_sizes(file, names, s.layers);
  s.animate.masks = read_scail_masks(file, names);
  s.sound = read_wan_sound_sizes(file, names, s.layers);
  s.sound.humo = read_humo_sizes(file, names);
  s.sound.music = read_music_sizes(file, names, s);
  // WanDancer's files have a filter for a reference picture, which the publishers do not use.
  if (s.sound.is_music()) s.fun.reference = 0;
  if (names.has("img_emb.proj.1.weight")) s.vision.width = size("img_emb.proj.1.weight", 1);
  s.vision.has_positions = names.has("img_emb.emb_pos");
  s.traits.has_text_norm = names.has("blocks.0.norm3.weight");
  s.animate.follows_poses = config.get<bool>(kFollowsPoses, false);
  if (s.animate.follows_poses && !s.may_follow_poses())
    throw Error(HEDDLE_UNSUPPORTED, file.path() +
                                        ": this model of Wan follows no poses as Animate 2 does. "
                                        "Use a file of Wan Animate 2.");
  constexpr std::int64_t kHead = 128;
  const auto head = config.get<std::int64_t>("attention_head_dim", kHead);
  if (head < 6 || s.width % head != 0)
    throw Error(HEDDLE_INVALID_ARGUMENT, file.path() + ": a width of " + std::to_string(s.width) +
                                             " is no multiple of heads of " + std::to_string(head) +
                                             " numbers. The file is damaged or of another model.");
  s.heads = s.width / head;
  // Rows and columns turn a third of a head each, in pairs; frames what is left.
  const std::int64_t side = head / 6 * 2;
  s.axes = rotary_axes(file, config, head, {head - 2 * side, side, side});
  s.traits.is_causal = is_causal_wan(file, config, s);
  return s;
}

void add_wan_settings(const WanSizes& s, Blocks& graph) {
  graph.setting("family", "wan");
  graph.setting("latent_channels", s.channels);
  graph.setting("latent_downscale", std::int64_t{s.channels == kChannelsOf22 ? 16 : 8});
  graph.setting("latent_frames", true);
  add_preview_factors(s.channels == kChannelsOf22 ? LatentKind::wan22 : LatentKind::wan21,
                      s.channels, graph);
  graph.setting("patch", kPatch);
  graph.setting("guidance_embedded", false);
  graph.setting("context_width", s.text);
  if (s.in_channels > s.channels) graph.setting("concat_channels", s.in_channels - s.channels);
  if (s.tells_frames()) {
    graph.setting("mask_clean", true);
    graph.setting("frame_noise_is_mean", true);
  }
  if (s.sees_pictures()) graph.setting("vision_width", s.vision.width);
  if (s.vace.channels > 0) graph.setting("vace_channels", s.vace.channels);
  if (s.fun.camera > 0) graph.setting("camera_numbers", s.fun.camera);
  if (s.fun.reference > 0 || s.sound.is_heard()) graph.setting("reference_frame", true);
  if (s.sound.injectors > 0) {
    graph.setting("heard_states", s.sound.states);
    graph.setting("heard_width", s.sound.numbers);
  }
  if (s.sound.humo.parts > 0) add_humo_settings(s, graph);
  if (s.sound.is_music()) graph.setting("music_numbers", s.sound.music.numbers);
  if (s.animate.adapters > 0) {
    graph.setting("reads_poses", true);
    graph.setting("face_side", s.animate.face_side);
  }
  if (s.animate.follows_poses) graph.setting("reads_poses", true);
  if (s.animate.masks > 0) add_scail_settings(s, graph);
  if (s.traits.is_causal) add_causal_settings(s, graph);
  graph.setting("text_encoder", "UMT5-XXL (CLIPLoader, type wan)");
  add_wan_latents(s.channels, graph);
  // How noise levels are spaced when no node says otherwise, as ComfyUI does. `sampling`: the
  // output is the velocity of a straight flow.
  graph.setting("sampling", "flow");
  graph.setting("noise_table", "discrete_flow");
  // As ComfyUI has it.
  graph.setting("noise_shift", s.traits.is_causal ? 5.0 : 8.0);
  graph.setting("noise_multiplier", 1000.0);
}

}  // namespace heddle::denoisers
