// Stream and Event: CUDA's, with one thing more: kernels that find bad input on the device (an id
// outside its table) say so in a Report, and whoever waits for an event behind them is told. Every
// launch that may fail has a number; an event knows the numbers that lie before it, also those of
// streams that its stream has waited for. Work behind a failure is not skipped: its results must
// not be used, and wait() says so. One thread at a time for a stream; events any thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "device.h"
#include "read_back.h"

namespace heddle::cuda {

// Written by kernels, in pinned memory that the device reads and writes: the first failure that has
// not been reported.
struct Report {
  unsigned long long number;  // of the launch; 0: none
  long long where, value;     // the id's place and what it is
};

// What is known of one stream's failures. Shared by the stream and the events behind it.
class Failures {
 public:
  explicit Failures(Device& device);
  ~Failures();
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;

  // A number for a launch that may fail, and what to say then: "WHAT: id number 3 is 77, outside
  // ...".
  std::uint64_t next(std::string what);
  Report* report() const { return report_; }
  std::uint64_t last() const;
  std::uint64_t reported() const;  // failures up to here were told

  // The failure with a number in (after, until], as text; empty: none.
  std::string find(std::uint64_t after, std::uint64_t until);

 private:
  Device& device_;
  Report* report_ = nullptr;
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0, reported_ = 0, failed_ = 0;           // mutex_
  std::string failure_;                                          // of launch failed_; mutex_
  std::vector<std::pair<std::uint64_t, std::string>> launches_;  // not yet known to be done; mutex_
};

// Launches of one stream that lie before a point.
struct Before {
  std::shared_ptr<Failures> failures;
  std::uint64_t after, until;
};

struct Event {
  explicit Event(Device& device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Device& device;
  cudaEvent_t raw = nullptr;
  bool recorded = false;
  std::vector<Before> before;
};

class Stream {
 public:
  explicit Stream(Device& device);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return device_; }
  cudaStream_t raw() const { return raw_; }
  // Made when first asked for. Not for what is recorded: a failure is told by the number of its
  // launch, which would be the same in every replay.
  Failures& failures();

  void begin_capture();
  // Throws unsupported for what cannot be kept; the capture is ended all the same.
  cudaGraph_t end_capture();
  // By itself, or since it waits for an event of a stream that is.
  bool is_capturing() const;

  void record(Event& event);
  void wait_for(const Event& event);

  // Enqueues a copy of this device's memory to the host's, pinned or not.
  void copy_to_host(void* dst, const void* src, std::size_t bytes);

 private:
  Device& device_;
  cudaStream_t raw_ = nullptr;
  std::shared_ptr<Failures> failures_;
  std::vector<Before> others_;
  ReadBack read_back_;
};

// Blocks until the event is reached. Throws the first failure before it.
void wait(Event& event);

inline Stream& as_stream(heddle_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
inline Event& as_event(heddle_event* event) { return *reinterpret_cast<Event*>(event); }

}  // namespace heddle::cuda
