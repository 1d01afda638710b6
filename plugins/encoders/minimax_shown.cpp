#include "minimax_shown.h"

#include <algorithm>

#include <heddle/checked.hpp>
#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "lanczos_picture.h"
#include "pictures.h"
#include "plugins/blocks/autoencoder.h"
#include "plugins/blocks/h3_clips.h"
#include "plugins/blocks/minimax_latents.h"
#include "plugins/blocks/sound_latents.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;

constexpr std::int64_t kColoursShown = 3;

// A list of an entry with more behind it.
Value with_more(const Value& before, const std::vector<Value>& more) {
  std::vector<Value> all;
  for (std::uint32_t k = 0; k < before.count(); ++k) all.push_back(before.item(k));
  all.insert(all.end(), more.begin(), more.end());
  return list_of(all);
}

}  // namespace

Tensor scaled_pictures(Context& ctx, const Tensor& image, std::int64_t count, const GridSize& size,
                       bool is_cropped) {
  const Tensor made = ctx.make_host({count, size.height, size.width, kColoursShown}, HEDDLE_F32);
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor colours =
        ops::contiguous(ctx, image.slice(0, i, i + 1).slice(3, 0, kColoursShown));
    const Tensor one = lanczos_picture(ctx, colours, size, is_cropped);
    std::copy_n(one.data<float>(), one.count(), made.data<float>() + i * one.count());
  }
  return made;
}

std::uint64_t scaled_bytes(const Shape& image, std::int64_t count, const GridSize& size) {
  return 2 * scaling_bytes({1, image[1], image[2], image[3]}, size) +
         sizeof(float) * std::uint64_t(checked_product(
                             {count, size.height, size.width, kColoursShown}, "the pictures"));
}

void check_clips(const Value& vae) {
  if (vae::codes_clips(vae)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "vae: pictures are shown to MiniMax H3 as latents of its own video autoencoder, and "
              "this is another one. Load minimax_h3_video_vae with VAELoader.");
}

void check_sounds(const Value& audio_vae) {
  if (vae::reads_waves(audio_vae) && audio_vae.field("encoder").is(HEDDLE_KIND_MODEL)) return;
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "audio_vae: sounds are shown to MiniMax H3 as latents of its own audio autoencoder, "
              "and this is another one. Load minimax_h3_audio_vae with VAELoader.");
}

Record shown_clip(Context& ctx, const Value& vae, const Tensor& pictures) {
  const vae::Autoencoder autoencoder(vae);
  const Tensor covered = vae::covered_by_cells(
      ctx, ctx.upload(pictures.shape(), HEDDLE_F32, pictures.data<float>()), autoencoder);
  const Tensor mean =
      vae::encoded_clips(ctx, vae, covered, autoencoder, vae::published_tiling(vae));
  return vae::latent_of(ctx, mean, autoencoder);
}

std::optional<Shape> tell_clip(Infer& question, const Value& vae, std::int64_t pictures,
                               const GridSize& size) {
  const std::optional<vae::Autoencoder> autoencoder = vae::usable(vae);
  if (!autoencoder || autoencoder->channels == 0 || !vae::codes_clips(vae)) return {};
  const std::int64_t side = autoencoder->downscale;
  const Shape covered{pictures, autoencoder->cells(size.height) * side,
                      autoencoder->cells(size.width) * side, autoencoder->colours};
  vae::tell_encoded_clips(question, vae, covered, *autoencoder, vae::published_tiling(vae));
  return vae::encoded_clips_shape(covered, *autoencoder);
}

Record shown_sound(Context& ctx, const Value& audio_vae, const Value& audio,
                   const std::string& port) {
  HostMemory memory(ctx);
  const vae::StereoSound sound =
      vae::stereo_sound(ctx, audio, port, vae::sound_rate(audio_vae, "audio_vae"), memory, 1);
  return Record()
      .set("samples", value_of(vae::encoded_waves(ctx, audio_vae, sound.points, sound.shape)))
      .set("scaled", value_of(true));
}

std::optional<Shape> tell_sound(Infer& question, const Value& audio_vae, const Shape& waveform,
                                std::int64_t rate) {
  if (!vae::reads_waves(audio_vae)) return {};
  const std::optional<Shape> sound =
      vae::stereo_shape(waveform, rate, vae::sound_rate(audio_vae, "audio_vae"), 1);
  if (!sound) return {};
  question.host_scratch(
      sizeof(float) *
      std::uint64_t(checked_sum({vae::count_of(waveform), vae::count_of(*sound)}, "the sound")));
  return vae::tell_encoded_waves(question, audio_vae, *sound);
}

Value with_shown(const Value& list, const MinimaxShown& shown) {
  if (shown.clips.empty() && shown.sounds.empty()) return list;
  std::vector<Value> entries;
  for (std::uint32_t i = 0; i < list.count(); ++i) {
    const Value before = list.item(i);
    Record entry(before);
    if (!shown.clips.empty())
      entry.set("reference_latents", with_more(before.field("reference_latents"), shown.clips));
    if (!shown.sounds.empty())
      entry.set(blocks::kMinimaxSounds,
                with_more(before.field(blocks::kMinimaxSounds), shown.sounds));
    if (shown.start > 0) entry.set(blocks::kMinimaxStart, value_of(shown.start));
    entries.push_back(entry.value());
  }
  return list_of(entries);
}

Value empty_video(Context& ctx, std::int64_t pictures, const GridSize& size) {
  const auto empty = [&](const Shape& shape) {
    const Tensor samples = ctx.make_host(shape, HEDDLE_F32);
    std::fill_n(samples.data<float>(), samples.count(), 0.0f);
    return value_of(samples);
  };
  return Record()
      .set("samples",
           list_of({empty(blocks::minimax_video_shape(pictures, size.height, size.width)),
                    empty(blocks::minimax_sound_shape(pictures))}))
      .value();
}

void infer_empty_video(Infer& question, const Output<Value>& latent, std::int64_t pictures,
                       const GridSize& size) {
  question.out(latent, "samples.0", HEDDLE_F32,
               blocks::minimax_video_shape(pictures, size.height, size.width));
  question.out(latent, "samples.1", HEDDLE_F32, blocks::minimax_sound_shape(pictures));
}

}  // namespace heddle::encoders
