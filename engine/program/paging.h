// Which weights of a loop stay on a device and which are streamed through a staging ring in its
// memory, when there is no room for all of them. Weights are read in a circle, so the choice is
// made once, for all steps: the staging ring is filled in the order of reading, at offsets that are
// the same in every step, and what stays is spread evenly between what is streamed, so that every
// copy has computing to hide behind. The next step's first weights come in while this step ends.
// Pure.
//
//   ops       0 1 2 3 4 5 6 7 8 9 | 0 1 2 ...        copies run in order, on a stream of their own
//   reads     A   B   S   C   D   | A                S stays; A, B, C, D are streamed
//   ring      [A....|B......]                        C comes in behind the last op that reads A or
//             [C......|D....]                        B where it lies, D behind the rest of them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/program/cost_model.h"

namespace heddle::engine {

inline constexpr std::uint64_t kSmallWeight = 16 << 10;  // bytes; such weights always stay
inline constexpr std::uint64_t kPageAlignment = 256;     // of what stays and of what is streamed

inline std::uint64_t padded_page_bytes(std::uint64_t bytes) {
  return (bytes + kPageAlignment - 1) / kPageAlignment * kPageAlignment;
}

struct PagedWeight {
  std::uint64_t bytes = 0;            // in the device's layout
  std::uint32_t first = 0, last = 0;  // ops that read it, inclusive
  double copy_seconds = -1;           // below 0: as the case's figures say
  // What a pinned copy of it would take of host memory; 0: it is never pinned.
  std::uint64_t pinned_bytes = 0;
  bool is_pinned = false;  // it is already, for another device

  bool operator==(const PagedWeight&) const = default;
};

// What one device has to do in a step, and before the first one.
struct PagingCase {
  std::vector<PagedWeight> once;   // read before the loop; ops are counted on their own
  std::vector<PagedWeight> loop;   // read in every step
  std::vector<double> op_seconds;  // of the loop's ops. REQUIRES: more than all `last` of the loop
  double idle_seconds = 0;         // that pass between two steps without an op here
  CopyRate from_host = kNothingToCopy;  // from host memory as it comes
  // From pinned host memory: what is streamed in every step, in that order, as far as so many
  // bytes of it may be pinned. What does not fit into what is left of them is skipped.
  CopyRate from_pinned{};
  std::uint64_t pinned_available = 0;
  std::uint64_t available = ~std::uint64_t(0);  // bytes for all of it

  bool operator==(const PagingCase&) const = default;
};

// A streamed weight, in the order of copying.
struct StreamedWeight {
  std::uint32_t weight = 0;  // of PagingCase::once or loop
  std::uint64_t offset = 0;  // in the staging ring
  // The op behind which its copy may start: the last one that reads what lies there. Of the loop:
  // below 0 counts from the end of the step before. Before the loop: -1 is the beginning.
  std::int64_t behind = 0;
};

struct PagingPlan {
  std::vector<StreamedWeight> once, loop;
  std::uint64_t staging_ring_bytes = 0;
  std::uint64_t resident_bytes = 0;  // of what stays
  std::uint64_t step_bytes = 0;      // copied in every step
  double step_seconds = 0;           // by simulate_paging()

  bool streams() const { return !once.empty() || !loop.empty(); }
};

// The fewest bytes with which it runs at all: small weights, and the smallest staging ring that all
// others can pass through.
struct MinWeightMemory {
  std::uint64_t small_bytes = 0, staging_ring_bytes = 0;
  std::uint64_t bytes() const { return small_bytes + staging_ring_bytes; }
};
MinWeightMemory min_weight_memory(const PagingCase& paging);

// Everything stays where there is room. Else, of several sizes of the staging ring with an even
// spread of what stays, the least step time, then the fewest bytes copied, then the fewest held.
// REQUIRES: room for min_weight_memory().
PagingPlan plan_paging(const PagingCase& paging);
// REQUIRES: `least` is the case's min_weight_memory(), which takes as long to find.
PagingPlan plan_paging(const PagingCase& paging, const MinWeightMemory& least);

// A device that takes no part and has room: what a device slot streams in every step may lie there
// instead of in host memory.
struct Donor {
  std::string name;
  std::uint64_t available = 0;   // bytes, for all device slots together
  std::vector<CopyRate> copies;  // from there, by device slot
};
// By streamed weight of the plan's loop, the donor that it comes from, or -1: where donors are
// faster than host memory, and when they have not room for all, from both in turn. `device_slot`:
// whose case it is. Takes the room from the donors, and writes into the case how long its weights
// then take.
std::vector<std::int32_t> borrow(PagingCase& paging, const PagingPlan& plan,
                                 std::vector<Donor>& donors, std::uint32_t device_slot);

// Of the plan's loop: what comes from pinned host memory.
std::vector<bool> pinned_streamed(const PagingCase& paging, const PagingPlan& plan);

// Seconds of a step in the long run: computing in order, copies in order, each waiting for the
// other where the plan says so.
double simulate_paging(const PagingCase& paging, const PagingPlan& plan);

}  // namespace heddle::engine
