#include "sam3_follow.h"

#include <algorithm>
#include <cmath>

#include <heddle/ops.hpp>
#include <heddle/session.hpp>

namespace heddle::detection {
namespace {

constexpr float kNotThere = -1024, kOutside = -10;

// From -1 to 1, as the memory's encoder has masks.
float on_both_sides(float logit) { return 2 / (1 + std::exp(-logit)) - 1; }

}  // namespace

Sam3Follower::Sam3Follower(Context& ctx, const Sam3Parts& parts, Sam3Calls& calls,
                           std::int64_t frames)
    : ctx_(ctx), parts_(parts), calls_(calls), frames_(frames) {}

std::vector<float> Sam3Follower::pointer_of(const Tensor& hidden, const Floats& mask) {
  const std::int64_t side = parts_.side, quarter = side / 4, fine = parts_.mask_side();
  const Tensor input = ctx_.upload({1, side, side, 1}, HEDDLE_F32, mask.data());
  const Value logits =
      call_model(ctx_, parts_.part("mask_logits"), Record().set("mask", value_of(input)).value());
  Floats numbers(std::size_t(quarter * quarter), &calls_.memory());
  read_to<float>(ctx_, logits.field("logits").as<Tensor>(), numbers);
  const Floats prompt = calls_.resized(numbers.data(), {quarter, quarter}, {fine, fine}, 1,
                                       blocks::Resampling::bilinear_antialiased);
  const Value made = call_model(
      ctx_, parts_.part("pointer"),
      calls_.prompt(hidden, {{}, {}})
          .set("mask", value_of(ctx_.upload({1, fine, fine, 1}, HEDDLE_F32, prompt.data())))
          .value());
  const bool is_there = ctx_.read<float>(made.field("object").as<Tensor>()).front() > 0;
  return ctx_.read<float>(made.field(is_there ? "pointers" : "absent").as<Tensor>());
}

void Sam3Follower::begin(std::int64_t frame, const Tensor& hidden,
                         const std::vector<Floats>& masks) {
  const std::int64_t side = parts_.side, wide = 4 * parts_.mask_side();
  const std::size_t channels = std::size_t(parts_.tracker.channels);
  things_ = masks.size();
  Frame made{frame, {}, {}, {}};
  made.pointers.assign(calls_of_frame(), std::vector<float>(slots() * channels, 0.0f));
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const std::vector<float> pointer = pointer_of(hidden, masks[i]);
    std::ranges::copy(pointer,
                      made.pointers[i / slots()].begin() + std::ptrdiff_t(i % slots() * channels));
  }
  const auto show = [&](std::size_t i) {
    Floats shown(masks[i], &calls_.memory());
    for (float& number : shown) number = on_both_sides(20 * number - 10);
    return Shown{calls_.resized(shown.data(), {side, side}, {wide, wide}, 1),
                 std::ranges::any_of(masks[i], [](float n) { return n > 0; })};
  };
  memorise(made, hidden, show, std::vector<bool>(masks.size(), true));
  first_.assign(1, std::move(made));
  later_.clear();
}

std::vector<Sam3Follower::Seen> Sam3Follower::memories_at(std::int64_t frame) const {
  const std::int64_t most = parts_.tracker.memories;
  std::vector<Seen> seen;
  for (const Frame& first : first_) {
    const std::int64_t ago = frame - first.number;
    seen.push_back({&first, ago > 0 && ago < most ? most - ago - 1 : most - 1, 0});
  }
  for (const Frame& one : later_)  // oldest first
    if (const std::int64_t ago = frame - one.number; ago > 0 && ago < most)
      seen.push_back({&one, ago - 1, 0});
  return seen;
}

std::vector<Sam3Follower::Seen> Sam3Follower::pointers_at(std::int64_t frame) const {
  const std::int64_t most = std::min(frames_, kSam3Pointers);
  const auto age = [&](const Frame& one) {
    return float(frame - one.number) / float(std::max<std::int64_t>(most - 1, 1));
  };
  std::vector<Seen> seen;
  for (const Frame& first : first_) seen.push_back({&first, 0, age(first)});
  for (auto one = later_.rbegin(); one != later_.rend(); ++one)
    if (const std::int64_t ago = frame - one->number; ago > 0 && ago < most)
      seen.push_back({&*one, 0, age(*one)});
  return seen;
}

Record Sam3Follower::remembered(std::int64_t frame, std::size_t call) const {
  const std::int64_t cells = parts_.grid * parts_.grid, channels = parts_.tracker.channels,
                     rows = parts_.tracker.slots;
  const std::vector<Seen> memories = memories_at(frame), pointers = pointers_at(frame);
  const auto count = std::int64_t(memories.size()), known = std::int64_t(pointers.size());
  const Tensor memory = ctx_.make({1, count * cells + known * rows, channels}, HEDDLE_F32),
               past = ctx_.make({1, count * cells, channels}, HEDDLE_F32);
  std::vector<std::int32_t> times;
  std::int64_t at = 0;
  for (const Seen& one : memories) {
    const Tensor part = memory.slice(1, at, at + cells);
    if (call < one.frame->memories.size())
      ops::copy_into(ctx_, one.frame->memories[call], part);
    else  // nothing of this call's things was there
      ops::fill(ctx_, part, 0);
    ops::copy_into(ctx_, one.frame->cells, past.slice(1, at, at + cells));
    times.push_back(std::int32_t(one.row));
    at += cells;
  }
  std::vector<float> numbers, ages;
  for (const Seen& one : pointers) {
    ages.push_back(one.age);
    if (call < one.frame->pointers.size())
      numbers.insert(numbers.end(), one.frame->pointers[call].begin(),
                     one.frame->pointers[call].end());
    else
      numbers.resize(numbers.size() + std::size_t(rows * channels), 0.0f);
  }
  ops::copy_into(ctx_, ctx_.upload({1, known * rows, channels}, HEDDLE_F32, numbers.data()),
                 memory.slice(1, at, at + known * rows));
  return Record()
      .set("memory", value_of(memory))
      .set("past", value_of(past))
      .set("frames", value_of(ctx_.upload({count}, HEDDLE_I32, times.data())))
      .set("ages", value_of(ctx_.upload({known}, HEDDLE_F32, ages.data())));
}

