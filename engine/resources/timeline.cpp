#include "engine/resources/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/base/write_file.h"

namespace heddle::engine {

namespace {

constexpr const char* kRowNames[] = {"compute", "copy in", "copy out"};

}  // namespace

Timeline::Timeline(const std::vector<RunDevice>& devices, const DeviceService* service,
                   Detail detail)
    : detail_(detail) {
  // Twice: what is recorded when all devices are idle marks the same moment on all of them.
  for (const RunDevice& device : devices) device.state->settle();
  std::vector<Base> recorded;
  for (std::uint32_t d = 0; d < devices.size(); ++d) {
    if (service != nullptr && service->state(d) != DeviceService::State::enabled) continue;
    const RunDevice& device = devices[d];
    try {
      recorded.push_back({device.state.get(), Event(device.state->device())});
      device.state->record(recorded.back().reached);
    } catch (const Error&) {
    }
  }
  for (Base& base : recorded) {
    try {
      base.reached.wait();
      bases_.push_back(std::move(base));
    } catch (const Error&) {
    }
  }
  began_ = Clock::now();
}

void Timeline::add_host(const std::string& process, std::string kind, std::string name,
                        double begin) {
  const double end = now();
  state_.lock()->host.push_back({process, "host", std::move(name), std::move(kind), begin, end, 0});
}

WorkWatch Timeline::watch(std::string kind, std::string name) {
  return [this, kind = std::move(kind), name = std::move(name)](
             DeviceState& device, StreamRow row, Event begin, Event end, std::uint64_t bytes) {
    add(device, row, kind, name, std::move(begin), std::move(end), bytes);
  };
}

ReadWatch Timeline::read_watch() {
  return [this](const FileRead& read) {
    const auto since_start = [&](Clock::time_point time) {
      return std::chrono::duration<double>(time - began_).count();
    };
    // Those that read at the same time have rows of their own.
    const std::string row = read.track == 0 ? "disk" : cat("disk ", read.track + 1);
    state_.lock()->host.push_back({"host", row, read.name, "read", since_start(read.begin),
                                   since_start(read.end), read.bytes});
  };
}

void Timeline::add(DeviceState& device, StreamRow row, std::string kind, std::string name,
                   Event begin, Event end, std::uint64_t bytes) {
  state_.lock()->pending.push_back(
      {&device, row, std::move(kind), std::move(name), std::move(begin), std::move(end), bytes});
}

std::optional<double> Timeline::seconds(const DeviceState& device, const Event& event) const {
  const auto base = std::ranges::find(bases_, &device, &Base::device);
  const heddle_device_timing* timing = device.device().extensions().timing;
  if (base == bases_.end() || timing == nullptr) return {};
  try {
    // Not Event::wait(): a failure that an event remembers has been counted when the run heard of
    // it.
    throw_status(device.device().desc().wait(event.raw()), device.device().name());
    double seconds = 0;
    throw_status(timing->elapsed(base->reached.raw(), event.raw(), &seconds),
                 device.device().name());
    return seconds;
  } catch (const Error&) {
    return {};  // whoever runs the graph has been told; what is known of the others is still worth
                // drawing
  }
}

std::vector<TimelineSpan> Timeline::finish() {
  State all;
  std::swap(*state_.lock(), all);
  std::vector<TimelineSpan> spans = std::move(all.host);
  for (const Pending& p : all.pending) {
    const auto begin = seconds(*p.device, p.begin), end = seconds(*p.device, p.end);
    if (begin && end)
      spans.push_back({p.device->device().name(), kRowNames[int(p.row)], p.name, p.kind, *begin,
                       *end, p.bytes});
  }
  std::ranges::stable_sort(spans, {}, [](const TimelineSpan& s) {
    return std::tuple(s.process, s.thread, s.begin, -s.end);
  });
  return spans;
}

std::string timeline_json(const std::vector<TimelineSpan>& spans) {
  Json events = Json::array();
  std::map<std::string, int> processes;
  std::map<std::pair<int, std::string>, int> threads;
  const auto name_row = [&](const char* what, int process, int thread, const std::string& name) {
    events.push(std::move(Json::object()
                              .set("ph", "M")
                              .set("name", what)
                              .set("pid", process)
                              .set("tid", thread)
                              .set("args", std::move(Json::object().set("name", name)))));
  };
  for (const TimelineSpan& span : spans) {
    const auto [process, is_new_process] =
        processes.emplace(span.process, int(processes.size()) + 1);
    if (is_new_process) name_row("process_name", process->second, 0, span.process);
    const auto [thread, is_new_thread] =
        threads.emplace(std::pair(process->second, span.thread), int(threads.size()) + 1);
    if (is_new_thread) name_row("thread_name", process->second, thread->second, span.thread);
    Json event = Json::object();
    event.set("ph", "X")
        .set("name", span.name)
        .set("cat", span.kind)
        .set("pid", process->second)
        .set("tid", thread->second);
    event.set("ts", span.begin * 1e6).set("dur", (span.end - span.begin) * 1e6);
    if (span.bytes > 0) event.set("args", std::move(Json::object().set("bytes", span.bytes)));
    events.push(std::move(event));
  }
  return write_json(std::move(
             Json::object().set("traceEvents", std::move(events)).set("displayTimeUnit", "ms"))) +
         "\n";
}

void write_timeline(const std::vector<TimelineSpan>& spans, const std::filesystem::path& path) {
  write_file(path, timeline_json(spans), Lasting::yes);
}

}  // namespace heddle::engine
