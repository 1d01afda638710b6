#include "cudnn_plan.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

#include "heddle/device.hpp"

namespace heddle::cuda {

namespace {

constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;  // bytes

// All that a plan depends on besides its key, as one line. Found out without a context.
std::string domain_of(const Device& device, std::size_t version) {
  const Card& card = device.card();
  std::string driver;  // the module's version; without it the driver's CUDA version has to do
  if (!std::getline(std::ifstream("/sys/module/nvidia/version"), driver)) {
    int cuda = 0;
    check(cudaDriverGetVersion(&cuda), "cudaDriverGetVersion");
    driver = device::cat("of CUDA ", cuda);
  }
  return device::cat("cudnn ", version, ", driver ", driver, ", ", card.name, " ", card.major, ".",
                     card.minor, ", ", card.multiprocessors, " multiprocessors, workspace ",
                     kMostWorkspace);
}

// Sums that are added up where they meet give other bytes on every run; the others are less exact
// than the op's rule says.
bool keeps_the_rules(const CudnnLibrary& library, cudnnBackendDescriptor_t engine) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  std::int64_t count = 0;
  if (library.get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                  CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS)
    return false;
  return std::none_of(notes, notes + count, [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS || note == CUDNN_NUMERICAL_NOTE_FFT ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
  });
}

}  // namespace

// ---- handles ----

CudnnHandles::~CudnnHandles() {
  for (const cudnnHandle_t handle : all_) library_->destroy(handle);
}

const CudnnLibrary* CudnnHandles::library() {
  std::call_once(looked_, [&] {
    static const CudnnLibrary opened;
    if (opened.usable)
      library_ = &opened;
    else
      device_.host()->log(device_.host(), HEDDLE_WARN,
                          "cuda: libcudnn.so.9 is not found; attention and convolutions run on "
                          "slow kernels. Name its folder in HEDDLE_CUDA_LIBRARIES");
  });
  return library_;
}

cudnnHandle_t CudnnHandles::take() {
  std::call_once(opened_, CudnnLibrary::open_needed);
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      const cudnnHandle_t handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
    if (is_broken_) return nullptr;
  }
  device_.use();
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = library_->create(&handle);
  const std::lock_guard lock(mutex_);
  if (status == CUDNN_STATUS_SUCCESS) {
    all_.push_back(handle);
    return handle;
  }
  // Where there are some, memory is short for another, and may not be so later.
  if (all_.empty() && !std::exchange(is_broken_, true))
    device_.host()->log(device_.host(), HEDDLE_WARN,
                        device::cat("cuda: cudnnCreate: ", library_->error_string(status),
                                    "; attention and convolutions run on slow kernels")
                            .c_str());
  return nullptr;
}

void CudnnHandles::give_back(cudnnHandle_t handle) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(handle);
}

