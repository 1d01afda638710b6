// The streamed weights of a session: copied into the staging rings of its device slots by their
// copy streams, as the plan says, while computing goes on. Enqueues only. For one thread at a time.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/memory/device_state.h"
#include "engine/memory/watch.h"
#include "engine/memory/weight_source.h"
#include "engine/memory/weights.h"
#include "engine/resources/merged_pages.h"

namespace heddle::engine {

class SessionPages {
 public:
  // `host`: where patched weights are counted that are kept for the steps to come (merged_pages.h);
  // nullptr: without a limit.
  explicit SessionPages(std::shared_ptr<Ledger> host = nullptr) : merged_(std::move(host)) {}

  // `to`: the page's room in the staging ring, which belongs to the caller and stays as long as
  // this. `lent`: the weight on another device with a direct way; nullptr: it is made of the file's
  // bytes.
  void add(DeviceState& state, WeightSource source, std::byte* to,
           std::shared_ptr<const DeviceWeight> lent = nullptr);
  // Whether every page-in takes its bytes as the host has them of the file: not from another
  // device, nor what was put together for the first and is kept.
  bool is_from_file(std::uint32_t index) const {
    return pages_[index]->lent == nullptr && !is_made(pages_[index]->source);
  }

  // The copy may begin when what is enqueued so far on the page's device is done, and the page-ins
  // before it there are. The watch is notified.
  void page_in(std::uint32_t page, const WorkWatch& watch);
  // What is enqueued on the page's device from now on waits for the last page-in.
  void await(std::uint32_t page);

  // Leaves nothing behind that the devices do not wait for: what they are given from now on runs
  // when no page-in reads or writes any more. What page-ins read is kept until then.
  void leave();

  std::uint64_t merges() const { return merged_.merges(); }

 private:
  // A page may be on its way for the step that runs, for the one that is enqueued and for the next.
  static constexpr std::size_t kUnderWay = 4;
  struct Page {
    Page(DeviceState& on, WeightSource from, std::byte* at,
         std::shared_ptr<const DeviceWeight> lent);
    void enqueue(Stream& stream);  // the copy
    DeviceState& state;
    WeightSource source;
    const Hash128 key;  // among the weights of the session's model
    heddle_weight_layout layout;
    std::shared_ptr<const DeviceWeight> lent;
    std::byte* to;
    Event ready, arrived;
    std::array<HostWeight, kUnderWay> hosts;  // of the last page-ins
    std::size_t next_host = 0;
    bool is_under_way = false;  // begun and not awaited
  };
  MergedPages merged_;
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace heddle::engine
