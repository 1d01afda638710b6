// One run at work: its threads take nodes from the schedule and execute them. Behind execute() of
// executor.h; the parts stand in execution.cpp (threads), execution_node.cpp (what one node takes),
// execution_deferred.cpp, execution_lists.cpp, execution_expand.cpp (nodes that ask for others),
// execution_cache.cpp, execution_shared.cpp (nodes that other runs compute at the same time),
// execution_parts.cpp (nodes that read what is still being made), execution_retry.cpp (what a run
// that fails leaves to its next try) and execution_saved.cpp (runs that go on later).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <variant>

#include "engine/base/error.h"
#include "engine/base/running_node.h"
#include "engine/resources/single_flight.h"
#include "engine/run/executor.h"
#include "engine/run/expander.h"
#include "engine/run/instance.h"
#include "engine/run/node_call.h"
#include "engine/run/ready_nodes.h"
#include "engine/run/released_values.h"
#include "engine/run/transfers.h"
#include "engine/run/uncached_nodes.h"
#include "engine/session/read_ahead.h"

namespace heddle::engine {

// What is told of a node that ends the process.
inline RunningNode told_of(const Node& node) {
  return {node.id.c_str(), node.type->desc().type, node.type->plugin().c_str()};
}

// Over 15 members: one lock guards the state of a run, from its schedule to its deferred calls,
// because finishing a node changes all of it in one step. What has rules of its own stands apart:
// the schedule, transfers, keys, forecast, and what devices are used for.
class Execution final : private SingleFlight::Run,
                        private NodeCall::States,
                        private NodeCall::Parts {
 public:
  Execution(const RunRequest& request, Environment& environment, Observer& observer,
            RunControl& control);
  ~Execution() { control_.wake_by({}); }
  Execution(const Execution&) = delete;
  RunResult run();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  // An output that may be read while its maker goes on.
  struct Begun {
    Value value;
    std::shared_ptr<Arrival> own;                    // of the maker itself; nullptr: of another
    std::vector<std::shared_ptr<Arrival>> arrivals;  // all that the value holds
  };
  // A node that has begun.
  struct Running {
    NodeIndex node = Schedule::kNone;
    Instance instance;
    std::unique_ptr<NodeCall> call;
    Clock::time_point begin;
    // With a timeline: when it began, by the host's clock and on its device.
    double traced_at = 0;
    std::unique_ptr<Event> reached{};
    // Of a node that is called for each element of a list: the calls, how many of them were
    // deferred and are not complete, and why one has failed.
    std::vector<std::unique_ptr<NodeCall>> elements{};
    std::size_t open = 0;
    std::exception_ptr failure{};
    std::vector<std::string> blocked{};  // messages of the blockers that its calls have met
    bool is_mapped = false;              // called for each element, as Node or a value says
    bool has_flight = false;             // in flights_: other runs may wait for it
    bool is_suspended = false;           // one of its calls was stopped, and goes on later
    std::map<Source, Value> early{};     // what it reads of nodes that were not done
    double seconds = 0;                  // with `early`: of the call, without waits for rows

    bool is_deferred() const { return open > 0 || call->deferred(); }
    bool has(const NodeCall* one) const;
    // Takes what a deferred call says in the end. True: none of the node's calls is left.
    bool complete(heddle_status* status);
    // Takes it; the first failure counts. NULL: none.
    void keep_failure(heddle_status* status);
  };
  // A node that has asked for others and waits for what they make: for each of its calls the
  // outputs, as values or as links to where they come from.
  struct Expanding {
    using Output = std::variant<Value, Source>;
    std::vector<std::vector<Output>> calls;
    std::unique_ptr<ForUser> for_user;  // nullptr: nothing
    std::vector<std::string> blocked;
    double seconds = 0;  // of the calls
  };
  // What a node has made in the end.
  struct Made {
    NodeIndex node;
    std::span<Value> outputs;
    std::unique_ptr<ForUser> for_user;  // nullptr: nothing
    std::vector<std::string> blocked;
    double seconds;
    bool has_inputs;  // that it needs no more
    bool has_flight = false;
    bool is_uncached = false;  // its outputs are this run's alone

    bool has_ui() const { return for_user != nullptr && for_user->ui.is_object(); }
  };
  // What an input of a node gets, where lists come in.
  struct Given {
    std::uint32_t input = 0;
    const std::string* extra = nullptr;  // the name of an undeclared one
    Value value;
    bool is_link = false, is_list = false;
  };
  struct Written {
    std::uint32_t rank;
    std::string path;
  };
  // A thread of the run.
  struct Worker {
    explicit Worker(OutputCache& cache) : adding(cache) {}
    std::unique_ptr<NodeCall> call;  // used again for the next node, unless one was deferred
    std::vector<Value> dropped;      // freed without the lock: memory may take time to go
    // Of the node that is finishing: what of its outputs was sent, and which copies it has read.
    std::vector<Transfers::Sent> sent;
    std::vector<Transfers::Reading> copies;
    // One place among the deferred nodes, made before a node begins: what it has started can no
    // longer be taken back when there is no memory for it.
    std::list<Running> place;
    OutputCache::Adding adding;
    // When it finished its last node, if it has done nothing but begin the next one since: to read
    // the clock costs a fifth of an empty node.
    Clock::time_point now;
  };

  // As long as the run has one thread, nothing is locked: the members marked [shared] are guarded
  // by mutex_ from the moment at which a second one is started.
  void enter(Lock& lock) {
    if (is_shared_) lock.lock();
  }
  void leave(Lock& lock) {
    if (lock.owns_lock()) lock.unlock();
  }

  void find_keys();
  void forget_kept(std::vector<NodeIndex> of);
  void bring_disk_cached();
  void wait_for_devices();
  // execution_retry.cpp
  void bring_finished();
  std::vector<bool> untrusted_nodes(const std::vector<bool>& lost_devices) const;
  bool lies_on(const Value& value, const std::vector<bool>& devices) const;
  [[gnu::cold]] void leave_finished(const std::vector<bool>& lost_devices);
  void note_crowded();
  void leave_to_next_try(const std::vector<bool>& lost_devices);

  void check_models();
  void check_files();
  void forget_changed();
  std::vector<NodeIndex> lost_nodes() const;
  void forget_outputs(const std::vector<NodeIndex>& of);
  std::uint64_t fingerprint(const Node& node, const Assignment& place, UsedFiles& files);
  void hold_uncacheable();
  void mark_made_of(std::vector<bool>& is_marked) const;
  std::vector<NodeIndex> all_nodes() const;
  bool take_from_cache(NodeIndex n, const OutputCache::Reading& cache);
  void show_cached_on_the_way();

  void work() noexcept;
  bool is_over() const;
  bool has_to_stop() {
    if (failure_ == nullptr && control_.cancelled()) [[unlikely]]
      note_cancelled();
    return failure_ != nullptr;
  }
  [[gnu::cold]] void note_cancelled();
  void fail(std::exception_ptr failure);
  bool has_to_listen() const {
    return sleeping_ == 0 && (!waiting_.empty() || (has_begun_ && !deferred_.empty()));
  }
  void call_for_help(Lock& lock);
  void wait_for_change(Lock& lock);
  void drop(Worker& worker, Lock& lock);
  bool report_cached(Lock& lock);
  void join_helpers();

  // Cold is what most nodes do not need: so what they need fits the instruction cache.
  void run_node(NodeIndex n, bool has_flight, Worker& worker, Lock& lock);
  template <class Work>
  void guard_node(NodeIndex n, bool has_flight, Lock& lock, Work&& work);
  void execute_node(Running& running, Worker& worker, Lock& lock);
  [[gnu::cold]] void trace_begin(Running& running);
  [[gnu::cold]] void trace_end(Running& running);
  bool give_inputs(Running& running);
  std::vector<Given> given_inputs(NodeIndex n, const std::vector<std::uint32_t>& lazy);
  [[gnu::cold]] void give_lists(Running& running, const std::vector<std::uint32_t>& lazy);
  [[gnu::cold]] void execute_elements(Running& running);
  [[gnu::cold]] void collect_elements(Running& running);
  [[gnu::cold]] Value hidden(const Node& node, std::string_view type) const;
  [[gnu::cold]] Value link_value(const Source& source) const;
  bool has_lazy_inputs(Running& running, Lock& lock);
  bool want(NodeIndex n, const std::vector<std::uint32_t>& inputs);
  void finish(Running& running, Worker& worker, Lock& lock);
  void complete(Made&& made, Worker& worker, Lock& lock);
  void finish_inputs(NodeIndex n, Worker& worker);

  // execution_shared.cpp
  [[gnu::cold]] void run_shared(NodeIndex n, Worker& worker, Lock& lock);
  std::optional<std::vector<Value>> made_by_others(NodeIndex n) const;
  void adopt(NodeIndex n, std::vector<Value> made, Worker& worker, Lock& lock);
  void keep_flight(NodeIndex n, SingleFlight::Flight flight);
  SingleFlight::Flight take_flight(NodeIndex n) noexcept;
  [[gnu::cold]] void finish_flight(const Made& made, std::span<const Value> values);
  [[gnu::cold]] void fail_flight(NodeIndex n) noexcept;
  [[gnu::cold]] void drop_flight(NodeIndex n) noexcept;
  void hear(std::list<SingleFlight::News>& one) noexcept override;
  bool finish_waiting(Worker& worker, Lock& lock);

  // execution_parts.cpp
  bool begin_output(const Source& output, std::shared_ptr<Arrival> arrival) override;
  void take_back_output(const Source& output) override;
  bool reads_parts_of(NodeIndex producer, NodeIndex reader) const;
  bool let_read(NodeIndex n, Lock& lock);
  [[gnu::cold]] bool take_early(Running& running, Lock& lock);
  static Value early_input(const Running& running, const Source& source, std::uint32_t flags);
  [[gnu::cold]] bool comes_again(Running& running, Code code, Lock& lock);
  [[gnu::cold]] bool give_early(Running& running, Lock& lock);
  void wait_again(NodeIndex n);
  void wait_for_whole(NodeIndex n);
  template <class Visit>
  void for_each_unfinished_link(NodeIndex n, Visit&& visit) const;
  bool has_all(NodeIndex n) const;
  bool reads_unfinished(NodeIndex n, Lock& lock);
  void finish_or_hold(Running& running, Worker& worker, Lock& lock);
  [[gnu::cold]] bool finish_held(Worker& worker, Lock& lock);
  [[gnu::cold]] void end_outputs(NodeIndex n, Worker& worker);
  [[gnu::cold]] void check_begun(NodeIndex n, std::span<const Value> outputs, Lock& lock);
  [[gnu::cold]] void take_back(NodeIndex n);
  void stop_arrivals();

  // execution_saved.cpp
  Value state_of(NodeIndex n, std::size_t element) override;
  bool wants_state(NodeIndex n) override;
  bool save(NodeIndex n, std::size_t element, Value state) override;
  bool has_to_leave() {
    if (control_.releases() && request_.saved != nullptr) leaves_ = true;
    return leaves_;
  }
  [[gnu::cold]] void suspend(Running& running, Lock& lock);
  [[gnu::cold]] void note_ended(NodeIndex n, Lock& lock);
  bool is_repeatable(NodeIndex n) const;
  std::vector<bool> worth_keeping() const;
  Value kept_output(const Source& source, const Value& value) const;
  Value host_copy(const Value& value) const;
  bool take_element(NodeIndex n, std::size_t element, NodeCall& call);
  [[gnu::cold]] void keep_elements(const Running& running, std::size_t before);
  void save_outputs();
  void write_checkpoint();

  // execution_expand.cpp
  static bool asks_for_nodes(const Running& running);
  [[gnu::cold]] void expand(Running& running, double seconds, Worker& worker, Lock& lock);
  using Asked = std::vector<std::unique_ptr<NewNodes>>;  // by call
  Expanding take_outputs(Running& running, Asked& asked);
  Expander::Batch plan_nodes(NodeIndex n, std::span<const NewNodes* const> calls,
                             std::vector<Source>& held, Lock& lock);
  void add_nodes(NodeIndex n, Expander::Batch& batch, std::span<const NewNodes* const> calls,
                 Expanding expanding);
  [[gnu::cold]] void finish_expanded(NodeIndex n, Worker& worker, Lock& lock);
  void collect_expanded(NodeIndex n, Expanding expanding, Worker& worker, Lock& lock);
  Value collect_output(NodeIndex n, std::uint32_t o, const Expanding& expanding);
  Expander& expander_here();
  Value look_up(std::string_view id);
  void check_cycles();
  void cache(const Made& made, std::span<const Value> values, Worker& worker);
  [[gnu::cold]] void show(const Made& made, Worker& worker, Lock& lock);
  [[gnu::cold]] void keep_for_disk(const Made& made, Lock& lock);
  void on_complete(std::list<Completion>& one);
  bool finish_deferred(Worker& worker, Lock& lock);
  void abandon_deferred();

  WorkMark work_so_far() const {
    const std::uint64_t mark = control_.work()->mark();
    return mark == 0 ? WorkMark{nullptr, member_.number()} : WorkMark{control_.work(), mark};
  }
  RunDevice& device_of(NodeIndex n) { return environment_.devices[run_.place(n).device]; }
  Value& output(const Source& source) { return run_.output(source); }
  const Hash128& key_of(NodeIndex n) const {
    return n < keys_.size() ? keys_[n] : run_.added(n).key;
  }
  void drop_output(const Source& source, Worker& worker) {
    Value& value = output(source);
    if (request_.steps != nullptr) [[unlikely]]
      request_.steps->release(source, value);
    if (released_.keeps_any()) [[unlikely]]
      return released_.add(source, std::move(value), worker.dropped);
    worker.dropped.push_back(std::move(value));
  }

  const RunRequest& request_;
  const Graph& graph_;  // as it was planned
  const Plan& plan_;
  RunGraph run_;
  Environment& environment_;
  SerialObserver observer_;
  RunControl& control_;
  MappedModels models_;
  const NodeCall::Shared call_shared_;
  std::vector<Hash128> device_classes_;              // by device: a part of keys
  std::vector<Hash128> keys_;                        // of the nodes that were planned
  std::map<NodeIndex, UsedFiles> key_files_;         // as they were when the keys were made
  std::map<NodeIndex, std::vector<Value>> brought_;  // outputs of earlier processes
  Transfers transfers_;
  DeviceUse use_;
  RunForecast forecast_;
  ReadAhead read_ahead_;
  const SingleFlight::Member member_;
  UncachedNodes uncached_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shared_ = false;  // set before the second thread starts, never unset
  // [shared]
  Schedule schedule_;
  std::size_t running_ = 0;   // nodes
  std::size_t sleeping_ = 0;  // threads
  std::vector<std::thread> helpers_;
  std::list<Running> deferred_;
  std::map<Source, Begun> begun_;    // of nodes that are not done
  std::list<Running> held_;          // have ended, and what they read has not
  std::set<NodeIndex> reads_whole_;  // have begun with parts once, and could not
  std::set<NodeIndex> called_models_;
  std::vector<NodeIndex> waiting_;  // for other runs that compute them
  std::unordered_map<NodeIndex, std::vector<std::uint32_t>> wanted_;  // lazy inputs asked for
  std::vector<NodeIndex> cached_;  // taken from the cache, and not reported yet
  std::map<NodeIndex, std::vector<std::string>> blocked_;  // of these: messages of blockers
  std::exception_ptr failure_;                             // the first
  NodeIndex failed_node_ = Schedule::kNone;                // whose it is; kNone: of none
  ReleasedValues released_;  // for the next try; nothing where there is none
  std::vector<Written> files_;
  RunResult result_;
  std::unordered_map<NodeIndex, Expanding> expanding_;
  // One expansion at a time; locked before mutex_.
  std::mutex growing_;
  std::unique_ptr<Expander> expander_;  // growing_; made when it is first needed
  // Always guarded by mutex_: nodes complete on threads of their own, or of other runs.
  std::list<Completion> completions_;
  std::list<SingleFlight::News> heard_;
  std::unordered_map<NodeIndex, SingleFlight::Flight> flights_;  // of nodes that have begun
  std::atomic<bool> any_news_{false};                            // of either
  std::atomic<bool> has_begun_{false};  // there have been outputs that are read early
  std::atomic<bool> leaves_{false};     // no node begins any more: the run goes on later
  std::mutex saving_;                   // one checkpoint at a time; locked before mutex_
  std::set<NodeIndex> stated_;          // saving_; nodes whose calls have states that are kept
};

// What the work throws is the failure of the node, and of its flight if it has one; after that the
// lock is held.
template <class Work>
void Execution::guard_node(NodeIndex n, bool has_flight, Lock& lock, Work&& work) {
  try {
    work();
  } catch (Error& error) {
    if (has_flight) {
      leave(lock);
      fail_flight(n);
    }
    error.at(name_of(run_.node(n)));
    if (!lock.owns_lock()) enter(lock);
    if (failure_ == nullptr) failed_node_ = n;
    fail(std::current_exception());
  } catch (...) {
    if (has_flight) {
      leave(lock);
      fail_flight(n);
    }
    if (!lock.owns_lock()) enter(lock);
    fail(std::current_exception());
  }
}

}  // namespace heddle::engine
