#include "minimax_reference_node.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "encode.h"
#include "minimax_prompts.h"
#include "minimax_shown.h"
#include "pictures.h"
#include "plugins/blocks/dynamic_inputs.h"
#include "plugins/blocks/minimax_latents.h"
#include "text_nodes.h"

namespace heddle::encoders {
namespace {

using blocks::GridSize;
using ReferenceNode = MiniMaxH3ReferenceToVideo;

constexpr std::int64_t kReferenceStep = 32, kReferenceCell = 16;

// A picture or a video, with its sound or without, or a sound alone. Names are those of inputs.
struct ShownReference {
  std::string image, sound;   // or empty
  GridSize size = {};         // in which it is shown
  std::int64_t pictures = 0;  // of a video; 1: a single one
  bool is_video = false;

  // The time that it takes, where its sound has so many moments.
  double span(std::int64_t moments) const {
    if (image.empty()) return double(moments);
    return is_video ? std::max(double(moments), blocks::kMinimaxPictureTime * double(pictures)) : 1;
  }
};

// ComfyUI rounds as Python does, half to even.
std::int64_t in_steps(double pixels) {
  return std::max(blocks::rounded(pixels / double(kReferenceStep)) * kReferenceStep,
                  kReferenceStep);
}

// Of a picture: no larger than it is, and than the video's area or a shorter side of 2048 pixels.
GridSize picture_reference_size(const GridSize& from, const GridSize& video, bool is_matched) {
  constexpr double kShorterSide = 2048;
  const double width = double(from.width), height = double(from.height),
               wanted =
                   is_matched
                       ? std::sqrt(double(video.width) * double(video.height) / (width * height))
                       : kShorterSide / std::min(width, height),
               scale = std::min(1.0, wanted);
  return {in_steps(height * scale), in_steps(width * scale)};
}

// Of a video: of 768 pixels on its shorter side, unless that is too large an area, or more than it
// has.
GridSize video_reference_size(const GridSize& from) {
  constexpr double kShorterSide = 768, kMostPixels = 768.0 * 1344.0;
  const double ratio = double(from.width) / double(from.height);
  double width = ratio >= 1 ? kShorterSide * ratio : kShorterSide,
         height = ratio >= 1 ? kShorterSide : kShorterSide / ratio;
  if (width * height > kMostPixels) {
    const double scale = std::sqrt(kMostPixels / (width * height));
    width *= scale;
    height *= scale;
  }
  const GridSize canvas{in_steps(height), in_steps(width)};
  if (from.width * from.height >= canvas.width * canvas.height) return canvas;
  return {in_steps(double(from.height)), in_steps(double(from.width))};
}

// Whole clips of so many pictures, no longer than the video that is drawn.
std::int64_t reference_pictures(std::int64_t given, std::int64_t drawn, const std::string& name) {
  constexpr std::int64_t kLeast = 5, kPeriod = 17;
  if (given < kLeast)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                name + ": the video has " + std::to_string(given) +
                    " pictures, of 24 a second; MiniMax H3 is shown 5 at least. Link a longer one, "
                    "or link a picture to ref_images.");
  return (std::min(given, drawn) - kLeast) / kPeriod * kPeriod + kLeast;
}

// The names of what is linked, with the shapes of pictures.
struct LinkedReferences {
  std::vector<std::pair<std::string, Shape>> images, videos;
  std::vector<std::string> video_sounds, sounds;
};

std::string number_of(const std::string& name) { return name.substr(name.rfind('_')); }

// In the order in which the prompt counts them and the model is shown them.
std::vector<ShownReference> shown_references(const LinkedReferences& linked, const GridSize& video,
                                             std::int64_t drawn, bool is_matched) {
  std::vector<ShownReference> all;
  for (const auto& [name, shape] : linked.images)
    all.push_back(
        {name, "", picture_reference_size(picture_size(shape, name), video, is_matched), 1, false});
  for (const auto& [name, shape] : linked.videos) {
    ShownReference one{name, "", video_reference_size(picture_size(shape, name)),
                       reference_pictures(shape[0], drawn, name), true};
    for (const std::string& sound : linked.video_sounds)
      if (number_of(sound) == number_of(name)) one.sound = sound;
    all.push_back(std::move(one));
  }
  for (const std::string& sound : linked.sounds) all.push_back({"", sound, {}, 0, false});
  return all;
}

// The inputs of a port that grows, by their whole names; those that it has no sockets for are
// refused.
std::map<std::string, Value> linked_to(Context& ctx, const heddle_port& port) {
  const std::string prefix = std::string(port.name) + ".";
  std::map<std::string, Value> linked;
  for (const blocks::GrownInput& given : blocks::grown_inputs(ctx, port))
    linked.emplace(prefix + given.name, given.value);
  for (const auto& [name, value] : blocks::extra_inputs(ctx))
    if (name.starts_with(prefix) && !linked.contains(name))
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  name +
                      ": MiniMax H3 is shown at most nine pictures, three videos and three "
                      "sounds beside theirs, by sockets whose numbers begin with 0. Take the "
                      "link away.");
  return linked;
}

