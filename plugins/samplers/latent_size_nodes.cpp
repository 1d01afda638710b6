#include "latent_size_nodes.h"

namespace heddle::samplers {
namespace {

struct LatentSize {
  std::int64_t width, height, frames, batch_size;
};

// (B, C, h, w), or (B, C, frames, h, w) of video.
LatentSize size_of_latent(const Shape& shape) {
  if (shape.size() != 4 && shape.size() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: it has " + std::to_string(shape.size()) +
                    " axes. Link one of pictures, which has 4, or of video, which has 5.");
  return {shape.back(), shape[shape.size() - 2], shape.size() == 5 ? shape[2] : 1, shape[0]};
}

struct SoundLatentSize {
  std::int64_t length, channels, batch_size;
};

// (B, C, T), (B, C, 1|2, T) of one or two channels, or (B, C, T, bands) of spectra. Those of LTX
// have 8 channels and 16 bands, also where they are as short as one or two cells.
SoundLatentSize size_of_sound(const Shape& shape) {
  constexpr std::int64_t kStereo = 2, kSpectra = 8, kBands = 16;
  if (shape.size() == 3) return {shape[2], 1, shape[0]};
  if (shape.size() != 4)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: it has " + std::to_string(shape.size()) +
                    " axes. Link one of sound, which has 3 or 4, or of pictures with their sound.");
  const bool is_spectral = shape[1] == kSpectra && shape[3] == kBands;
  if (shape[2] <= kStereo && !is_spectral) return {shape[3], shape[2], shape[0]};
  return {shape[2], 1, shape[0]};
}

}  // namespace

void GetLatentSize::execute(Context& ctx) {
  const Value samples = Value(ctx[latent]).field("samples");
  const bool is_pair = samples.is(HEDDLE_KIND_LIST) && samples.count() > 0;
  const LatentSize size =
      size_of_latent((is_pair ? samples.item(0) : samples).as<Tensor>().shape());
  ctx[width] = size.width;
  ctx[height] = size.height;
  ctx[frames] = size.frames;
  ctx[batch_size] = size.batch_size;
}

void GetLatentSize::infer(Infer& question) {
  const auto shape = question.shape(latent, "samples");
  if (!shape || (shape->size() != 4 && shape->size() != 5)) return;
  const LatentSize size = size_of_latent(*shape);
  question.known(width, "", value_of(size.width));
  question.known(height, "", value_of(size.height));
  question.known(frames, "", value_of(size.frames));
  question.known(batch_size, "", value_of(size.batch_size));
}

void GetAudioLatentSize::execute(Context& ctx) {
  const Value samples = Value(ctx[latent]).field("samples");
  const bool is_pair = samples.is(HEDDLE_KIND_LIST) && samples.count() > 1;
  const SoundLatentSize size =
      size_of_sound((is_pair ? samples.item(1) : samples).as<Tensor>().shape());
  ctx[length] = size.length;
  ctx[audio_channels] = size.channels;
  ctx[batch_size] = size.batch_size;
}

void GetAudioLatentSize::infer(Infer& question) {
  auto shape = question.shape(latent, "samples");
  if (!shape) shape = question.shape(latent, "samples.1");
  if (!shape || (shape->size() != 3 && shape->size() != 4)) return;
  const SoundLatentSize size = size_of_sound(*shape);
  question.known(length, "", value_of(size.length));
  question.known(audio_channels, "", value_of(size.channels));
  question.known(batch_size, "", value_of(size.batch_size));
}

}  // namespace heddle::samplers
