#include "stream.h"

#include <algorithm>

#include "heddle/device.hpp"

namespace heddle::cuda {

// ---- failures ----

Failures::Failures(Device& device) : device_(device) {
  device.use();
  void* memory = nullptr;
  device.check(cudaHostAlloc(&memory, sizeof(Report), cudaHostAllocMapped | cudaHostAllocPortable),
               "cudaHostAlloc");
  report_ = new (memory) Report{};
}

Failures::~Failures() {
  cudaSetDevice(device_.ordinal());
  cudaFreeHost(report_);
}

std::uint64_t Failures::next(std::string what) {
  const std::lock_guard lock(mutex_);
  // Texts of launches that are long done would pile up; a failure names the op anyway.
  constexpr std::size_t kKept = 256;
  if (launches_.size() >= kKept) launches_.erase(launches_.begin(), launches_.begin() + kKept / 2);
  launches_.emplace_back(++last_, std::move(what));
  return last_;
}

std::uint64_t Failures::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::uint64_t Failures::reported() const {
  const std::lock_guard lock(mutex_);
  return reported_;
}

std::string Failures::find(std::uint64_t after, std::uint64_t until) {
  const std::lock_guard lock(mutex_);
  const volatile Report& report = *report_;
  if (const std::uint64_t number = report.number; number != 0 && number > failed_) {
    failed_ = number;
    const auto launch =
        std::ranges::find(launches_, number, [](const auto& one) { return one.first; });
    failure_ = device::cat(launch == launches_.end() ? std::string("embedding/1") : launch->second,
                           ": id number ", static_cast<long long>(report.where), " is ",
                           static_cast<long long>(report.value), ", outside the table");
  }
  if (failed_ <= after || failed_ > until) return {};
  if (reported_ < failed_) {
    reported_ = failed_;
    report_->number = 0;  // the next failure is told as well
  }
  return failure_;
}

// ---- events ----

Event::Event(Device& device) : device(device) {
  device.use();
  device.check(cudaEventCreate(&raw), "cudaEventCreate");
  device.add_thing();
}

Event::~Event() {
  cudaSetDevice(device.ordinal());  // or the first card would get a context
  cudaEventDestroy(raw);
  device.remove_thing();
}

void wait(Event& event) {
  event.device.use();
  event.device.check(cudaEventSynchronize(event.raw), "cudaEventSynchronize");
  for (const Before& part : event.before)
    if (const std::string failure = part.failures->find(part.after, part.until); !failure.empty())
      device::fail(HEDDLE_INVALID_ARGUMENT, failure);
}

// ---- streams ----

Stream::Stream(Device& device) : device_(device) {
  device.use();
  device.check(cudaStreamCreateWithFlags(&raw_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  device.add_thing();
}

Stream::~Stream() {
  cudaSetDevice(device_.ordinal());
  cudaStreamSynchronize(raw_);
  device_.leave(raw_);
  cudaStreamDestroy(raw_);
  device_.remove_thing();
}

Failures& Stream::failures() {
  if (is_capturing())
    device::fail(HEDDLE_UNSUPPORTED, "what may fail on the device cannot be recorded");
  if (failures_ == nullptr) failures_ = std::make_shared<Failures>(device_);
  return *failures_;
}

// Relaxed: other threads allocate memory meanwhile, which has nothing to do with what is recorded.
void Stream::begin_capture() {
  device_.check(cudaStreamBeginCapture(raw_, cudaStreamCaptureModeRelaxed),
                "cudaStreamBeginCapture");
}

bool Stream::is_capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(raw_, &status) == cudaSuccess &&
         status != cudaStreamCaptureStatusNone;
}

cudaGraph_t Stream::end_capture() {
  cudaGraph_t graph = nullptr;
  device_.check(cudaStreamEndCapture(raw_, &graph), "cudaStreamEndCapture");
  return graph;
}

void Stream::copy_to_host(void* dst, const void* src, std::size_t bytes) {
  cudaError_t error = cudaSuccess;
  if (!is_unpinned(dst) || is_capturing() || !read_back_.enqueue(raw_, dst, src, bytes, error))
    error = cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, raw_);
  device_.check(error, "cudaMemcpyAsync");
}

void Stream::record(Event& event) {
  device_.check(cudaEventRecord(event.raw, raw_), "cudaEventRecord");
  event.recorded = true;
  event.before = others_;
  if (failures_ != nullptr && failures_->last() > 0)
    event.before.push_back({failures_, failures_->reported(), failures_->last()});
}

void Stream::wait_for(const Event& event) {
  device_.check(cudaStreamWaitEvent(raw_, event.raw, 0), "cudaStreamWaitEvent");
  std::erase_if(others_, [](const Before& one) { return one.failures->reported() >= one.until; });
  for (const Before& part : event.before) {
    if (part.failures == failures_) continue;
    const auto known = std::ranges::find(others_, part.failures, &Before::failures);
    if (known == others_.end())
      others_.push_back(part);
    else
      *known = {part.failures, std::max(known->after, part.after),
                std::max(known->until, part.until)};
  }
}

}  // namespace heddle::cuda
