#include "context_windows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include <heddle/model.hpp>

#include "window_weights.h"

namespace heddle::samplers {
namespace {

using Places = std::vector<std::int64_t>;

constexpr const char* kKey = "context_windows";
constexpr std::array<const char*, 4> kSchedules = {"standard_static", "standard_uniform",
                                                   "looped_uniform", "batched"};
constexpr std::array<const char*, 4> kFuses = {"pyramid", "relative", "flat", "overlap-linear"};

template <class Names>
std::optional<std::size_t> index_in(const Names& names, const std::string& name) {
  const auto found = std::ranges::find_if(names, [&](const char* known) { return known == name; });
  if (found == names.end()) return std::nullopt;
  return std::size_t(found - names.begin());
}

Value list_of_numbers(const Places& numbers) {
  std::vector<Value> items;
  for (const std::int64_t number : numbers) items.push_back(value_of(number));
  return list_of(items);
}

Places numbers_in(const Value& list) {
  Places numbers;
  for (std::uint32_t i = 0; i < list.count(); ++i)
    numbers.push_back(list.item(i).as<std::int64_t>());
  return numbers;
}

Places from(std::int64_t begin, std::int64_t count) {
  Places places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), begin);
  return places;
}

// The fraction whose binary digits are those of the step, mirrored: 0, 1/2, 1/4, 3/4, 1/8...
double mirrored(std::uint64_t step) {
  double fraction = 0.0, digit = 0.5;
  for (; step != 0; step >>= 1, digit /= 2)
    if ((step & 1) != 0) fraction += digit;
  return fraction;
}

// Windows of every stride 1, 2, 4..., which begin elsewhere at each step and go on at the front.
std::vector<Places> uniform(const WindowRule& rule, std::int64_t full, std::uint64_t step,
                            bool is_closed) {
  const auto doublings = std::int64_t(std::ceil(std::log2(double(full) / double(rule.length)))) + 1;
  const double fraction = mirrored(step);
  const auto shift = std::int64_t(std::nearbyint(double(full) * fraction));
  std::vector<Places> windows;
  for (std::int64_t k = 0; k < std::min(rule.stride, doublings); ++k) {
    const std::int64_t stride = std::int64_t{1} << k;
    for (std::int64_t begin = std::int64_t(fraction * double(stride)) + shift;
         begin < full + shift - (is_closed ? 0 : rule.overlap);
         begin += rule.length * stride - rule.overlap) {
      Places& window = windows.emplace_back();
      for (std::int64_t i = 0; i < rule.length; ++i) window.push_back((begin + i * stride) % full);
    }
  }
  return windows;
}

// Windows that go on at the front are moved to the end; what they leave there gets one of its own.
std::vector<Places> unrolled(std::vector<Places> windows, const WindowRule& rule,
                             std::int64_t full) {
  std::vector<bool> is_repeated;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto turn = std::ranges::is_sorted_until(windows[i]);
    if (turn != windows[i].end()) {
      const std::int64_t front = *turn, begin = windows[i].front();
      for (std::int64_t& place : windows[i]) place = (place - begin + full) % full;
      const std::int64_t end = full - 1 - windows[i].back();
      for (std::int64_t& place : windows[i]) place += end;
      const Places& next = windows[(i + 1) % windows.size()];
      if (std::ranges::find(next, front) == next.end())
        windows.insert(windows.begin() + std::ptrdiff_t(i) + 1, from(front, rule.length));
    }
    const auto own = windows.begin() + std::ptrdiff_t(i);
    is_repeated.push_back(std::find(windows.begin(), own, *own) != own);
  }
  std::vector<Places> kept;
  for (std::size_t i = 0; i < windows.size(); ++i)
    if (!is_repeated[i]) kept.push_back(std::move(windows[i]));
  return kept;
}

// The last window begins early enough to be whole.
std::vector<Places> in_a_row(const WindowRule& rule, std::int64_t full) {
  std::vector<Places> windows;
  for (std::int64_t begin = 0;; begin += rule.length - rule.overlap) {
    windows.push_back(from(std::min(begin, full - rule.length), rule.length));
    if (begin + rule.length >= full) return windows;
  }
}

std::vector<Places> side_by_side(const WindowRule& rule, std::int64_t full) {
  std::vector<Places> windows;
  for (std::int64_t begin = 0; begin < full; begin += rule.length)
    windows.push_back(from(begin, std::min(rule.length, full - begin)));
  return windows;
}

