// The weights of models in the layout that a device computes with. Made from the file's bytes,
// always by the same function of the device; shared by all sessions that use the same weight. What
// nobody uses stays until the room is wanted. Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/guarded.h"
#include "engine/memory/device_state.h"
#include "engine/memory/load_turns.h"
#include "engine/memory/watch.h"
#include "engine/memory/weight_source.h"

namespace heddle::engine {

struct DeviceWeight {
  heddle_weight_layout layout{};
  std::shared_ptr<DeviceMemory> memory;
  bool is_lost = false;  // the store's: it could not be made, whoever holds it
  MemoryTag tag{MemoryKind::weights, 0};

  // Counted: as long as there is one, the weight stays where it is. To unpin what nobody has pinned
  // is an internal error.
  void pin() const;
  void unpin() const;
  bool is_pinned() const { return pins() > 0; }
  std::uint32_t pins() const { return pins_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<std::uint32_t> pins_{0};
};

// Who wants a weight.
struct WeightUser {
  Hash128 model{};          // its identity; zero: that of the checkpoint
  std::string_view name{};  // for people: "flux"
  std::uint32_t order = 0;  // of the weight among the model's, as its blocks come
};

// How far the next use of a model is, by identity: what runs under way have still to do. A model
// that is not there has none.
using NextUses = std::map<Hash128, std::uint64_t>;

// What of a model a device has.
struct ModelWeights {
  std::string name;
  Hash128 model{};
  std::uint64_t bytes = 0, pinned = 0;  // pinned: in use now, or kept
  std::uint64_t used = 0;               // in use now
  std::uint64_t kept = 0;               // by WeightStore::keep()
  bool is_kept() const { return kept > 0; }
};

class WeightStore {
 public:
  // Weights of so few bytes go last: that they lack costs more than they take.
  static constexpr std::uint64_t kSmallBytes = 16 << 10;

  // `limit_bytes`: weights that no session uses are dropped when all together exceed it. The
  // device's ledger limits them anyway.
  explicit WeightStore(DeviceState& state, std::uint64_t limit_bytes = ~std::uint64_t{0})
      : state_(state), limit_bytes_(limit_bytes) {}

  heddle_weight_layout layout(const WeightSource& source) const {
    return device_layout(state_.device(), source);
  }

  // For sessions that are about to load.
  LoadTurns& load_turns() { return load_turns_; }
  bool has(const WeightSource& source, Hash128 checkpoint) const;
  // The weight, made now if it is not here. The work is enqueued, by this caller or by another one
  // just now: nothing computes with it before finish() has been told of it. `checkpoint` is the
  // identity of the checkpoint that the parts belong to, and stays open as long as the caller holds
  // it. The watch is notified when it is made. What is given is pinned as long as any copy of it
  // lives. `from`: a claim on the device's ledger, or nullptr.
  std::shared_ptr<const DeviceWeight> get(const WeightSource& source, Hash128 checkpoint,
                                          const WorkWatch& watch = {}, const WeightUser& user = {},
                                          Reservation* from = nullptr);
  // Waits for everything enqueued so far. Throws what failed, and when one of `wanted`, which get()
  // gave, could not be made: also when somebody else was told the reason, because a device's
  // streams are shared and tell a failure once; and io when a file has lost pages that they were
  // made of. What could not be made is no longer here.
  void finish(std::span<const std::shared_ptr<const DeviceWeight>> wanted = {});

  std::uint64_t bytes() const;

  // Evicts weights that nobody has pinned, no more than it takes to come by `bytes`: first of
  // models without a next use, those first that were used longest ago; then, with Reach::all, of
  // those whose next use is farthest. Of a model from the end of its blocks. Small weights go last.
  // Gives the bytes that went.
  enum class Reach { without_use, all };
  std::uint64_t evict(std::uint64_t bytes, const NextUses& next = {}, Reach reach = Reach::all);
  // Evicts all of a model, by the name that users gave, that nobody has pinned; "": of every
  // one.
  std::uint64_t unload(std::string_view name = {});
  // Evicts models that have not been used for `seconds`. `now` never goes back from one call to
  // the next; use is seen when it is called.
  std::uint64_t expire(double now, double seconds);
  std::vector<ModelWeights> models() const;

