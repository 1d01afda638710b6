#include "plugins/vae/wan_talk_node.h"

#include <algorithm>
#include <cmath>
#include <memory_resource>
#include <optional>

#include <heddle/host_memory.hpp>

#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/patched_model.h"
#include "plugins/vae/sound_steps.h"
#include "plugins/vae/talk_moments.h"
#include "plugins/vae/wan_jobs.h"

namespace heddle::vae {
namespace {

using Talk = WanInfiniteTalkToVideo;

constexpr const char *kMoments = "moment_numbers", *kTwoSpeak = "two_speakers";
constexpr std::size_t kTalkers = 2;
// Cells along a side of a token of Wan.
constexpr std::int64_t kCellsOfToken = 2;

[[noreturn]] void refuse_talk(const std::string& what) {
  throw Error(HEDDLE_INVALID_ARGUMENT, what);
}

// The numbers of a moment that the patch reads. Throws where it is none for speakers or for the
// model.
std::int64_t moment_numbers(const Value& patch, const Value& model) {
  blocks::check_model_patch(patch, model);
  const auto numbers = model_settings(patch).get<std::int64_t>(kMoments, 0);
  if (numbers < 1)
    refuse_talk("model_patch: '" + model_family(patch) +
                "' hears no sound. Load InfiniteTalk or MultiTalk.");
  if (model_settings(model).field(blocks::kModelPatches).count() > 0)
    refuse_talk(
        "model: it has a model patch already, and hears one sound. Link the model before that "
        "patch.");
  return numbers;
}

void check_length(std::int64_t length) {
  if ((length - 1) % kFramesOfCell != 0)
    refuse_talk("length is " + std::to_string(length) +
                ": sounds go with a first frame and four in each one of the latent. Set 4 n + 1, "
                "such as " +
                std::to_string(1 + (length - 1) / kFramesOfCell * kFramesOfCell) + ".");
}

// How many frames are before the part, and how many of them begin it.
struct TalkPart {
  std::int64_t earlier = 0, motion = 0;
  MomentRange moments(std::int64_t length) const { return {earlier - motion, length}; }
  std::int64_t begin_frames() const { return motion > 0 ? latent_frames_of(motion) : 1; }
};
TalkPart part_behind(std::int64_t earlier, std::int64_t motion, std::int64_t length) {
  if (earlier < motion)
    refuse_talk("previous_frames: there are " + std::to_string(earlier) +
                ", and motion_frame_count is " + std::to_string(motion) +
                ". Link all frames before, or set motion_frame_count to as many.");
  if (motion > length)
    refuse_talk("motion_frame_count is " + std::to_string(motion) + ", more than the " +
                std::to_string(length) + " frames of this part. Set a greater length.");
  return {earlier, motion};
}

// A speaker's mask as PyTorch's "nearest" brings it to the tokens of a frame: 1 where it is above
// 0. Returns how many these are.
std::int64_t put_region(Context& ctx, const Tensor& mask, const char* name,
                        const blocks::GridSize& tokens, float* to) {
  const std::int64_t rank = mask.rank();
  if (rank < 2 || mask.count() != mask.size(-1) * mask.size(-2) || mask.count() == 0)
    refuse_talk(std::string("mode.") + name +
                ": one mask tells where a speaker is, and there are " +
                std::to_string(rank < 2 ? 0 : mask.size(0)) + ". Link one.");
  const std::int64_t height = mask.size(-2), width = mask.size(-1);
  HostMemory memory(ctx);
  std::pmr::vector<float> drawn(std::size_t(mask.count()), &memory);
  read_to<float>(ctx, mask, drawn);
  const auto nearest = [](std::int64_t i, std::int64_t from, std::int64_t count) {
    const float step = float(from) / float(count);
    return std::min(std::int64_t(std::floor(float(i) * step)), from - 1);
  };
  std::int64_t marked = 0;
  for (std::int64_t y = 0; y < tokens.height; ++y)
    for (std::int64_t x = 0; x < tokens.width; ++x, ++to) {
      const std::int64_t row = nearest(y, height, tokens.height),
                         column = nearest(x, width, tokens.width);
      *to = drawn[std::size_t(row * width + column)] > 0 ? 1.0f : 0.0f;
      marked += *to > 0 ? 1 : 0;
    }
  if (marked == 0)
    refuse_talk(std::string("mode.") + name +
                ": it is 0 at all tokens of the video. Draw where the speaker is.");
  return marked;
}

blocks::GridSize tokens_of(const VideoGrid& grid) {
  return {grid.height / kCellsOfToken, grid.width / kCellsOfToken};
}

// (2, S + 1): of each speaker the region, then 1 over its tokens.
Value talk_regions(Context& ctx, const std::vector<Tensor>& masks, const VideoGrid& grid) {
  const blocks::GridSize tokens = tokens_of(grid);
  const std::int64_t cells = tokens.height * tokens.width;
  const Tensor made = ctx.make_host({std::int64_t(masks.size()), cells + 1}, HEDDLE_F32);
  for (std::size_t i = 0; i < masks.size(); ++i) {
    float* const row = made.data<float>() + std::int64_t(i) * (cells + 1);
    row[cells] = 1.0f / float(put_region(ctx, masks[i], talk_ports::kMasks[i], tokens, row));
  }
  return value_of(made);
}

// What a mode gives besides. Throws where a second speaker lacks something.
struct SecondSpeaker {
  Value heard = {};
  std::vector<Tensor> masks = {};
};
SecondSpeaker second_speaker(Context& ctx) {
  const std::string mode = blocks::ChosenVariant(ctx, Talk::mode).key();
  SecondSpeaker second;
  if (mode != kTwoSpeak) return second;
  const std::map<std::string, Value> extra = blocks::extra_inputs(ctx);
  const auto given = [&](const char* name) {
    const auto found = extra.find(std::string(Talk::mode.port.name) + "." + name);
    return found == extra.end() ? Value() : found->second;
  };
  second.heard = given(talk_ports::kSecond);
  for (const char* name : talk_ports::kMasks)
    if (const Value mask = given(name)) second.masks.push_back(mask.as<Tensor>());
  if (second.heard && second.masks.size() < kTalkers)
    refuse_talk(
        "mode: of two speakers it takes masks of where each is. Link mode.mask_1 and "
        "mode.mask_2.");
  if (!second.heard && second.masks.size() == kTalkers)
    refuse_talk(
        "mode: there are masks of two speakers and one sound. Link mode.audio_encoder_output_2.");
  return second;
}

// In host memory: the run may be on another device.
Tensor on_host(Context& ctx, const Tensor& tensor) {
  const Tensor made = ctx.make_host(tensor.shape(), HEDDLE_F32);
  HostMemory memory(ctx);
  std::pmr::vector<float> numbers(std::size_t(tensor.count()), &memory);
  read_to<float>(ctx, tensor, numbers);
  std::ranges::copy(numbers, made.data<float>());
  return made;
}

// The first frames: of the part before, or the picture's, or zeros.
Tensor first_frames(Context& ctx, const WanJob& job, const TalkPart& part, const Tensor& shown) {
  if (part.motion > 0) {
    FrameStrip strip(ctx, ctx[Talk::vae], whole_frames(part.motion, part.motion), job.pixels);
    strip.put(ctx[Talk::previous_frames], "previous_frames", part.earlier - part.motion,
              part.motion, 0);
    return on_host(ctx, strip.encoded());
  }
  Shape shape = job.grid.shape(1);
  shape[2] = 1;
  if (shown) {
    const Tensor whole = on_host(ctx, shown), first = ctx.make_host(shape, HEDDLE_F32);
    const std::int64_t cells = job.grid.height * job.grid.width;
    for (std::int64_t c = 0; c < job.grid.channels; ++c)
      std::copy_n(whole.data<float>() + c * job.grid.frames * cells, cells,
                  first.data<float>() + c * cells);
    return first;
  }
  const Tensor zeros = ctx.make_host(shape, HEDDLE_F32);
  std::fill_n(zeros.data<float>(), zeros.count(), 0.0f);
  return zeros;
}

}  // namespace

void WanInfiniteTalkToVideo::execute(Context& ctx) {
  const Value given = ctx[model], patch = Value(ctx[model_patch]).field("model");
  const std::int64_t numbers = moment_numbers(patch, given), all = ctx[length];
  check_length(all);
  const WanJob job = wan_job<Talk>(ctx);
  const bool goes_on = ctx.has(previous_frames);
  const TalkPart part =
      goes_on ? part_behind(pictures_shape(ctx[previous_frames].shape(), "previous_frames")[0],
                            ctx[motion_frame_count], all)
              : TalkPart();
  const SecondSpeaker second = second_speaker(ctx);
  std::vector<Value> sounds{ctx[heard]};
  if (second.heard) sounds.push_back(second.heard);
  Record told;
  told.set("heard", value_of(talk_moments(ctx, sounds, part.moments(all), numbers)))
      .set("begin_stays", value_of(goes_on));
  if (second.heard) told.set("regions", talk_regions(ctx, second.masks, job.grid));
  GivenFields fields;
  Tensor shown;
  if (ctx.has(start_image)) {
    const Tensor pictures = ctx[start_image];
    const std::int64_t count = std::min(pictures_shape(pictures.shape(), "start_image")[0], all),
                       frames = latent_frames_of(count);
    FrameStrip strip(ctx, ctx[vae], job.grid.pixel_frames(), job.pixels);
    strip.put(pictures, "start_image", 0, count, 0);
    shown = strip.encoded();
    fields.set.emplace_back("concat_latent_image", value_of(shown));
    fields.set.emplace_back(
        "concat_mask",
        mask_of_frames(ctx, job.grid, 1, [&](std::int64_t t, std::int64_t) { return t < frames; }));
  }
  set_seen<Talk>(ctx, fields);
  told.set("begin", value_of(first_frames(ctx, job, part, shown)));
  ctx[model_out] = blocks::with_patch_joined(given, patch, ctx[audio_scale], told);
  ctx[positive_out] = with_video_fields(ctx[positive], fields);
  ctx[negative_out] = with_video_fields(ctx[negative], fields);
  ctx[latent] = empty_video(ctx, job.grid.shape(1));
  ctx[trim_image] = part.motion;
}

void WanInfiniteTalkToVideo::infer(Infer& question) {
  const std::optional<WanJob> job = told_job<Talk>(question);
  if (!job) return;
  const std::int64_t all = *question[length];
  ToldFields fields;
  const auto frames_of = [&](const Input<Tensor>& input) -> std::optional<Shape> {
    auto shape = question.shape(input);
    return shape && shape->size() == 4 ? shape : std::nullopt;
  };
  if (const auto shape = frames_of(start_image)) {
    fields.image = fields.mask = job->grid.shape(1);
    (*fields.mask)[1] = 1;
    tell_pixels(question, *shape, *job, job->grid.pixel_frames());
    infer_encoded_video(question, *question[vae], job->grid, job->grid.pixel_frames());
  }
  fields.seen = told_seen<Talk>(question);
  tell_fields<Talk>(question, fields);
  question.out(latent, "samples", HEDDLE_F32, job->grid.shape(1));
  const Value given = question.part(model, ""), patch = question.part(model_patch, "model");
  const auto scale = question[audio_scale];
  const auto motion = question[motion_frame_count];
  const Value chosen = question.part(mode, "");
  if (!given.is(HEDDLE_KIND_MODEL) || !patch.is(HEDDLE_KIND_MODEL) || !scale || !motion ||
      !chosen.is(HEDDLE_KIND_STR))
    return;
  const std::int64_t numbers = moment_numbers(patch, given);
  check_length(all);
  TalkPart part;
  if (const auto shape = frames_of(previous_frames)) {
    part = part_behind((*shape)[0], *motion, all);
    const std::int64_t frames = whole_frames(part.motion, part.motion);
    tell_pixels(question, *shape, *job, frames);
    infer_encoded_video(question, *question[vae], job->grid, frames);
  }
  std::size_t speakers = 1;
  const std::string second = std::string(talk_ports::kSecond) + "." + kAllStates;
  for (const auto& states : {question.shape(heard, kAllStates), question.shape(mode, second)}) {
    if (states) question.host_scratch(sizeof(float) * std::uint64_t(count_of(*states)));
  }
  if (chosen.text() == std::string_view(kTwoSpeak) && question.shape(mode, second))
    speakers = kTalkers;
  const MomentRange moments = part.moments(all);
  Shape begin = job->grid.shape(1);
  begin[2] = part.begin_frames();
  Record told;
  told.set("heard",
           blocks::told_info(tensor_info(HEDDLE_F32, talk_shape(speakers, moments, numbers))))
      .set("begin", blocks::told_info(tensor_info(HEDDLE_F32, begin)));
  if (speakers == kTalkers) {
    const blocks::GridSize tokens = tokens_of(job->grid);
    told.set("regions",
             blocks::told_info(tensor_info(
                 HEDDLE_F32, {std::int64_t(kTalkers), tokens.height * tokens.width + 1})));
  }
  question.known(model_out, "", blocks::with_patch_joined(given, patch, *scale, told));
}

}  // namespace heddle::vae
