#include "engine/device/health.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

HealthPolicy completed(HealthPolicy policy) {
  if (!policy.now) policy.now = system_seconds;
  constexpr double kLongest = 1e9;  // for ever, of what can be counted
  policy.seconds = policy.seconds >= 0 ? std::min(policy.seconds, kLongest) : 0;
  return policy;
}

}  // namespace

DeviceHealth::DeviceHealth(HealthPolicy policy) : policy_(completed(std::move(policy))) {}

void DeviceHealth::run_succeeded() {
  const auto standing = standing_.lock();
  if (standing->state != State::healthy) return;  // one that began before: only a probe decides
  standing->failures = 0;
  standing->cause.clear();
}

bool DeviceHealth::run_failed(const std::string& cause) {
  const double now = policy_.now();
  failed_runs_.fetch_add(1, std::memory_order_release);
  const auto standing = standing_.lock();
  ++standing->failures;
  standing->cause = cause;
  if (standing->state != State::healthy || policy_.failures == 0 ||
      standing->failures < policy_.failures)
    return false;
  standing->state = State::degraded;
  standing->probe_at = now + policy_.seconds;
  return true;
}

bool DeviceHealth::begin_probe() {
  const double now = policy_.now();
  const auto standing = standing_.lock();
  if (standing->state != State::degraded || now < standing->probe_at) return false;
  standing->state = State::probing;
  return true;
}

void DeviceHealth::end_probe(const std::string& failure) {
  const double now = policy_.now();
  const auto standing = standing_.lock();
  if (failure.empty()) {
    *standing = {};
    return;
  }
  ++standing->failures;
  standing->state = State::degraded;
  standing->cause = failure;
  standing->probe_at = now + policy_.seconds;
}

DeviceHealth::Report DeviceHealth::report() const {
  const double now = policy_.now();
  const auto standing = standing_.lock();
  Report report{standing->state, standing->failures, standing->cause, 0};
  if (standing->state == State::degraded)
    report.probe_in_seconds = std::max(standing->probe_at - now, 0.0);
  return report;
}

std::string_view state_name(DeviceHealth::State state) {
  switch (state) {
    case DeviceHealth::State::healthy:
      return "healthy";
    case DeviceHealth::State::degraded:
      return "degraded";
    case DeviceHealth::State::probing:
      return "probing";
  }
  return "unknown state";
}

std::string reason_to_leave_out(const DeviceHealth::Report& report) {
  if (report.state == DeviceHealth::State::healthy) return "";
  const auto seconds = static_cast<std::uint64_t>(std::ceil(report.probe_in_seconds));
  return cat("it failed ", report.failures, report.failures == 1 ? " time" : " times",
             " in a row, at last with \"", report.cause, "\"; ",
             report.state == DeviceHealth::State::probing ? "it is being probed"
             : seconds == 0                               ? "the next run probes it"
                            : cat("it is probed again in ", seconds, " s"));
}

}  // namespace heddle::engine
