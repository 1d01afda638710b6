// A device, opened: our side of heddle_device_desc. Turns statuses into Errors and gives streams,
// events and memory owners. Knows no policy: pools and budgets live above. Thread-safe as far as
// the ABI promises; a Stream belongs to one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/device/cancel_flag.h"
#include "engine/device/device_desc.h"
#include "engine/device/identity.h"
#include "engine/tensor/value.h"
#include "heddle/abi/device.h"

namespace heddle::engine {

// Throws the Error a status describes and frees it; nothing for NULL. `where` is put in front of
// the message; a name of a device that both say is said once.
void throw_status(heddle_status* status, const std::string& where);

class Device;

class Event {
 public:
  explicit Event(const Device& device);
  Event(Event&& other) noexcept
      : device_(other.device_), raw_(std::exchange(other.raw_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();
  void wait() const;  // blocks; throws the first failure of the stream so far
  bool done() const;
  heddle_event* raw() const { return raw_; }
  const Device& device() const { return *device_; }

 private:
  const Device* device_;
  heddle_event* raw_ = nullptr;
};

// Launches that a device keeps, to run them again with one call. Freed when the last replay is
// done: see that it is.
class CapturedGraph {
 public:
  CapturedGraph(const Device& device, heddle_captured_graph* raw) : device_(device), raw_(raw) {}
  CapturedGraph(const CapturedGraph&) = delete;
  ~CapturedGraph();
  heddle_captured_graph* raw() const { return raw_; }
  std::uint64_t bytes() const;  // of the device's memory that it takes, about

 private:
  const Device& device_;
  heddle_captured_graph* const raw_;
};

class Stream {
 public:
  explicit Stream(const Device& device);
  Stream(const Stream&) = delete;
  ~Stream();
  void record(const Event& event);
  // On the device where the event is of the same kind of device; else the host waits for it.
  void wait_for(const Event& event);
  // Keeps what launch() launches on this stream instead of running it. REQUIRES:
  // device().can_capture(). Throws what launch() throws, and unsupported for what cannot be kept.
  template <class F>
  std::unique_ptr<CapturedGraph> capture(F&& launch) {
    begin_capture();
    try {
      launch();
    } catch (...) {
      drop_capture();
      throw;
    }
    return end_capture();
  }
  void replay(const CapturedGraph& captured_graph);
  // What is enqueued from now on is wanted only as long as the flag is not set; nullptr: in any
  // case. Devices that know nothing of this do all of it.
  void set_cancel(CancelFlag* flag) {
    if (cancel_ != nullptr) cancel_->set(raw_, flag);
  }
  void synchronize();  // blocks until the work enqueued so far is done; throws what failed
  heddle_stream* raw() const { return raw_; }
  void* native() const;
  const Device& device() const { return device_; }

 private:
  void begin_capture();
  std::unique_ptr<CapturedGraph> end_capture();
  void drop_capture() noexcept;

  const Device& device_;
  const heddle_device_cancel* const cancel_;  // may be nullptr
  heddle_stream* raw_ = nullptr;
  Event idle_;
};

// While it lives, what is enqueued on the stream is wanted only as long as the flag is not set.
class CancelScope {
 public:
  CancelScope(Stream& stream, CancelFlag* flag) : stream_(stream), flag_(flag) {
    if (flag_ != nullptr) stream_.set_cancel(flag_);
  }
  ~CancelScope() {
    if (flag_ != nullptr) stream_.set_cancel(nullptr);
  }
  CancelScope(const CancelScope&) = delete;

 private:
  Stream& stream_;
  CancelFlag* const flag_;
};

// Copies from one memory to another, by kind of device; "host": host memory.
struct TransferCount {
  std::string from, to;
  std::uint64_t copies = 0, bytes = 0;
};

// How a device was opened: what another process needs to open the same one.
struct DeviceSource {
  std::vector<std::string> plugins;  // files that bring devices or kernels, as they were loaded
  std::uint32_t index = 0;           // of its kind
  Value options;                     // a record
};

class Device {
 public:
  // Takes an opened device. `owner` keeps the plugin's library loaded.
  Device(DeviceIdentity identity, const heddle_device_desc& desc, heddle_device* raw,
         std::shared_ptr<const void> owner, DeviceSource source = {});
  Device(const Device&) = delete;
  ~Device();

  const std::string& name() const { return identity_.names.name; }  // "cpu:0"
  const std::string& kind() const { return identity_.names.kind; }  // "cpu"
  const DeviceNames& names() const { return identity_.names; }
  const DeviceIdentity& identity() const { return identity_; }
  const DeviceSource& source() const { return source_; }
  const std::string& model() const { return model_; }
  const heddle_device_info& opening_info() const { return info_; }  // as it was when opened
  heddle_device_info info() const;  // asked now: free memory changes
  heddle_dtype compute() const { return info_.compute; }
  bool host_visible() const { return info_.host_visible != 0; }

  void* allocate(std::size_t bytes) const;  // throws out_of_memory
  void free(void* memory) const;

  // Host memory that copies to this device and back go fastest from. A device that has none is
  // served from plain memory as well.
  bool has_pinned() const { return extensions_.pinned != nullptr; }
  void* allocate_pinned(std::size_t bytes) const;  // REQUIRES: has_pinned(); throws out_of_memory
  void free_pinned(void* memory) const;

  // Enqueues; nullptr for a side means host memory.
  void copy(Stream& stream, const Device* to, void* dst, const Device* from, const void* src,
            std::size_t bytes) const;
  // What was copied by this device since it was opened, weights among it. Copies within host memory
  // are none.
  std::vector<TransferCount> transfers() const { return *transfers_.lock(); }
  // For what copies by other means than copy(); nullptr: host memory.
  void count_transfer(const Device* from, const Device* to, std::uint64_t bytes) const;

  // The way to a peer, or to host memory (nullptr). What a plugin does not tell follows from
  // can_copy and host_visible, its speed unknown; devices of two plugins reach each other through
  // the host, unless one of them is host memory itself.
  heddle_link link(const Device* peer) const;

  bool can_capture() const { return extensions_.capture != nullptr; }
  // Whether what two streams launch may stand in one captured graph, and so run at the same time.
  bool captures_other_streams() const {
    return can_capture() && extensions_.capture->keeps_other_streams != 0;
  }

  // Whether the device has made what it makes at its first work; nothing is known of one that does
  // not tell.
  std::optional<bool> has_context() const;
  // Gives that back; the next work makes it again. REQUIRES: no memory, pinned memory, stream,
  // event or captured graph of it is left. Throws what the plugin says.
  void release_context() const;

  const heddle_kernel* const* kernels() const { return desc_.kernels; }
  heddle_weight_layout weight_layout(std::int32_t use, const heddle_tensor_info& info) const;
  void make_weight(Stream& stream, std::int32_t use, const heddle_weight_layout& layout,
                   const std::vector<heddle_view>& parts, void* dst) const;

  // throw_status() for what this device gave when it was asked to work: its own faults are
  // remembered.
  void check(heddle_status* status, const std::string& where) const;
  // The same for a wait. The streams of a device are shared by all runs, but tell a failure once.
  void check_wait(heddle_status* status, const std::string& where) const;
  // What failed first since the last question and is the device's fault: input/output and internal
  // errors. A lack of memory, and what the caller asked wrongly, are not. In the plugin's words,
  // which may be those of another device that it waited for.
  std::optional<Error> take_fault() const;
  // How many waits have failed. When it grows, work that somebody enqueued here has been lost, and
  // perhaps nobody else will hear of it.
  std::uint64_t failed_waits() const { return failed_waits_.load(std::memory_order_acquire); }
  std::string last_failure() const;  // of a wait

  heddle_device* raw() const { return raw_; }
  const heddle_device_desc& desc() const { return desc_; }
  const DeviceExtensions& extensions() const { return extensions_; }

 private:
  const DeviceIdentity identity_;
  std::string model_;
  heddle_device_desc desc_;
  DeviceExtensions extensions_;
  heddle_device* raw_;
  std::shared_ptr<const void> owner_;
  heddle_device_info info_{};
  struct Faults {
    std::optional<Error> first;
    std::string last_of_waits;
  };
  mutable Guarded<Faults> faults_;
  mutable std::atomic<std::uint64_t> failed_waits_{0};
  mutable Guarded<std::vector<TransferCount>> transfers_;
  const DeviceSource source_;
};

}  // namespace heddle::engine