  // Bytes of what a model has here by the weight's key (WeightSource::key()), as the pool counts
  // them; of what others have used since, where it was among the last of few.
  std::map<Hash128, std::uint64_t> weights_of(const Hash128& model) const;
  // Pins these weights of a model, those that are here and those that come, until release() says
  // that they need not stay; others that it had pinned need not any more. What two models share
  // stays for both.
  void keep(const Hash128& model, const std::map<Hash128, std::uint64_t>& weights);
  void release(const Hash128& model);
  // What keep() was told last, or nothing behind a release(); of what is not here without bytes.
  std::map<Hash128, std::uint64_t> kept_of(const Hash128& model) const;
  std::vector<Hash128> release_kept();  // all models that are kept; gives them

  void drop_unused() { unload(); }
  // Forgets all weights: the device has failed, and may hold something else by now. Sessions keep
  // what they have.
  void drop_all();

 private:
  struct Entry {
    std::shared_ptr<DeviceWeight> weight;
    std::uint64_t last_use = 0;
    Hash128 model{};
    std::uint32_t order = 0;
    std::vector<Hash128> users{};  // models that have used it, kMostUsers of them; `model` is last
    std::set<Hash128> kept_for{};  // models; there is a pin where there are any
  };
  struct Model {
    std::string name;
    std::uint64_t last_use = 0;  // of any of its weights
    std::uint64_t seen_use = 0;  // that expire() has seen, and when
    double seen_at = 0;
    std::set<Hash128> kept{};  // weights that stay, by key
  };
  using Entries = std::map<Hash128, Entry>;
  struct State {
    Entries entries;
    std::map<Hash128, Model> models;  // that have an entry, or had one
    std::set<Hash128> being_made;     // by a thread that is on its way to the memory for it
    std::uint64_t bytes = 0, clock = 0;
  };
  using Unproven = std::pair<Hash128, std::weak_ptr<DeviceWeight>>;
  // What is enqueued. Taken before `entries_`, and held while the device works, so that what is
  // here can be asked for meanwhile.
  struct Making {
    std::vector<std::shared_ptr<const void>> keep;         // what else it reads, until then
    std::vector<std::shared_ptr<const TensorFile>> files;  // of that: to be asked for lost pages
    std::uint64_t made_bytes = 0;                          // of it, made for one weight alone
    // Enqueued, and not waited for with success yet; and how many waits had failed on the device
    // when the first of them was.
    std::vector<Unproven> unproven;
    std::uint64_t failures_before = 0;
  };
  using Gone = std::vector<std::shared_ptr<DeviceWeight>>;  // freed after the lock
  class BeingMade;
  static constexpr std::size_t kMostUsers = 4;
  static std::shared_ptr<const DeviceWeight> touch(State& state, Entries::value_type& entry,
                                                   const Hash128& model, const WeightUser& user);
  void keep_to_limit(std::uint64_t wanted);
  // The making of one of its row_groups(), of this layout, so many bytes behind its begin.
  void enqueue(const WeightSource& group, const heddle_weight_layout& layout,
               const DeviceWeight& weight, std::uint64_t offset, const Unproven& unproven,
               const WorkWatch& watch);
  Error failure_of_making() const;
  Gone drop_if(State& state, const std::function<bool(const Entry&)>& goes);
  void prove(Making& making);
  static void keep_for(Entry& entry, const Hash128& model);
  static void release_from(Entry& entry, const Hash128& model);
  void lose_unproven(Making& making);

  LoadTurns load_turns_;
  DeviceState& state_;
  const std::uint64_t limit_bytes_;
  Guarded<Making> making_;
  Guarded<State> entries_;
  std::condition_variable made_;
};

}  // namespace heddle::engine
