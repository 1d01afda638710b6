#include "plugins/vae/hunyuan15_node.h"

#include <algorithm>
#include <limits>
#include <memory_resource>
#include <optional>
#include <string>

#include <heddle/host_memory.hpp>
#include <heddle/ops.hpp>

#include "plugins/vae/autoencoder_hunyuan15.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

// Of so many given frames of pixels, those that whole frames of the latent hold.
std::int64_t whole_pixel_frames(std::int64_t frames) {
  return 1 + (latent_frames_of(frames) - 1) * kFramesOfCell;
}

constexpr std::int64_t kSharpenedDownscale = 16;

// Of a latent (B, C, F, h, w): its sizes as a video.
WanJob sharpened_job(const Shape& shape) {
  if (shape.size() != 5)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "latent: it has " + std::to_string(shape.size()) +
                    " axes; that of a video has (batch, channels, frames, height, width). Link "
                    "HunyuanVideo15LatentUpscaleWithModel.");
  return {{shape[1], shape[2], shape[3], shape[4]},
          {shape[3] * kSharpenedDownscale, shape[4] * kSharpenedDownscale}};
}

// (B, 2 C + 2, F, h, w): a latent of given frames, a mask, the latent that is made sharper, ones.
Shape shown_shape(Shape shape) {
  shape[1] = 2 * shape[1] + 2;
  return shape;
}

// In the autoencoder's units. A latent tells its own scale where it has another one.
Tensor raw_sharpened(Context& ctx, const Value& latent, const Tensor& samples) {
  if (!latent.get<bool>("scaled", false)) return samples;
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  return ops::scale_clamp(ctx, samples,
                          {1 / latent.get<double>("scale", kHunyuan15Scale),
                           latent.get<double>("shift", 0.0), -kUnbounded, kUnbounded});
}

// How HunyuanVideo 1.0 is shown a first frame.
bool is_replaced(const std::string& kind) { return kind == "v2 (replace)"; }
bool is_beside(const std::string& kind) { return kind == "custom"; }

// Brings a latent of given frames into all items of an empty one, in host memory.
void put_begin(Context& ctx, const Tensor& begin, const VideoGrid& grid, const Tensor& latent) {
  const std::int64_t plane = grid.height * grid.width, given = begin.size(2) * plane;
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(begin.count()), &memory);
  read_to<float>(ctx, begin, numbers);
  float* to = latent.data<float>();
  std::fill_n(to, latent.count(), 0.0f);
  for (std::int64_t row = 0; row < latent.size(0) * grid.channels; ++row)
    std::copy_n(numbers.data() + row % grid.channels * given, given,
                to + row * grid.frames * plane);
}

}  // namespace

void HunyuanImageToVideo::execute(Context& ctx) {
  using Node = HunyuanImageToVideo;
  const WanJob job = wan_job<Node>(ctx);
  const VideoGrid& grid = job.grid;
  const bool replaces = is_replaced(ctx[guidance_type]), shows = is_beside(ctx[guidance_type]);
  GivenFields fields;
  Value made = empty_video(ctx, grid.shape(ctx[batch_size]));
  if (ctx.has(start_image)) {
    const Tensor begin =
        encoded_begin(ctx, ctx[vae], job, ctx[start_image], "start_image", ctx[length]);
    const Value mask = mask_of_frames(
        ctx, grid, 1, [&](std::int64_t t, std::int64_t) { return t < begin.size(2); });
    if (shows) {
      fields.appended = {{"reference_latents", Record().set("samples", value_of(begin)).value()}};
    } else if (replaces) {
      const Tensor samples = ctx.make_host(grid.shape(ctx[batch_size]), HEDDLE_F32);
      put_begin(ctx, begin, grid, samples);
      made = Record().set("samples", value_of(samples)).set("noise_mask", mask).value();
      fields.set = {{"guiding_frame_index", value_of(std::int64_t{0})}};
    } else {
      const Tensor shown = ctx.make_host(grid.shape(1), HEDDLE_F32);
      put_begin(ctx, begin, grid, shown);
      fields.set = {{"concat_latent_image", value_of(shown)}, {"concat_mask", mask}};
    }
  }
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[latent] = made;
}

void HunyuanImageToVideo::infer(Infer& question) {
  using Node = HunyuanImageToVideo;
  const std::optional<WanJob> job = told_job<Node>(question);
  const auto kind = question[guidance_type];
  const auto items = question[batch_size];
  if (!job || !kind || !items) return;
  const bool replaces = is_replaced(*kind), shows = is_beside(*kind);
  Shape mask = job->grid.shape(1);
  mask[1] = 1;
  std::vector<blocks::EntryShapes> entries = blocks::entry_shapes(question, positive);
  const auto pictures = question.shape(start_image);
  const bool is_begun = pictures && pictures->size() == 4;
  if (is_begun) {
    tell_encoded_begin(question, *question[vae], *pictures, *job, *question[length]);
    Shape begin = job->grid.shape(1);
    begin[2] = latent_frames_of(std::min((*pictures)[0], *question[length]));
    for (blocks::EntryShapes& entry : entries) {
      if (shows) {
        entry.references.push_back(tensor_info(HEDDLE_F32, begin));
        continue;
      }
      if (replaces) {
        entry.scope =
            Record(entry.scope).set("guiding_frame_index", value_of(std::int64_t{0})).value();
        continue;
      }
      entry.concat_image = tensor_info(HEDDLE_F32, job->grid.shape(1));
      entry.concat_mask = tensor_info(HEDDLE_F32, mask);
    }
  }
  blocks::infer_entries(question, positive_out, entries);
  question.out(latent, "samples", HEDDLE_F32, job->grid.shape(*items));
  if (is_begun && replaces) question.out(latent, "noise_mask", HEDDLE_F32, mask);
}