std::vector<Places> places_at(const WindowRule& rule, std::int64_t full, std::uint64_t step) {
  switch (rule.schedule) {
    case WindowRule::Schedule::kStandardStatic:
      return in_a_row(rule, full);
    case WindowRule::Schedule::kStandardUniform:
      return unrolled(uniform(rule, full, step, false), rule, full);
    case WindowRule::Schedule::kLoopedUniform:
      return uniform(rule, full, step, rule.closed_loop);
    case WindowRule::Schedule::kBatched:
      return side_by_side(rule, full);
  }
  return {};
}

}  // namespace

std::optional<WindowRule::Schedule> find_window_schedule(const std::string& name) {
  const auto index = index_in(kSchedules, name);
  return index ? std::optional(WindowRule::Schedule(*index)) : std::nullopt;
}

std::optional<WindowRule::Fuse> find_window_fuse(const std::string& name) {
  const auto index = index_in(kFuses, name);
  return index ? std::optional(WindowRule::Fuse(*index)) : std::nullopt;
}

Value with_windows(const Value& model, const WindowRule& rule) {
  const Value record = Record()
                           .set("length", value_of(rule.length))
                           .set("overlap", value_of(rule.overlap))
                           .set("schedule", value_of(kSchedules[std::size_t(rule.schedule)]))
                           .set("stride", value_of(rule.stride))
                           .set("closed_loop", value_of(rule.closed_loop))
                           .set("fuse", value_of(kFuses[std::size_t(rule.fuse)]))
                           .set("dim", value_of(rule.dim))
                           .set("freenoise", value_of(rule.freenoise))
                           .set("cond_retained", list_of_numbers(rule.cond_retained))
                           .set("split_conds", value_of(rule.split_conds))
                           .set("latent_retained", list_of_numbers(rule.latent_retained))
                           .set("causal_fix", value_of(rule.causal_fix))
                           .value();
  return with_settings(model, Record(model_settings(model)).set(kKey, record).value());
}

std::optional<WindowRule> windows_of(const Value& settings) {
  const Value record = settings.field(kKey);
  if (!record) return std::nullopt;
  const auto schedule = find_window_schedule(record.get<std::string>("schedule", ""));
  const auto fuse = find_window_fuse(record.get<std::string>("fuse", ""));
  if (!schedule || !fuse)
    throw Error(HEDDLE_NOT_FOUND,
                "the model's context windows have a schedule '" +
                    record.get<std::string>("schedule", "") + "' and are fused by '" +
                    record.get<std::string>("fuse", "") +
                    "', one of which is not known. Set them with a context windows node.");
  return WindowRule{.length = std::max<std::int64_t>(record.get<std::int64_t>("length", 16), 1),
                    .overlap = std::max<std::int64_t>(record.get<std::int64_t>("overlap", 4), 0),
                    .schedule = *schedule,
                    .stride = std::max<std::int64_t>(record.get<std::int64_t>("stride", 1), 1),
                    .closed_loop = record.get<bool>("closed_loop", false),
                    .fuse = *fuse,
                    .dim = record.get<std::int64_t>("dim", 0),
                    .freenoise = record.get<bool>("freenoise", false),
                    .cond_retained = numbers_in(record.field("cond_retained")),
                    .split_conds = record.get<bool>("split_conds", false),
                    .latent_retained = numbers_in(record.field("latent_retained")),
                    .causal_fix = record.get<bool>("causal_fix", true)};
}

std::vector<std::int64_t> ContextWindow::seen(std::int64_t full,
                                              const std::vector<std::int64_t>& retained) const {
  Places rows;
  if (anchor) rows.push_back(*anchor);
  rows.insert(rows.end(), places.begin(), places.end());
  const auto count = std::int64_t(rows.size());
  for (const std::int64_t place : retained) {
    if (place < -count || place >= count)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "a context window of " + std::to_string(count) + " places is to retain place " +
                      std::to_string(place) +
                      ". Leave it out of the list, or take longer windows.");
    rows[std::size_t(place < 0 ? count + place : place)] = place < 0 ? full + place : place;
  }
  return rows;
}

std::size_t ContextWindow::region(std::int64_t full, std::size_t count) const {
  const auto [first, last] = std::ranges::minmax(places);
  const double middle = double(first + last) / (2.0 * double(full));
  return std::min(std::size_t(middle * double(count)), count - 1);
}