class Cudnn::Handle {
 public:
  explicit Handle(CudnnHandles& handles) : handles_(handles), handle_(handles.take()) {}
  ~Handle() {
    if (handle_ != nullptr) handles_.give_back(handle_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cudnnHandle_t raw() const { return handle_; }
  cudnnHandle_t release() { return std::exchange(handle_, nullptr); }

 private:
  CudnnHandles& handles_;
  cudnnHandle_t handle_;
};

// ---- plans ----

Cudnn::~Cudnn() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  plans_.clear();
}

// REQUIRES: the library is there.
const PlanStore& Cudnn::store() {
  std::call_once(store_made_, [&] {
    store_.emplace(device_.settings().plans, domain_of(device_, handles_.library()->version()));
  });
  return *store_;
}

const CudnnPlan* Cudnn::plan(const Key& key, Describe describe) {
  std::unique_lock lock(mutex_);
  for (auto known = plans_.find(key); known != plans_.end(); known = plans_.find(key)) {
    if (known->second.is_done) return known->second.plan.get();
    changed_.wait(lock);
  }
  plans_.try_emplace(key);
  lock.unlock();
  std::unique_ptr<CudnnPlan> made;
  try {
    if (handles_.library() != nullptr) made = find_or_make(key, describe);
  } catch (...) {
    lock.lock();
    plans_.erase(key);
    changed_.notify_all();
    throw;
  }
  lock.lock();
  Slot& slot = plans_.at(key);
  slot = {true, std::move(made)};
  changed_.notify_all();
  // Of a plan that somebody only looks at nothing is launched.
  if (slot.plan != nullptr && !slot.plan->is_ready_ && device_.is_for_work())
    make_ready_soon(*slot.plan);
  return slot.plan.get();
}

std::unique_ptr<CudnnPlan> Cudnn::find_or_make(const Key& key, Describe describe) {
  if (const auto entry = store().find(key)) {
    std::unique_ptr<CudnnPlan> found(new CudnnPlan(*handles_.library(), key, describe));
    found->workspace_bytes_ = static_cast<std::size_t>(entry->workspace_bytes);
    found->stored_ = entry->plan;
    return found;
  }
  const Handle handle(handles_);
  if (handle.raw() == nullptr) return nullptr;
  std::unique_ptr<CudnnPlan> made;
  try {
    device_.use();
    made = make_plan(handle.raw(), key, describe);
  } catch (const device::Error& error) {
    if (error.code() != HEDDLE_UNSUPPORTED) throw;
  }
  // Another process may have room for what failed here.
  if (made == nullptr || !made->is_first_choice_) return made;
  if (std::string text = written(*made); !text.empty())
    store().add(key, {made->workspace_bytes_, std::move(text)});
  return made;
}

// Empty: this plan cannot be written.
std::string Cudnn::written(const CudnnPlan& plan) const {
  const CudnnLibrary& library = plan.graph_->library();
  std::int64_t size = 0, got = 0;
  if (library.get(plan.plan_, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0,
                  &size, nullptr) != CUDNN_STATUS_SUCCESS ||
      size <= 0)
    return {};
  std::string text(static_cast<std::size_t>(size), '\0');
  const cudnnStatus_t status =
      library.get(plan.plan_, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, size,
                  &got, text.data());
  return status == CUDNN_STATUS_SUCCESS ? text : std::string();
}

// ---- plans from disk ----

void Cudnn::make_ready_soon(CudnnPlan& plan) {
  waiting_.push_back(&plan);
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { make_all_ready(); });
  } catch (const std::system_error&) {
    // No thread is to be had: it is made ready when it is launched.
  }
}

void Cudnn::make_all_ready() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || !waiting_.empty(); });
    if (stops_) return;
    CudnnPlan& plan = *waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    try {
      make_ready(plan);
    } catch (const std::exception&) {
      // Whoever launches it is told.
    }
    lock.lock();
  }
}

void Cudnn::make_ready(CudnnPlan& plan) {
  const std::lock_guard one_at_a_time(plan.making_ready_);
  if (plan.is_ready_) return;
  const Handle handle(handles_);
  if (handle.raw() == nullptr)
    device::fail(HEDDLE_INTERNAL, "cuDNN cannot be used any more; the log says why");
  device_.use();
  if (!restore(handle.raw(), plan)) {
    // Another file than this library wrote, or one that it no longer takes.
    store().remove(plan.key_);
    const std::unique_ptr<CudnnPlan> made = make_plan(handle.raw(), plan.key_, plan.describe_);
    if (made == nullptr || made->workspace_bytes_ > plan.workspace_bytes_)
      device::fail(HEDDLE_INTERNAL, "the kept plan of an operation cannot be used, and a new one ",
                   made == nullptr ? "is not to be had" : "needs more workspace",
                   ". It has been removed: start the run again");
    plan.graph_ = std::move(made->graph_);
    plan.plan_ = made->plan_;
  }
  plan.stored_ = {};
  plan.is_ready_ = true;
}

bool Cudnn::restore(cudnnHandle_t handle, CudnnPlan& plan) const {
  const CudnnLibrary& library = plan.graph_->library();
  try {
    auto graph = std::make_unique<CudnnGraph>(library);
    const CudnnGraph::Part made = graph->make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    graph->set(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    graph->set(made, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               static_cast<std::int64_t>(plan.stored_.size()), plan.stored_.data());
    graph->finish(made);
    std::int64_t bytes = 0, one = 0;
    if (library.get(made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                    &bytes) != CUDNN_STATUS_SUCCESS ||
        static_cast<std::size_t>(bytes) > plan.workspace_bytes_)
      return false;
    plan.graph_ = std::move(graph);
    plan.plan_ = made;
    return true;
  } catch (const device::Error&) {
    return false;
  }
}

namespace {

// What is not supported, or wrongly asked, is that in every process; the rest is a lack of memory,
// or a fault. Codes of a kind share their thousands.
bool is_lasting(cudnnStatus_t status) {
  return status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000 ||
         status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
}

void check(const CudnnLibrary& library, cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS)
    device::fail(HEDDLE_INTERNAL, call, ": ", library.error_string(status), " (", int(status), ")");
}

}  // namespace