void warn_of_references(Context& ctx, const LinkedReferences& linked,
                        const std::vector<ShownReference>& all) {
  constexpr std::size_t kMost = 12;  // in the publishers' pipeline
  for (const std::string& sound : linked.video_sounds)
    if (std::ranges::none_of(all, [&](const ShownReference& one) { return one.sound == sound; }))
      ctx.warn(sound +
               ": no video of this number is linked, and its sound is left out. Link it to "
               "ref_audios to have it heard alone.");
  if (all.size() > kMost)
    ctx.warn(std::to_string(all.size()) + " references are linked; MiniMax H3 was published for " +
             std::to_string(kMost) + " at most.");
  const bool has_sounds = !all.empty() && all.back().image.empty();
  if (has_sounds && linked.images.empty() && linked.videos.empty())
    ctx.warn(
        "only sounds are linked; MiniMax H3 was published for sounds beside pictures or "
        "videos.");
}

Value at_time(Record record, double time) {
  return record.set(blocks::kMinimaxTime, value_of(time)).value();
}

// The pictures of a video that the text encoder sees.
Tensor seen_pictures(Context& ctx, const Tensor& pictures) {
  const std::int64_t count = MinimaxPrompt::seen_of(pictures.size(0)),
                     each = pictures.count() / pictures.size(0);
  const Tensor seen =
      ctx.make_host({count, pictures.size(1), pictures.size(2), pictures.size(3)}, HEDDLE_F32);
  for (std::int64_t i = 0; i < count; ++i)
    std::copy_n(pictures.data<float>() + MinimaxPrompt::frame_of(i) * each, each,
                seen.data<float>() + i * each);
  return seen;
}

// Behind what is shown already.
void show_reference(Context& ctx, const ShownReference& one,
                    const std::map<std::string, Value>& values, MinimaxPrompt& given,
                    MinimaxShown& shown) {
  std::int64_t moments = 0;
  if (!one.sound.empty()) {
    check_sounds(ctx[ReferenceNode::audio_vae]);
    Record record =
        shown_sound(ctx, ctx[ReferenceNode::audio_vae], values.at(one.sound), one.sound);
    moments = record.value().field("samples").as<Tensor>().size(3);
    if (one.is_video)
      record.set(blocks::kMinimaxHeight, value_of(one.size.height / kReferenceCell))
          .set(blocks::kMinimaxWidth, value_of(one.size.width / kReferenceCell));
    given.add_sound();
    shown.sounds.push_back(at_time(record, shown.start));
  }
  if (!one.image.empty()) {
    check_clips(ctx[ReferenceNode::vae]);
    const Tensor pictures =
        scaled_pictures(ctx, values.at(one.image).as<Tensor>(), one.pictures, one.size, false);
    if (one.is_video)
      given.add_video(one.pictures, one.size, seen_pictures(ctx, pictures));
    else
      given.add_picture({one.size, pictures});
    shown.clips.push_back(at_time(shown_clip(ctx, ctx[ReferenceNode::vae], pictures), shown.start));
  }
  shown.start += one.span(moments);
}

// What is linked, before a run; none: not known yet.
std::optional<LinkedReferences> told_references(const Infer& question) {
  LinkedReferences linked;
  for (const auto& [input, shapes] : {std::pair(&ReferenceNode::ref_images, &linked.images),
                                      std::pair(&ReferenceNode::ref_videos, &linked.videos)})
    for (const blocks::ToldInput& told : blocks::told_inputs(question, *input)) {
      if (!told.tensor || told.tensor->rank != 4) return {};
      shapes->emplace_back(std::string(input->port.name) + "." + told.name,
                           Shape(told.tensor->shape, told.tensor->shape + told.tensor->rank));
    }
  for (const auto& [input, names] :
       {std::pair(&ReferenceNode::ref_video_audios, &linked.video_sounds),
        std::pair(&ReferenceNode::ref_audios, &linked.sounds)})
    for (const blocks::ToldInput& told : blocks::told_inputs(question, *input))
      names->push_back(std::string(input->port.name) + "." + told.name);
  return linked;
}

