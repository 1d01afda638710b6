// Context windows: which parts of a long axis of the latent a model sees, one after the other, and
// how much each counts in what they make together (ContextWindowsManual). Schedules and weights are
// ComfyUI's. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <heddle/node.hpp>

namespace heddle::samplers {

// What the node says, as its inputs are named.
struct WindowRule {
  enum class Schedule { kStandardStatic, kStandardUniform, kLoopedUniform, kBatched };
  enum class Fuse { kPyramid, kRelative, kFlat, kOverlapLinear };

  std::int64_t length = 16, overlap = 4;
  Schedule schedule = Schedule::kStandardStatic;
  std::int64_t stride = 1;
  bool closed_loop = false;
  Fuse fuse = Fuse::kPyramid;
  std::int64_t dim = 0;  // of the latent (B, C, ...)
  bool freenoise = false;
  std::vector<std::int64_t> cond_retained = {};
  bool split_conds = false;
  std::vector<std::int64_t> latent_retained = {};
  bool causal_fix = true;
};
// None where there is no such name.
std::optional<WindowRule::Schedule> find_window_schedule(const std::string& name);
std::optional<WindowRule::Fuse> find_window_fuse(const std::string& name);

// The MODEL whose settings say this ("context_windows"), and back.
Value with_windows(const Value& model, const WindowRule& rule);
std::optional<WindowRule> windows_of(const Value& settings);

// A window: places on the axis, which may lie anywhere, in the order in which the model sees them.
struct ContextWindow {
  std::vector<std::int64_t> places;
  // Of what the model makes of each place. Over all windows they add up to 1 at each place of the
  // axis. Where a place comes twice in a window, its last appearance counts, but by kRelative.
  std::vector<double> weights = {};
  std::optional<std::int64_t> anchor = {};  // is seen before the others, and left out of the result

  // Places that the model sees of an axis of `full` places: anchor and window. At each retained
  // place of these the axis' own place is there instead; negative ones count from the end of both.
  // Throws where there is no such place in the window.
  std::vector<std::int64_t> seen(std::int64_t full,
                                 const std::vector<std::int64_t>& retained = {}) const;
  std::int64_t seen_count() const { return std::int64_t(places.size()) + (anchor ? 1 : 0); }
  // Of `count` entries that stand for parts of the axis of `full` places, the one in whose part the
  // window's middle lies.
  std::size_t region(std::int64_t full, std::size_t count) const;
};
using ContextWindows = std::vector<ContextWindow>;

// Of an axis of `full` places at a step of the sampler. Throws where a schedule does not come out
// right: places beyond the axis, or ones in no window.
ContextWindows windows_at(const WindowRule& rule, std::int64_t full, std::uint64_t step);

// FreeNoise (Qiu et al. 2023): behind the first window, noise is that of places before, shuffled by
// the seed. Of each place of the axis, the place whose noise it has.
std::vector<std::int64_t> repeated_noise(const WindowRule& rule, std::int64_t full,
                                         std::uint64_t seed);

// The windows of a run, by its levels.
class WindowSchedule {
 public:
  // None where the axis is no longer than a window: then the model sees all of it. `levels`: of the
  // run, from noisy to clean. Throws where the latent has no such axis, where it is that of the
  // channels, and where windows overlap by their whole length.
  static std::optional<WindowSchedule> of(const Value& settings, const Shape& latent,
                                          std::span<const float> levels);

  const WindowRule& rule() const { return rule_; }
  std::size_t axis() const { return std::size_t(rule_.dim); }
  std::int64_t full() const { return full_; }
  // The step of an evaluation: that of its level, or the last one that was found.
  std::uint64_t step_of(double sigma);
  const ContextWindows& at(std::uint64_t step);
  // Whether both steps have as many windows, each of as many places.
  bool same_sizes(std::uint64_t a, std::uint64_t b);
  bool same_places(std::uint64_t a, std::uint64_t b);

 private:
  WindowSchedule(WindowRule rule, std::int64_t full, std::span<const float> levels)
      : rule_(std::move(rule)), full_(full), levels_(levels.begin(), levels.end()) {}

  WindowRule rule_;
  std::int64_t full_;
  std::vector<float> levels_;
  std::uint64_t step_ = 0;
  std::map<std::uint64_t, ContextWindows> made_;
};

}  // namespace heddle::samplers
