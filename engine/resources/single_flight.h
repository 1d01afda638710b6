// Nodes that runs are computing right now, by the keys of their outputs: a run that comes to one of
// them waits for what comes of it instead of computing it once more. Nothing is kept here; what was
// computed before stands in the output cache.
//
// No deadlock: a flight begins when its node has all that it reads, and is given up before the node
// waits for anything that another run may hold back (lazy inputs, new nodes, the end of a pause, a
// turn to write), so a run waits only for a node that is running. A node that is running waits for
// no flight, because the runs that wait do so before they begin theirs, and keep no thread and no
// queue meanwhile; so there is no circle.
#pragma once

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/guarded.h"
#include "engine/base/hash.h"
#include "engine/graph/graph.h"
#include "engine/resources/run_work.h"
#include "engine/tensor/value.h"

namespace heddle::engine {

// Thread-safe. Locks nothing while a node runs.
class SingleFlight {
 public:
  // What came of a node that a run has waited for. Neither of the two: nobody computes it any more,
  // so that the run looks again.
  struct News {
    NodeIndex node = 0;                                 // of the run that waits
    std::shared_ptr<const std::vector<Value>> outputs;  // as the output cache holds them
    std::shared_ptr<const Error> failure;
  };
  // A run, as the table knows it.
  class Run {
   public:
    // Takes the one entry, and does no more: called on the thread that computed, with a lock of the
    // table held. So nobody calls the table with a lock that this takes.
    virtual void hear(std::list<News>& one) noexcept = 0;

   protected:
    ~Run() = default;
  };

 private:
  struct State;
  struct KeyHash : std::hash<Hash128> {
    using is_avalanching = void;  // the keys are hashes already
  };
  using Table = boost::unordered_flat_map<Hash128, State*, KeyHash>;

 public:
  // Held by the run that computes. What goes without a word has come to nothing: whoever waits
  // looks again. An empty one, and one that was taken away, tells nobody anything.
  class Flight {
   public:
    Flight() = default;
    Flight(Flight&&) noexcept = default;
    Flight& operator=(Flight&& other) noexcept {
      drop();
      state_ = std::move(other.state_);
      return *this;
    }
    ~Flight() { drop(); }
    explicit operator bool() const { return state_ != nullptr; }

    // All who wait get the outputs, unless the work that makes them has been given up. To be put
    // into the output cache before.
    void finish(std::span<const Value> outputs, const WorkMark& by) noexcept;
    // All who wait fail like that, or, where it is the fault of a device, those who would have used
    // the same one; the others look again.
    void fail(const Error& failure, bool is_of_device) noexcept;
    void drop() noexcept {
      if (state_ != nullptr) [[unlikely]]
        end();
    }

   private:
    friend class SingleFlight;
    void end() noexcept;
    explicit Flight(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  // A run that is under way, from its construction on.
  class Member {
   public:
    explicit Member(SingleFlight& flights)
        : flights_(flights), number_(flights.last_run_.fetch_add(1) + 1) {
      flights_.runs_.fetch_add(1);
    }
    ~Member() { flights_.runs_.fetch_sub(1); }
    Member(const Member&) = delete;

    // Unlike those of all other runs, and not 0.
    std::uint64_t number() const { return number_; }
    // Whether another run is under way. One that has begun this very moment may not count yet.
    bool has_others() const { return flights_.runs_.load(std::memory_order_relaxed) > 1; }

   private:
    SingleFlight& flights_;
    const std::uint64_t number_;
  };

  struct Begun {
    Flight flight;       // empty, and does not wait: another node of this run is that flight, or
    bool waits = false;  // there is no memory for it; then it is computed without
  };
  // The node is about to be computed at this place (a device, or the host). The run, which has to
  // withdraw() before it goes, hears what comes of it, if it waits.
  Begun begin(const Hash128& key, Run& run, NodeIndex node, std::uint32_t place);
  // What the run computes goes on, but nobody waits for it any longer.
  void drop(const Run& run) noexcept;
  // The run waits for nothing any more: it hears nothing from when this returns.
  void withdraw(const Run& run) noexcept;
  // How many nodes of all runs wait.
  std::size_t waiting() const;

 private:
  struct Waiting {
    Run* run;
    std::uint32_t place;
    std::list<News> news;  // one, made when there was memory for it
  };
  struct State {
    SingleFlight& flights;
    const Hash128 key;
    const Run* run;
    const std::uint32_t place;
    bool is_open = true;  // the table's lock, as the next
    std::vector<Waiting> waiting = {};
  };
  Guarded<Table>& table_of(const Hash128& key) { return tables_[key.lo % tables_.size()]; }
  template <class Tell>
  static void close(Table& table, State& state, Tell&& tell) noexcept;

  std::array<Guarded<Table>, 16> tables_;  // each with a part of the keys
  std::atomic<std::uint64_t> last_run_{0};
  std::atomic<std::uint32_t> runs_{0};
};

}  // namespace heddle::engine
