#include "sam3_track_nodes.h"

#include <algorithm>
#include <cmath>

#include <heddle/checked.hpp>

#include "chosen_things.h"
#include "sam3_video.h"

namespace heddle::detection {
namespace {

using blocks::GridSize;

void check_frames(const Shape& shape) {
  if (shape.size() != 4 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || shape[3] < 3)
    throw Error(
        HEDDLE_INVALID_ARGUMENT,
        "images: SAM 3 follows objects in pictures (batch, height, width, channels) of three "
        "channels or more");
}

void check_first_masks(const Shape& shape) {
  if (shape.size() != 3 || shape[0] < 1 || shape[1] < 1 || shape[2] < 1)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "initial_mask: give masks (objects, height, width) of the first picture, one for "
                "each object.");
}

[[noreturn]] void refuse_nothing() {
  throw Error(HEDDLE_INVALID_ARGUMENT,
              "initial_mask, conditioning: there is nothing to follow. Link masks of the first "
              "picture, or a text.");
}

// What the nodes read. Throws before anything is computed where a model cannot follow.
Sam3Parts following_parts(const Value& model, Context* ctx = nullptr) {
  constexpr std::int64_t kBits = 8;
  Sam3Parts parts(model, ctx);
  (void)parts.part("tracker");
  if (parts.side % kBits != 0)
    throw Error(HEDDLE_UNSUPPORTED,
                "model: its pictures have " + std::to_string(parts.side) +
                    " pixels a side, and tracks are told in rows of 8 pixels a byte. Take the "
                    "checkpoint of SAM 3.1, whose pictures have 1008.");
  return parts;
}

// Masks of any size, 0 or 1 in the model's square.
std::vector<Floats> first_masks(Context& ctx, Sam3Calls& calls, const Tensor& given,
                                const GridSize& square) {
  constexpr float kHalf = 0.5f;
  check_first_masks(given.shape());
  const GridSize size{given.size(1), given.size(2)};
  Floats numbers(std::size_t(checked_product({size.height, size.width}, "the mask")),
                 &calls.memory());
  std::vector<Floats> masks;
  for (std::int64_t i = 0; i < given.size(0); ++i) {
    read_to<float>(ctx, given.slice(0, i, i + 1), numbers);
    Floats& mask = masks.emplace_back(calls.resized(numbers.data(), size, square, 1));
    for (float& number : mask) number = number > kHalf ? 1.0f : 0.0f;
  }
  return masks;
}

// What a video's calls read: of masks all of them, of texts one thing, where the first look finds
// it.
class TrackPlan {
 public:
  TrackPlan(Infer& question, const Sam3Parts& parts, std::int64_t frames)
      : question_(question), parts_(parts), t_(parts.tracker), frames_(frames) {}

  std::int64_t things() const { return things_; }
  void frame() { call(parts_.trunk, {{"picture", HEDDLE_F32, {1, parts_.side, parts_.side, 3}}}); }
  void find(const std::vector<Shape>& texts) {
    for (const Shape& text : texts) call(parts_.detector, {hidden(), {"text", HEDDLE_F32, text}});
  }
  void begin(std::int64_t frame, std::int64_t things) {
    first_ = frame;
    things_ = things;
    for (std::int64_t i = 0; i < things; ++i) {
      call(parts_.part("mask_logits"), {{"mask", HEDDLE_F32, {1, parts_.side, parts_.side, 1}}});
      call(parts_.part("pointer"), segmenter_shapes(parts_, 2, true));
    }
    remember();
  }
  void follow(std::int64_t frame) {
    const std::int64_t cells = parts_.grid * parts_.grid, ago = frame - first_,
                       memories = std::min(ago, t_.memories),
                       pointers = std::min(ago, std::min(frames_, kSam3Pointers));
    for (std::int64_t i = 0; i < calls(); ++i)
      call(parts_.part("tracker"),
           {{"memory", HEDDLE_F32, {1, memories * cells + pointers * t_.slots, t_.channels}},
            {"past", HEDDLE_F32, {1, memories * cells, t_.channels}},
            {"frames", HEDDLE_I32, {memories}},
            {"ages", HEDDLE_F32, {pointers}},
            hidden(),
            {"slots", HEDDLE_F32, {t_.slots}}});
    remember();
  }

 private:
  std::int64_t calls() const { return (things_ + t_.slots - 1) / t_.slots; }
  Infer::Named hidden() const {
    return {"hidden", HEDDLE_F32, {1, parts_.grid, parts_.grid, parts_.width}};
  }
  void remember() {
    const std::int64_t wide = 4 * parts_.mask_side();
    for (std::int64_t i = 0; i < calls(); ++i)
      call(parts_.part("memory"), {hidden(),
                                   {"masks", HEDDLE_F32, {1, wide, wide, t_.slots}},
                                   {"trusted", HEDDLE_F32, {t_.slots}},
                                   {"absent", HEDDLE_F32, {1, t_.slots}}});
  }
  void call(const Value& model, std::vector<Infer::Named> inputs) {
    question_.call(model, {{std::move(inputs), {}}});
  }

  Infer& question_;
  const Sam3Parts& parts_;
  const Sam3Parts::Tracker& t_;
  const std::int64_t frames_;
  std::int64_t first_ = 0, things_ = 0;
};

}  // namespace