// As ComfyUI has it: what says that the first frame is given lies in the first channel of the
// latent that is made sharper, behind the mask's own, which stays 0.
void HunyuanVideo15SuperResolution::execute(Context& ctx) {
  using Node = HunyuanVideo15SuperResolution;
  const Value given = ctx[latent];
  const Tensor samples = given.get<Tensor>("samples", {});
  const WanJob job = sharpened_job(samples ? samples.shape() : Shape());
  const std::int64_t channels = job.grid.channels, items = samples.size(0);
  const Tensor shown = ctx.make(shown_shape(samples.shape()), HEDDLE_F32),
               ones = ctx.make(job.grid.shape(items), HEDDLE_F32);
  ops::fill(ctx, shown, 0);
  ops::fill(ctx, ones, 1);
  ops::copy_into(ctx, raw_sharpened(ctx, given, samples),
                 shown.slice(1, channels + 1, 2 * channels + 1));
  ops::copy_into(ctx, ones.slice(1, 0, 1), shown.slice(1, 2 * channels + 1, 2 * channels + 2));
  if (ctx.has(start_image)) {
    if (!ctx.has(vae))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "vae: start_image is given, and no autoencoder that encodes it. Link the VAE of "
                  "HunyuanVideo 1.5.");
    const Tensor begin =
        encoded_begin(ctx, ctx[vae], job, ctx[start_image], "start_image", job.grid.pixel_frames());
    for (std::int64_t item = 0; item < items; ++item)
      ops::copy_into(
          ctx, begin,
          shown.slice(0, item, item + 1).slice(1, 0, channels).slice(2, 0, begin.size(2)));
    ops::copy_into(ctx, ones.slice(1, 0, 1).slice(2, 0, 1),
                   shown.slice(1, channels + 1, channels + 2).slice(2, 0, 1));
  }
  GivenFields fields;
  fields.set = {{"concat_latent_image", value_of(shown)},
                {"noise_augmentation", value_of(double(ctx[noise_augmentation]))}};
  set_seen<Node>(ctx, fields);
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[negative_out] = with_video_fields(ctx[negative], fields);
  ctx[latent_out] = given;
}

void HunyuanVideo15SuperResolution::infer(Infer& question) {
  using Node = HunyuanVideo15SuperResolution;
  const auto shape = question.shape(latent, "samples");
  if (!shape) return;
  const WanJob job = sharpened_job(*shape);
  ToldFields told;
  told.image = shown_shape(*shape);
  const std::optional<Value> autoencoder = question[vae];
  if (const auto pictures = question.shape(start_image);
      pictures && pictures->size() == 4 && autoencoder)
    tell_encoded_begin(question, *autoencoder, *pictures, job, job.grid.pixel_frames());
  told.seen = told_seen<Node>(question);
  tell_fields<Node>(question, told);
  question.out(latent_out, "samples", HEDDLE_F32, *shape);
  question.shares(latent_out);
}

// What is not given is 0 in the latent, not a grey picture's.
void HunyuanVideo15ImageToVideo::execute(Context& ctx) {
  using Node = HunyuanVideo15ImageToVideo;
  const WanJob job = wan_job<Node>(ctx);
  const VideoGrid& grid = job.grid;
  GivenFields fields;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image];
    const std::int64_t count = std::min(pictures_shape(pictures.shape(), "start_image")[0],
                                        ctx[length]),
                       given = latent_frames_of(count);
    FrameStrip strip(ctx, ctx[vae], whole_pixel_frames(count), job.pixels);
    strip.put(pictures, "start_image", 0, count, 0);
    const Tensor shown = ctx.make(grid.shape(1), HEDDLE_F32);
    ops::fill(ctx, shown, 0);
    ops::copy_into(ctx, strip.encoded(), shown.slice(2, 0, given));
    const Tensor mask = ctx.make_host({1, 1, grid.frames, grid.height, grid.width}, HEDDLE_F32);
    float* const numbers = mask.data<float>();
    std::fill_n(numbers, mask.count(), 1.0f);
    std::fill_n(numbers, given * grid.height * grid.width, 0.0f);
    fields.set = {{"concat_latent_image", value_of(shown)}, {"concat_mask", value_of(mask)}};
  }
  set_seen<Node>(ctx, fields);
  give_wan<Node>(ctx, job, fields);
}

void HunyuanVideo15ImageToVideo::infer(Infer& question) {
  using Node = HunyuanVideo15ImageToVideo;
  const std::optional<WanJob> job = told_job<Node>(question);
  const auto most = question[length];
  if (!job || !most) return;
  ToldFields told;
  if (const auto shape = question.shape(start_image); shape && shape->size() == 4) {
    told.image = told.mask = job->grid.shape(1);
    (*told.mask)[1] = 1;
    const std::int64_t frames = whole_pixel_frames(std::min((*shape)[0], *most));
    tell_pixels(question, *shape, *job, frames);
    infer_encoded_video(question, *question[vae], job->grid, frames);
  }
  told.seen = told_seen<Node>(question);
  tell_wan<Node>(question, *job, told);
}

}  // namespace heddle::vae
