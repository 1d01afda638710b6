// cuDNN's plans of operation graphs, which take it from milliseconds to a second each: so they are
// kept by shape, and on disk for later processes (plan_store.h). A plan from there is told of at
// once, without the large libraries; these are opened, and the plan is made ready, on a thread
// beside whatever else is done before it is needed. Several threads make several plans at a time,
// and none that launches waits for them. Thread-safe; one for each device.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cudnn_graph.h"
#include "device.h"
#include "plan_store.h"

namespace heddle::cuda {

class CudnnPlan {
 public:
  // What a graph follows from: op, shapes, strides, types, attributes.
  using Key = PlanStore::Key;
  using Describe = void (*)(CudnnGraph& graph, const Key& key);

  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  friend class Cudnn;
  CudnnPlan(const CudnnLibrary& library, const Key& key, Describe describe)
      : graph_(std::make_unique<CudnnGraph>(library)), key_(key), describe_(describe) {}

  std::unique_ptr<CudnnGraph> graph_;  // the plan's parts live as long as it does
  const Key key_;
  const Describe describe_;
  CudnnGraph::Part plan_ = nullptr;  // there once it is ready
  std::string stored_;               // before: as it was on disk
  std::size_t workspace_bytes_ = 0;
  bool is_first_choice_ = true;  // false: a better one failed for a reason that may pass
  std::mutex making_ready_;
  std::atomic<bool> is_ready_ = false;
};

// The library, which is opened for its version alone, and handles of it for threads to make plans
// with, as many as there are such threads at once. Thread-safe.
class CudnnHandles {
 public:
  explicit CudnnHandles(Device& device) : device_(device) {}
  ~CudnnHandles();
  CudnnHandles(const CudnnHandles&) = delete;
  CudnnHandles& operator=(const CudnnHandles&) = delete;

  // nullptr: it is not there, and the log says so, once.
  const CudnnLibrary* library();

  // One that nobody uses, for the calling thread; nullptr: there are none, and the log says why.
  // Opens the large libraries.
  cudnnHandle_t take();
  void give_back(cudnnHandle_t handle);

 private:
  Device& device_;
  const CudnnLibrary* library_ = nullptr;
  std::once_flag looked_, opened_;
  std::mutex mutex_;
  std::vector<cudnnHandle_t> all_, idle_;  // mutex_
  bool is_broken_ = false;                 // mutex_
};

class Cudnn {
 public:
  explicit Cudnn(Device& device) : device_(device), handles_(device) {}
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  using Key = CudnnPlan::Key;
  using Describe = CudnnPlan::Describe;

  // The plan of this key, which is made when it is first asked for, or waited for where another
  // thread is making it; nullptr: the library is not there or has none that is exact, gives equal
  // bytes on every run and asks for a bounded workspace.
  const CudnnPlan* plan(const Key& key, Describe describe);

  // Enqueues; waits for the plan where it is not ready. Of numbers, the data is their address in
  // host memory, read during the call.
  struct Binding {
    std::int64_t id;
    const void* data;
  };
  void execute(cudaStream_t stream, const CudnnPlan& plan, std::span<const Binding> bindings,
               void* workspace);
  // To be called before the stream goes. REQUIRES: its work is done.
  void leave(cudaStream_t stream) noexcept;

 private:
  struct Slot {
    bool is_done = false;
    std::unique_ptr<CudnnPlan> plan;  // nullptr: there is none
  };
  class Handle;

  const PlanStore& store();
  std::unique_ptr<CudnnPlan> find_or_make(const Key& key, Describe describe);
  std::unique_ptr<CudnnPlan> make_plan(cudnnHandle_t handle, const Key& key, Describe describe);
  std::string written(const CudnnPlan& plan) const;
  void make_ready(CudnnPlan& plan);
  bool restore(cudnnHandle_t handle, CudnnPlan& plan) const;
  void make_ready_soon(CudnnPlan& plan);  // REQUIRES: mutex_ held
  void make_all_ready();                  // on a thread of its own
  cudnnHandle_t launcher_of(cudaStream_t stream);

  Device& device_;
  CudnnHandles handles_;
  std::once_flag store_made_;
  std::optional<PlanStore> store_;
  std::mutex mutex_;
  std::map<Key, Slot> plans_;       // mutex_
  std::deque<CudnnPlan*> waiting_;  // mutex_; from disk, not ready yet
  bool stops_ = false;              // mutex_
  std::condition_variable changed_;
  std::thread thread_;  // mutex_
  std::mutex launching_;
  // A handle for each stream: one that changes its stream records an event on the one before and
  // lets the other wait for it, which draws both into one captured graph where either is captured.
  std::map<cudaStream_t, cudnnHandle_t> launchers_;  // launching_
};

}  // namespace heddle::cuda
