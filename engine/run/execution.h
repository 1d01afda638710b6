// One run at work: its threads take nodes from the schedule and execute them. Behind execute() of
// executor.h; the parts stand in execution.cpp (threads) and execution_node.cpp (what one node
// takes).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "engine/run/executor.h"
#include "engine/run/instance.h"
#include "engine/run/node_call.h"
#include "engine/run/ready_nodes.h"
#include "engine/run/transfers.h"

namespace heddle::engine {

// Over 15 members: one lock guards the state of a run, from its schedule to its deferred calls,
// because finishing a node changes all of it in one step. What has rules of its own stands apart:
// the schedule, transfers, keys, forecast, and what devices are used for.
class Execution {
 public:
  Execution(const RunRequest& request, Environment& environment, Observer& observer,
            RunControl& control);
  RunResult run();

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

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

    bool is_deferred() const { return open > 0 || call->deferred(); }
    bool has(const NodeCall* one) const;
    // Takes what a deferred call says in the end. True: none of the node's calls is left.
    bool complete(heddle_status* status);
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
  void bring_disk_cached();
  void wait_for_devices();
  void check_models();
  void check_files();
  void forget_changed();
  std::vector<NodeIndex> lost_nodes() const;
  void forget_outputs(const std::vector<NodeIndex>& of);
  std::uint64_t fingerprint(NodeIndex n);
  bool take_from_cache(NodeIndex n, const OutputCache::Reading& cache);

  void work() noexcept;
  bool is_over() const;
  bool has_to_stop();
  void fail(std::exception_ptr failure);
  void call_for_help(Lock& lock);
  void wait_for_change(Lock& lock);
  void drop(Worker& worker, Lock& lock);
  bool report_cached(Lock& lock);
  void join_helpers();

  void run_node(NodeIndex n, Worker& worker, Lock& lock);
  void execute_node(Running& running, Worker& worker, Lock& lock);
  void trace_begin(Running& running);
  void trace_end(Running& running);
  void give_inputs(NodeIndex n, NodeCall& call);
  std::vector<Given> given_inputs(NodeIndex n, const std::vector<std::uint32_t>& lazy);
  void give_lists(Running& running, const std::vector<std::uint32_t>& lazy);
  void execute_elements(Running& running);
  void collect_elements(Running& running);
  Value hidden(const Node& node, std::string_view type) const;
  bool has_lazy_inputs(Running& running, Lock& lock);
  bool want(NodeIndex n, const std::vector<std::uint32_t>& inputs);
  void finish(Running& running, Worker& worker, Lock& lock);
  void add_to_cache(NodeIndex n, std::span<const Value> outputs, const std::string& ui,
                    const std::vector<std::string>& blocked, double seconds, Worker& worker);
  void on_complete(std::list<Completion>& one);
  bool finish_deferred(Worker& worker, Lock& lock);
  void abandon_deferred();

  WorkMark work_so_far() const {
    const std::uint64_t mark = control_.work()->mark();
    return mark == 0 ? WorkMark() : WorkMark{control_.work(), mark};
  }
  RunDevice& device_of(NodeIndex n) { return environment_.devices[plan_.assignments[n].device]; }
  Value& output(const Source& source) { return outputs_[first_output_[source.node] + source.port]; }

  const RunRequest& request_;
  const Graph& graph_;
  const Plan& plan_;
  Environment& environment_;
  SerialObserver observer_;
  RunControl& control_;
  MappedModels models_;
  const NodeCall::Shared call_shared_;
  std::vector<Hash128> keys_;
  std::map<NodeIndex, UsedFiles> key_files_;         // as they were when the keys were made
  std::map<NodeIndex, std::vector<Value>> brought_;  // outputs of earlier processes
  Transfers transfers_;
  DeviceUse use_;
  RunForecast forecast_;
  // Outputs of all nodes. Written by whoever finishes a node, before its readers become ready.
  std::vector<std::size_t> first_output_;  // by node
  std::vector<Value> outputs_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_shared_ = false;  // set before the second thread starts, never unset
  // [shared]
  Schedule schedule_;
  std::size_t running_ = 0;   // nodes
  std::size_t sleeping_ = 0;  // threads
  std::vector<std::thread> helpers_;
  std::list<Running> deferred_;
  std::unordered_map<NodeIndex, std::vector<std::uint32_t>> wanted_;  // lazy inputs asked for
  std::vector<NodeIndex> cached_;  // taken from the cache, and not reported yet
  std::map<NodeIndex, std::vector<std::string>> blocked_;  // of these: messages of blockers
  std::exception_ptr failure_;                             // the first
  std::vector<Written> files_;
  RunResult result_;
  // Always guarded by mutex_: nodes complete on threads of their own.
  std::list<Completion> completions_;
  std::atomic<bool> any_completions_{false};
};

}  // namespace heddle::engine