ContextWindows windows_at(const WindowRule& rule, std::int64_t full, std::uint64_t step) {
  ContextWindows windows;
  for (Places& places : places_at(rule, full, step)) {
    const bool is_inside =
        std::ranges::all_of(places, [&](std::int64_t place) { return place >= 0 && place < full; });
    if (!is_inside)
      throw Error(HEDDLE_UNSUPPORTED,
                  "context windows of length " + std::to_string(rule.length) + " and stride " +
                      std::to_string(rule.stride) + " leave an axis of " + std::to_string(full) +
                      " places. Take a smaller context_stride, or the schedule looped_uniform.");
    ContextWindow& window = windows.emplace_back(ContextWindow{std::move(places)});
    if (rule.causal_fix && window.places.front() > 0) window.anchor = window.places.front() - 1;
  }
  weigh(windows, rule, full);
  return windows;
}

std::vector<std::int64_t> repeated_noise(const WindowRule& rule, std::int64_t full,
                                         std::uint64_t seed) {
  std::mt19937 engine(static_cast<std::uint32_t>(seed));
  Places rows = from(0, full);
  const std::int64_t step = rule.length - rule.overlap;
  for (std::int64_t begin = 0; begin < full - rule.length; begin += step) {
    const std::int64_t to = begin + rule.length, count = std::min(step, full - to);
    // PyTorch's randperm().
    Places order = from(begin, count);
    for (std::int64_t i = 0; i + 1 < count; ++i)
      std::swap(order[std::size_t(i)],
                order[std::size_t(i + std::int64_t(engine() % std::uint64_t(count - i)))]);
    for (std::int64_t i = 0; i < count; ++i)
      rows[std::size_t(to + i)] = rows[std::size_t(order[std::size_t(i)])];
  }
  return rows;
}

std::optional<WindowSchedule> WindowSchedule::of(const Value& settings, const Shape& latent,
                                                 std::span<const float> levels) {
  std::optional<WindowRule> rule = windows_of(settings);
  if (!rule) return std::nullopt;
  if (rule->dim < 0 || rule->dim >= std::int64_t(latent.size()))
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "context windows lie along dim " + std::to_string(rule->dim) +
                    ", and the latent's axes are numbered 0 to " +
                    std::to_string(latent.size() - 1) +
                    ". Set dim of the context windows to 0 for the batch, 2 for the height of a "
                    "picture, 3 for its width.");
  const std::int64_t full = latent[std::size_t(rule->dim)];
  if (full <= rule->length) return std::nullopt;
  if (rule->dim == 1)
    throw Error(HEDDLE_UNSUPPORTED,
                "context windows of length " + std::to_string(rule->length) +
                    " lie along dim 1, the " + std::to_string(full) +
                    " channels, which a model sees together. Set dim of the context windows to "
                    "0 for the batch, 2 for the height of a picture, 3 for its width.");
  const bool overlaps = rule->schedule != WindowRule::Schedule::kBatched || rule->freenoise;
  if (overlaps && rule->overlap >= rule->length)
    throw Error(HEDDLE_INVALID_ARGUMENT,
                "context windows of length " + std::to_string(rule->length) + " overlap by " +
                    std::to_string(rule->overlap) +
                    ", so that none comes further than the one before it. Set context_overlap "
                    "below context_length (a video's are counted in frames of its latent here).");
  return WindowSchedule(std::move(*rule), full, levels);
}

// ComfyUI compares in single precision, within 1e-4 of the level.
std::uint64_t WindowSchedule::step_of(double sigma) {
  const auto level = float(sigma);
  const auto found = std::ranges::find_if(levels_, [&](float known) {
    return std::abs(known - level) <= 1e-8f + 1e-4f * std::abs(level);
  });
  if (found != levels_.end()) step_ = std::uint64_t(found - levels_.begin());
  return step_;
}

const ContextWindows& WindowSchedule::at(std::uint64_t step) {
  const auto found = made_.find(step);
  if (found != made_.end()) return found->second;
  return made_.emplace(step, windows_at(rule_, full_, step)).first->second;
}

bool WindowSchedule::same_sizes(std::uint64_t a, std::uint64_t b) {
  return a == b || std::ranges::equal(at(a), at(b), {}, &ContextWindow::seen_count,
                                      &ContextWindow::seen_count);
}

bool WindowSchedule::same_places(std::uint64_t a, std::uint64_t b) {
  return a == b ||
         std::ranges::equal(at(a), at(b), {}, &ContextWindow::places, &ContextWindow::places);
}

}  // namespace heddle::samplers