void Sam3VideoTrack::execute(Context& ctx) {
  const Sam3Parts parts = following_parts(ctx[model], &ctx);
  const Tensor pictures = ctx[images];
  check_frames(pictures.shape());
  const std::int64_t count = pictures.size(0);
  const GridSize size{pictures.size(1), pictures.size(2)}, square{parts.side, parts.side};
  Sam3Calls calls(ctx, parts);
  VideoJob job;
  if (ctx.has(conditioning)) job.texts = prompt_texts(ctx[conditioning]);
  if (ctx.has(mask)) job.masks = first_masks(ctx, calls, ctx[mask], square);
  if (job.texts.empty() && job.masks.empty()) refuse_nothing();
  job.threshold = float(ctx[threshold]);
  job.most = ctx[most];
  job.interval = ctx[interval];
  Sam3Video video(ctx, parts, calls, job, count);
  Floats pixels(std::size_t(checked_product({size.height, size.width, 3}, "the picture")),
                &calls.memory());
  for (std::int64_t i = 0; i < count; ++i) {
    if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
    read_to<float>(ctx, pictures.slice(0, i, i + 1).slice(3, 0, 3), pixels);
    video.look(pixels.data(), size);
    ctx.progress(double(i + 1) / double(count), "pictures");
  }
  ctx[tracks] = value_of_object_tracks(video.tracks(size));
}

void Sam3VideoTrack::infer(Infer& question) {
  const auto shape = question.shape(images), masks = question.shape(mask);
  const auto given = question[model];
  if (!shape || !given) return;
  const Sam3Parts parts = following_parts(*given);
  check_frames(*shape);
  if (masks) check_first_masks(*masks);
  const std::vector<Shape> texts = text_shapes(question, conditioning);
  const std::int64_t count = (*shape)[0], limit = question[most].value_or(0),
                     step = std::max<std::int64_t>(question[interval].value_or(1), 1),
                     told = masks ? (*masks)[0] : 0;
  TrackPlan plan(question, parts, count);
  for (std::int64_t frame = 0; frame < count; ++frame) {
    plan.frame();
    const bool is_told = frame == 0 && told > 0;
    const bool looks =
        !texts.empty() && frame % step == 0 && plan.things() < (limit > 0 ? limit : kSam3Things);
    if (looks && !is_told) plan.find(texts);
    if (is_told)
      plan.begin(frame, told);
    else if (plan.things() > 0)
      plan.follow(frame);
    else if (looks)
      plan.begin(frame, 1);
  }
  question.known(tracks, "n_frames", value_of(count));
  question.known(tracks, "orig_size",
                 list_of(std::vector<Value>{value_of((*shape)[1]), value_of((*shape)[2])}));
  const std::int64_t bytes = parts.side / 8;
  if (texts.empty() && told > 0)
    question.out(tracks, "packed_masks", HEDDLE_U8, {count, told, parts.side, bytes});
  // Texts may find as many as are followed at most.
  const std::int64_t most_things =
      texts.empty() ? told : std::max(told, limit > 0 ? limit : kSam3Things);
  const double fine = double(parts.mask_side()), wide = 4 * fine, numbers = sizeof(float),
               things = double(std::max<std::int64_t>(most_things, 1)),
               looks = double(parts.queries) * double(texts.size()) * fine * fine,
               cells = double(parts.grid) * double(parts.grid) * double(parts.tracker.channels);
  // Memories of all frames that may be read, and as many again where they lie side by side.
  const double kept = numbers * cells * double(parts.tracker.memories + kSam3Pointers) *
                      (2 + std::ceil(things / double(parts.tracker.slots)));
  question.cost(0, kept, std::uint64_t(kept));
  question.host_scratch(
      std::uint64_t(numbers * (wide * wide * double(parts.tracker.slots + 4) +
                               2 * things * double(parts.side) * double(parts.side) + looks +
                               8 * double((*shape)[1]) * double((*shape)[2])) +
                    double(count) * things * double(parts.side * bytes)));
}

void Sam3TrackToMask::execute(Context& ctx) {
  const blocks::ObjectTracks told = blocks::object_tracks_of(ctx, ctx[tracks], "track_data");
  const std::int64_t pixels = checked_product({told.height, told.width}, "the mask");
  const Tensor all = ctx.make_host({told.frames, told.height, told.width}, HEDDLE_F32);
  float* to = all.data<float>();
  std::fill_n(to, checked_product({told.frames, pixels}, "the masks"), 0.0f);
  const std::vector<std::int64_t> chosen = chosen_things(ctx[things], told.things());
  HostMemory memory(ctx);
  const GridSize size{told.rows(), told.columns()};
  Floats united(std::size_t(size.height * size.width), &memory);
  for (std::int64_t frame = 0; !chosen.empty() && frame < told.frames; ++frame, to += pixels) {
    std::ranges::fill(united, 0.0f);
    for (const std::int64_t thing : chosen) {
      const std::uint8_t* const bits = told.mask(frame, thing);
      for (std::size_t i = 0; i < united.size(); ++i)
        if ((bits[i / 8] >> (i % 8)) & 1) united[i] = 1;
    }
    blocks::resample(blocks::Source::of(united.data(), {1, size, 1}), {told.height, told.width},
                     blocks::Resampling::bilinear, to, memory, [&] {
                       if (ctx.cancelled()) throw Error(HEDDLE_CANCELLED, "cancelled");
                     });
  }
  ctx[masks] = all;
}

}  // namespace heddle::detection