std::vector<Floats> Sam3Follower::follow(std::int64_t frame, const Tensor& hidden) {
  const auto fine = parts_.mask_side();
  const std::size_t channels = std::size_t(parts_.tracker.channels),
                    each = std::size_t(parts_.tracker.masks);
  std::vector<Floats> masks;
  Frame made{frame, {}, {}, {}};
  for (std::size_t call = 0; call < calls_of_frame(); ++call) {
    const std::size_t count = std::min(slots(), things_ - call * slots());
    std::vector<float> used(slots(), 0.0f);
    std::fill_n(used.begin(), count, 1.0f);
    const Value out = call_model(
        ctx_, parts_.part("tracker"),
        remembered(frame, call)
            .set("hidden", value_of(hidden))
            .set("slots", value_of(ctx_.upload({parts_.tracker.slots}, HEDDLE_F32, used.data())))
            .value());
    const auto numbers = [&](const char* name) {
      return ctx_.read<float>(out.field(name).as<Tensor>());
    };
    const std::vector<float> objects = numbers("objects"), qualities = numbers("qualities"),
                             absent = numbers("absent");
    std::vector<float> pointers = numbers("pointers");
    std::fill(pointers.begin() + std::ptrdiff_t(count * channels), pointers.end(), 0.0f);
    for (std::size_t i = 0; i < count; ++i) {
      Floats& mask = masks.emplace_back(std::size_t(fine * fine), kNotThere, &calls_.memory());
      if (!(objects[i] > 0)) {
        std::copy_n(absent.begin() + std::ptrdiff_t(i * channels), channels,
                    pointers.begin() + std::ptrdiff_t(i * channels));
        continue;
      }
      const auto own = qualities.begin() + std::ptrdiff_t(i * each);
      const auto best = std::max_element(own, own + std::ptrdiff_t(each)) - own;
      const Tensor all = out.field(("mask." + std::to_string(best)).c_str()).as<Tensor>();
      read_to<float>(ctx_, all.slice(1, std::int64_t(i), std::int64_t(i) + 1), mask);
    }
    made.pointers.push_back(std::move(pointers));
  }
  later_.push_back(std::move(made));
  while (later_.front().number < frame - std::max(parts_.tracker.memories, kSam3Pointers))
    later_.pop_front();
  return masks;
}

void Sam3Follower::remember(const Tensor& hidden, const std::vector<Floats>& masks,
                            const std::vector<bool>& given) {
  const std::int64_t fine = parts_.mask_side(), wide = 4 * fine;
  const std::vector<bool> held =
      masks.size() > 1 ? hold_their_own(masks) : std::vector<bool>(masks.size(), true);
  const auto show = [&](std::size_t i) {
    Floats logits(masks[i], &calls_.memory());
    if (!held[i])
      for (float& logit : logits) logit = std::min(logit, kOutside);
    Floats shown = calls_.resized(logits.data(), {fine, fine}, {wide, wide}, 1);
    const bool is_there = std::ranges::any_of(shown, [](float n) { return n > 0; });
    for (float& number : shown) number = on_both_sides(number);
    return Shown{std::move(shown), is_there};
  };
  memorise(later_.back(), hidden, show, given);
}

void Sam3Follower::memorise(Frame& frame, const Tensor& hidden, const Show& show,
                            const std::vector<bool>& given) {
  const std::int64_t wide = 4 * parts_.mask_side();
  const std::size_t pixels = std::size_t(wide * wide);
  Floats all(pixels * slots(), &calls_.memory());
  frame.memories.clear();
  for (std::size_t call = 0; call < calls_of_frame(); ++call) {
    std::ranges::fill(all, 0.0f);
    std::vector<float> trusted(slots(), 0.0f), absent(slots(), 1.0f);
    const std::size_t begin = call * slots(), end = std::min(begin + slots(), things_);
    for (std::size_t i = begin; i < end; ++i) {
      const Shown shown = show(i);
      trusted[i - begin] = given[i] ? 1.0f : 0.0f;
      absent[i - begin] = shown.is_there ? 0.0f : 1.0f;
      for (std::size_t at = 0; at < pixels; ++at) all[at * slots() + i - begin] = shown.mask[at];
    }
    const std::int64_t rows = parts_.tracker.slots;
    const Value made = call_model(
        ctx_, parts_.part("memory"),
        Record()
            .set("hidden", value_of(hidden))
            .set("masks", value_of(ctx_.upload({1, wide, wide, rows}, HEDDLE_F32, all.data())))
            .set("trusted", value_of(ctx_.upload({rows}, HEDDLE_F32, trusted.data())))
            .set("absent", value_of(ctx_.upload({1, rows}, HEDDLE_F32, absent.data())))
            .value());
    frame.cells = made.field("cells").as<Tensor>();
    frame.memories.push_back(made.field("memory").as<Tensor>());
  }
}

}  // namespace heddle::detection