std::unique_ptr<CudnnPlan> Cudnn::make_plan(cudnnHandle_t handle, const Key& key,
                                            Describe describe) {
  const CudnnLibrary& library = *handles_.library();
  std::unique_ptr<CudnnPlan> made(new CudnnPlan(library, key, describe));
  CudnnGraph& graph = *made->graph_;
  describe(graph, key);
  const CudnnGraph::Part whole = graph.make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.set(whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(graph.operations().size()), graph.operations().data());
  graph.finish(whole);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    const CudnnGraph::Part proposals = graph.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    graph.set(proposals, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole);
    graph.set(proposals, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (library.finish(proposals) != CUDNN_STATUS_SUCCESS) continue;
    std::int64_t count = 0;
    if (library.get(proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                    &count, nullptr) != CUDNN_STATUS_SUCCESS)
      continue;
    std::vector<CudnnGraph::Part> configurations;
    for (std::int64_t i = 0; i < count; ++i)
      configurations.push_back(graph.make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    if (count == 0 ||
        library.get(proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                    &count, configurations.data()) != CUDNN_STATUS_SUCCESS)
      continue;
    configurations.resize(static_cast<std::size_t>(count));
    for (const CudnnGraph::Part configuration : configurations) {
      CudnnGraph::Part engine = graph.make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      std::int64_t one = 0;
      if (library.get(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                      &one, &engine) != CUDNN_STATUS_SUCCESS ||
          !keeps_the_rules(library, engine))
        continue;
      const CudnnGraph::Part plan = graph.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      graph.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
      graph.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (const cudnnStatus_t status = library.finish(plan); status != CUDNN_STATUS_SUCCESS) {
        if (!is_lasting(status)) made->is_first_choice_ = false;
        continue;
      }
      std::int64_t bytes = 0;
      if (library.get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                      &bytes) != CUDNN_STATUS_SUCCESS ||
          static_cast<std::size_t>(bytes) > kMostWorkspace)
        continue;
      made->plan_ = plan;
      made->workspace_bytes_ = static_cast<std::size_t>(bytes);
      made->is_ready_ = true;
      return made;
    }
  }
  return nullptr;
}

void Cudnn::execute(cudaStream_t stream, const CudnnPlan& given, std::span<const Binding> bindings,
                    void* workspace) {
  constexpr std::size_t kMost = 8;
  std::int64_t ids[kMost];
  const void* pointers[kMost];
  const std::size_t count = std::min(bindings.size(), kMost);
  for (std::size_t i = 0; i < count; ++i) ids[i] = bindings[i].id, pointers[i] = bindings[i].data;
  const CudnnLibrary& library = *handles_.library();
  if (!given.is_ready_) make_ready(const_cast<CudnnPlan&>(given));  // it is one of ours
  const cudnnHandle_t launcher = launcher_of(stream);
  const std::lock_guard lock(launching_);
  CudnnGraph pack(library);
  const CudnnGraph::Part part = pack.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           static_cast<std::int64_t>(count), ids);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           static_cast<std::int64_t>(count), pointers);
  pack.set(part, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finish(part);
  check(library, library.execute(launcher, given.plan_, part), "cudnnBackendExecute");
}

// One thread at a time launches on a stream.
cudnnHandle_t Cudnn::launcher_of(cudaStream_t stream) {
  {
    const std::lock_guard lock(launching_);
    if (const auto found = launchers_.find(stream); found != launchers_.end()) return found->second;
  }
  Handle taken(handles_);  // without the lock: the first one opens large libraries
  if (taken.raw() == nullptr)
    device::fail(HEDDLE_OUT_OF_MEMORY, "there is no room for another handle of cuDNN on ",
                 device_.name(), "; lower the budget, or end what else uses the device");
  const CudnnLibrary& library = *handles_.library();
  check(library, library.set_stream(taken.raw(), stream), "cudnnSetStream");
  const std::lock_guard lock(launching_);
  return launchers_.emplace(stream, taken.release()).first->second;
}

void Cudnn::leave(cudaStream_t stream) noexcept {
  const std::lock_guard lock(launching_);
  const auto found = launchers_.find(stream);
  if (found == launchers_.end()) return;
  const cudnnHandle_t handle = found->second;
  launchers_.erase(found);
  if (handles_.library()->set_stream(handle, nullptr) == CUDNN_STATUS_SUCCESS)
    handles_.give_back(handle);
}

}  // namespace heddle::cuda
