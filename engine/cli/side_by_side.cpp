#include "engine/cli/side_by_side.h"

#include <algorithm>
#include <utility>

namespace heddle::cli {
namespace {

// Runs that wait to write, too, keep what they have made. So many for each device let one that is
// eight times as fast as the slowest go on without a pause.
constexpr std::size_t kMostForEachDevice = 8;

}  // namespace

bool SideBySide::is_busy(const std::string& device) const {
  return std::ranges::any_of(runs_, [&](const auto& entry) {
    const UnderWay& run = entry.second;
    return !run.waits && std::ranges::find(run.devices, device) != run.devices.end();
  });
}

std::size_t SideBySide::computing() const {
  return std::size_t(
      std::ranges::count_if(runs_, [](const auto& entry) { return !entry.second.waits; }));
}

bool SideBySide::may_start() const {
  if (runs_.empty()) return true;
  if (runs_.size() >= kMostForEachDevice * devices_.size()) return false;
  if (computing() >= devices_.size() || was_in_vain_) return false;
  return !std::ranges::all_of(devices_, [this](const std::string& d) { return is_busy(d); });
}

void SideBySide::begins(std::size_t run, std::vector<std::string> devices) {
  was_in_vain_ = std::ranges::all_of(devices, [this](const std::string& d) { return is_busy(d); });
  UnderWay& entry = runs_[run];
  entry.devices = std::move(devices);
  if (entry.waits) was_in_vain_ = false;
}

void SideBySide::waits(std::size_t run) {
  runs_[run].waits = true;
  was_in_vain_ = false;
}

void SideBySide::ends(std::size_t run) {
  runs_.erase(run);
  was_in_vain_ = false;
}

}  // namespace heddle::cli