// The latent of a sound, by the whole name of its input.
std::optional<Shape> tell_reference_sound(Infer& question, const std::string& name,
                                          bool is_of_video) {
  const Input<blocks::Growing>& input =
      is_of_video ? ReferenceNode::ref_video_audios : ReferenceNode::ref_audios;
  const std::string socket = name.substr(name.find('.') + 1);
  const std::optional<Shape> waveform = question.shape(input, socket + ".waveform");
  const Value rate = question.part(input, socket + ".sample_rate");
  const std::optional<Value> value = question[ReferenceNode::audio_vae];
  if (!waveform || !rate || !value) return {};
  return tell_sound(question, *value, *waveform, rate.as<std::int64_t>());
}

}  // namespace

void MiniMaxH3ReferenceToVideo::execute(Context& ctx) {
  const GridSize size{ctx[height], ctx[width]};
  const std::int64_t drawn = blocks::minimax_pictures(ctx[length]);
  LinkedReferences linked;
  std::map<std::string, Value> values;
  for (const auto& [input, shapes] :
       {std::pair(&ref_images, &linked.images), std::pair(&ref_videos, &linked.videos)})
    for (const auto& [name, value] : linked_to(ctx, input->port)) {
      shapes->emplace_back(name, value.as<Tensor>().shape());
      values.emplace(name, value);
    }
  for (const auto& [input, names] :
       {std::pair(&ref_video_audios, &linked.video_sounds), std::pair(&ref_audios, &linked.sounds)})
    for (const auto& [name, value] : linked_to(ctx, input->port)) {
      names->push_back(name);
      values.emplace(name, value);
    }
  const std::vector<ShownReference> all =
      shown_references(linked, size, drawn, std::string(ctx[ref_image_size]) == "match");
  warn_of_references(ctx, linked, all);
  MinimaxPrompt given;
  MinimaxShown shown;
  for (const ShownReference& one : all) show_reference(ctx, one, values, given, shown);
  ctx[positive] = with_shown(encode_prompt(ctx, ctx[clip], given.with(ctx[prompt])), shown);
  ctx[latent] = empty_video(ctx, drawn, size);
}

std::uint64_t MiniMaxH3ReferenceToVideo::fingerprint(Context& ctx) {
  return embeddings_fingerprint(ctx, {&prompt});
}

void MiniMaxH3ReferenceToVideo::infer(Infer& question) {
  const auto rows = question[height], columns = question[width], count = question[length];
  if (!rows || !columns || !count) return;
  const GridSize size{*rows, *columns};
  const std::int64_t drawn = blocks::minimax_pictures(*count);
  infer_empty_video(question, latent, drawn, size);
  const std::optional<LinkedReferences> linked = told_references(question);
  const auto sizing = question[ref_image_size];
  if (!linked || !sizing) return;
  MinimaxPrompt given;
  std::vector<Shape> clips, sounds;
  double start = 0;
  std::uint64_t bytes = 0;
  for (const ShownReference& one :
       shown_references(*linked, size, drawn, std::string(*sizing) == "match")) {
    std::int64_t moments = 0;
    if (!one.sound.empty()) {
      const auto heard = tell_reference_sound(question, one.sound, one.is_video);
      if (!heard) return;
      moments = (*heard)[3];
      sounds.push_back(*heard);
      given.add_sound();
    }
    if (!one.image.empty()) {
      const std::optional<Value> value = question[vae];
      const auto made = value ? tell_clip(question, *value, one.pictures, one.size) : std::nullopt;
      if (!made) return;
      clips.push_back(*made);
      const auto& shapes = one.is_video ? linked->videos : linked->images;
      const auto found =
          std::ranges::find(shapes, one.image, &std::pair<std::string, Shape>::first);
      bytes += scaled_bytes(found->second, one.pictures, one.size);
      if (one.is_video)
        given.add_video(one.pictures, one.size);
      else
        given.add_picture({one.size});
    }
    start += one.span(moments);
  }
  if (bytes > 0) question.host_scratch(bytes);
  const auto from = question[clip];
  const auto text = question[prompt];
  if (!from || !text) return;
  const std::size_t entries = infer_prompt(question, *from, given.with(*text), positive);
  for (std::size_t i = 0; i < entries; ++i) {
    const auto tell = [&](const char* list, const std::vector<Shape>& shapes) {
      for (std::size_t k = 0; k < shapes.size(); ++k)
        question.out(positive,
                     std::to_string(i) + "." + list + "." + std::to_string(k) + ".samples",
                     HEDDLE_F32, shapes[k]);
    };
    tell("reference_latents", clips);
    tell(blocks::kMinimaxSounds, sounds);
    if (start > 0)
      question.known(positive, std::to_string(i) + "." + blocks::kMinimaxStart, value_of(start));
  }
}

}  // namespace heddle::encoders
