// Memory of one fake device. The addresses that it hands out are real ones with a bit turned, so
// that whoever touches them without the device's help faults; new and freed bytes are NaN in every
// type of floating-point numbers. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace heddle::fake {

// f32, f16, bf16, f64 and f8_e4m3 NaNs, and an index far outside of every table.
inline constexpr std::uint32_t kPoison = 0x7fff7fff;

// One allocation. Enqueued work holds it, so that work that comes too late reads NaNs and not what
// is none of its business.
class Allocation {
 public:
  explicit Allocation(std::size_t bytes);  // throws std::bad_alloc
  // In memory that other processes map, too: of this one, or of another that has shared it. Throw
  // device::Error. Those of another are neither poisoned nor counted here.
  struct Shared {};
  Allocation(std::size_t bytes, Shared);
  Allocation(int descriptor, std::size_t bytes, bool is_writable);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  void poison();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return descriptor_; }  // below 0: it is not shared
  bool is_of_another() const { return is_of_another_; }

 private:
  void map(bool is_writable);

  std::size_t bytes_;
  std::byte* data_;
  int descriptor_ = -1;
  bool is_of_another_ = false;
};

// Where bytes of a device really are.
struct Span {
  std::byte* data = nullptr;
  std::shared_ptr<const Allocation> holder{};
};

struct MemoryUse {
  std::uint64_t used = 0, peak = 0;  // bytes
};

class Memory {
 public:
  // name begins no message here, it is what errors call the device.
  Memory(std::string name, std::uint64_t capacity) : name_(std::move(name)), capacity_(capacity) {}

  // A device address, aligned to kAlignment. Throws device::Error(HEDDLE_OUT_OF_MEMORY) with
  // wanted, used and capacity. foreign: bytes that others have.
  static constexpr std::size_t kAlignment = 256;
  void* allocate(std::size_t bytes, std::uint64_t foreign, bool is_shared = false);
  // What another process has shared, which counts it.
  void* adopt(std::shared_ptr<Allocation> shared);
  // The one that begins there; nullptr: none does.
  std::shared_ptr<const Allocation> find(const void* address) const;
  // False when work that is enqueued still refers to it. Throws when the address is none of
  // allocate()'s.
  bool free(void* address);
  void poison_all();

  // The bytes [begin, end) behind an address. Throws device::Error(HEDDLE_INVALID_ARGUMENT) that
  // begins with `what` unless they lie in one allocation.
  Span at(const void* address, std::int64_t begin, std::int64_t end, const std::string& what) const;

  // Whether an address is in an allocation of this device.
  bool has(const void* address) const;

  // Whether it looks like a device's address, of any fake device.
  static bool is_device_address(const void* address);

  std::uint64_t capacity() const { return capacity_; }
  MemoryUse use() const;

 private:
  const std::string name_;
  const std::uint64_t capacity_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::shared_ptr<Allocation>> allocations_;  // mutex_; by real address
  MemoryUse use_;                                                      // mutex_
};

}  // namespace heddle::fake
