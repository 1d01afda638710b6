// Bytes of a ledger that end by themselves: claimed, taken, or listed in its report. Each belongs
// to one thread at a time; the ledger outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle::engine {

class Ledger;

// What a piece of memory is for. values: tensors of nodes, kept ones among them. workspaces: what
// kernels work in. captured_graphs: launches that a device keeps and replays.
enum class MemoryKind : std::uint8_t {
  weights,
  staging_ring,
  activations,
  values,
  staging,
  workspaces,
  captured_graphs
};
inline constexpr std::size_t kMemoryKinds = 7;
std::string_view memory_kind_name(MemoryKind kind);

// For whom: `owner` is a number of Ledger::owner(), 0 nobody by name.
struct MemoryTag {
  MemoryKind kind = MemoryKind::values;
  std::uint32_t owner = 0;
};

// A claim on room that is not taken yet: nobody else gets it. Gives back what is left of it in the
// end.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { release(); }
  std::uint64_t left() const { return left_; }  // bytes
  void release() {  // here, because every node has two, and most of them are empty
    if (ledger_ != nullptr) give_back();
  }

 private:
  void give_back();
  friend class Ledger;
  Ledger* ledger_ = nullptr;
  std::uint64_t left_ = 0;
};

// Bytes that a ledger's report lists with what they are for, and whose they are. No limit depends
// on it.
class TaggedBytes {
 public:
  TaggedBytes() = default;
  TaggedBytes(Ledger& ledger, MemoryTag tag, std::uint64_t bytes);
  TaggedBytes(TaggedBytes&& other) noexcept;
  TaggedBytes& operator=(TaggedBytes&& other) noexcept;
  ~TaggedBytes() { end(); }
  void end();
  void end(std::uint64_t bytes);  // of some of them. REQUIRES: there are so many
  MemoryTag tag() const { return holder_; }
  // Takes over those of another, if it has any. REQUIRES: of the same ledger, with the same tag.
  void add(TaggedBytes&& other);

 private:
  Ledger* ledger_ = nullptr;  // nullptr: there is none
  MemoryTag holder_;
  std::uint64_t bytes_ = 0;
};

// Bytes that were taken. They go back in the end.
class TakenBytes {
 public:
  TakenBytes() = default;
  TakenBytes(TakenBytes&& other) noexcept;
  TakenBytes& operator=(TakenBytes&& other) noexcept;
  ~TakenBytes() { give_back(); }
  std::uint64_t bytes() const { return bytes_; }
  // From now on the report lists them with that.
  void tag(MemoryTag tag);
  void give_back();
  // Some of them. REQUIRES: there are so many.
  void give_back(std::uint64_t bytes);
  // Gives back what the driver has refused after Ledger::after_refusal() has asked it: that never
  // was among its figures.
  void give_back_refused();
  // Takes over those of another. REQUIRES: of the same ledger, with the same tag.
  void add(TakenBytes&& other);

 private:
  friend class Ledger;
  Ledger* ledger_ = nullptr;
  std::uint64_t bytes_ = 0;
  TaggedBytes tagged_;
};

}  // namespace heddle::engine
