#include "engine/run/execution.h"

#include <algorithm>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/run/keys.h"

namespace heddle::engine {

Execution::Execution(const RunRequest& request, Environment& environment, Observer& observer,
                     RunControl& control)
    : request_(request),
      graph_(*request.graph),
      plan_(*request.plan),
      environment_(environment),
      observer_(observer),
      control_(control),
      call_shared_{environment,      observer_,
                   control,          [this](std::list<Completion>& one) { on_complete(one); },
                   request.timeline, &use_,
                   nullptr,          &models_},
      transfers_(graph_, plan_, schedule_, environment, request.timeline, request.steps),
      use_(graph_, environment),
      forecast_(environment.forecast, graph_, plan_.order.empty() ? graph_.order : plan_.order),
      schedule_(graph_, plan_, static_cast<std::uint32_t>(environment.devices.size())) {
  first_output_.reserve(graph_.nodes.size());
  std::size_t outputs = 0;
  for (const Node& node : graph_.nodes) {
    first_output_.push_back(outputs);
    outputs += node.type->output_count();
  }
  outputs_.resize(outputs);
  result_.timings.reserve(graph_.nodes.size());
}

RunResult Execution::run() {
  find_keys();
  bring_disk_cached();
  for (const Source& source : request_.fetch) schedule_.hold(source);
  {
    const OutputCache::Reading cache = environment_.cache.read();
    const auto is_cached = [&](NodeIndex n) { return take_from_cache(n, cache); };
    for (const NodeIndex sink : graph_.sinks) schedule_.activate(sink, is_cached);
    for (const Source& source : request_.fetch) schedule_.activate(source.node, is_cached);
  }
  work();
  join_helpers();
  for (std::uint32_t d = 0; d < environment_.devices.size(); ++d)
    if (transfers_.used(d) && !use_.has(d)) use_.touch(d);
  if (failure_ == nullptr) wait_for_devices();
  if (failure_ == nullptr && !control_.work()->finish())
    failure_ = std::make_exception_ptr(Error(Code::cancelled, "cancelled"));
  if (failure_ == nullptr) check_models();
  if (failure_ != nullptr) {
    abandon_deferred();
    for (const RunDevice& device : environment_.devices) device.state->settle();
    forget_outputs(use_.failed() ? graph_.order : lost_nodes());
    control_.work()->forget();
    check_files();
    std::rethrow_exception(failure_);
  }
  check_files();
  use_.succeeded();
  for (const Source& source : request_.fetch) result_.fetched[source] = output(source);
  std::ranges::stable_sort(files_, {}, &Written::rank);
  for (Written& file : files_) result_.files.push_back(std::move(file.path));
  result_.transferred_bytes = transfers_.bytes();
  return std::move(result_);
}

void Execution::wait_for_devices() {
  try {
    try {
      use_.wait();
    } catch (const Error&) {
      models_.check_sizes();  // a driver has its own words for pages that are gone
      throw;
    }
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

// Devices have read the last weights by now.
void Execution::check_models() {
  try {
    models_.check();
  } catch (const Error&) {
    failure_ = std::current_exception();
  }
}

// What came of a file that was changed meanwhile, or of which pages were lost, is not what its key
// says. Other runs that had begun before may have taken it from the cache; they find out, too.
void Execution::check_files() {
  try {
    forget_changed();
  } catch (const std::bad_alloc&) {
    environment_.cache.clear();  // better nothing than what is wrong
  }
}

void Execution::forget_changed() {
  const bool is_damaged = models_.is_damaged();
  std::vector<bool> is_changed(graph_.nodes.size(), is_damaged);
  const UsedFile* first = nullptr;
  NodeIndex reader = 0;
  for (const auto& [n, files] : key_files_) {
    const UsedFile* const changed = find_changed(files);
    if (changed == nullptr) continue;
    is_changed[n] = true;
    if (first == nullptr) first = changed, reader = n;
  }
  if (first == nullptr && !is_damaged) return;
  std::vector<Hash128> keys;
  for (const NodeIndex n : graph_.order) {
    for_each_binding(graph_.nodes[n], [&](const Binding& binding) {
      if (const auto* link = std::get_if<Source>(&binding))
        is_changed[n] = is_changed[n] || is_changed[link->node];
    });
    if (is_changed[n]) keys.push_back(keys_[n]);
  }
  std::ranges::sort(keys);
  environment_.cache.drop_if([&](const Hash128& key, std::span<const Value>) {
    return std::ranges::binary_search(keys, key);
  });
  std::erase_if(result_.to_cache_on_disk, [&](const auto& made) { return is_changed[made.first]; });
  if (first != nullptr && failure_ == nullptr)
    observer_.warning(
        &graph_.nodes[reader],
        cat(first->path.native(),
            " was changed while the run used it, so nothing that came of it is kept, "
            "and it may be wrong. Run it again, and replace files by renaming, not by "
            "writing over them."));
}

// Those whose work was given up, and all that was made of it.
std::vector<NodeIndex> Execution::lost_nodes() const {
  std::vector<NodeIndex> lost = control_.work()->lost();
  if (lost.empty()) return lost;
  std::vector<bool> is_lost(graph_.nodes.size());
  for (const NodeIndex n : lost) is_lost[n] = true;
  const auto is_of_lost = [&](const Binding& binding) {
    const auto* link = std::get_if<Source>(&binding);
    return link != nullptr && is_lost[link->node];
  };
  for (const NodeIndex n : graph_.order) {
    const Node& node = graph_.nodes[n];
    if (is_lost[n] ||
        (std::ranges::none_of(node.inputs, is_of_lost) &&
         std::ranges::none_of(node.extra, is_of_lost, [](const auto& e) { return e.second; })))
      continue;
    is_lost[n] = true;
    lost.push_back(n);
  }
  return lost;
}

// They went into the cache when they had been enqueued; whether they were ever made, nobody knows.
void Execution::forget_outputs(const std::vector<NodeIndex>& of) {
  if (of.empty()) return;
  // A node that failed when it had been added has no timing, so it is by those that were found.
  std::vector<bool> was_found(graph_.nodes.size());
  for (const NodeTiming& timing : result_.timings)
    if (timing.cached) was_found[timing.node] = true;
  std::vector<Hash128> made;
  for (const NodeIndex n : of)
    if (!was_found[n]) made.push_back(keys_[n]);
  std::ranges::sort(made);
  environment_.cache.drop_if([&](const Hash128& key, std::span<const Value>) {
    return std::ranges::binary_search(made, key);
  });
}

void Execution::find_keys() {
  std::vector<Hash128> device_classes;
  for (std::uint32_t d = 0; d < environment_.devices.size(); ++d) {
    const Device& device = environment_.devices[d].state->device();
    device_classes.push_back(Hasher()
                                 .add(device.kind())
                                 .add(device.model())
                                 .add(device.compute())
                                 .add(use_.failed_before(d))
                                 .finish());
  }
  const auto known = [&](NodeIndex n) {
    const auto cached = request_.disk_cached.find(n);
    return cached == request_.disk_cached.end() ? Hash128() : cached->second.key;
  };
  keys_ = output_keys(
      graph_, plan_.assignments, device_classes, [&](NodeIndex n) { return fingerprint(n); },
      request_.disk_cached.empty() ? KnownKeys() : known);
}

// What was found on disk goes where the nodes would have made it.
void Execution::bring_disk_cached() {
  constexpr double kSeconds = 1e-3;  // about what it takes to read it once more
  for (const auto& [n, cached] : request_.disk_cached) {
    if (cached.values.empty()) continue;
    // Held from here on: its inputs are cut off, so it cannot be made again.
    if (const auto reading = environment_.cache.read();
        const auto outputs = reading.find(keys_[n], control_.work().get())) {
      brought_[n].assign(outputs->begin(), outputs->end());
      continue;
    }
    const auto bring = [&, n = n](const Tensor& tensor) {
      if (plan_.assignments[n].on_host) return tensor;
      use_.mark(plan_.assignments[n].device, graph_.nodes[n]);
      try {
        return device_of(n).state->upload(tensor->info, tensor->data());
      } catch (const Error& error) {
        if (error.code() != Code::out_of_memory) throw;
        return tensor;  // its readers bring what they read
      }
    };
    std::vector<Value>& values = brought_[n];
    for (const Value& value : cached.values) values.push_back(map_tensors(value, bring));
    environment_.cache.add(keys_[n], values, kSeconds);
  }
}

std::uint64_t Execution::fingerprint(NodeIndex n) {
  try {
    return engine::fingerprint(call_shared_, graph_.nodes[n], device_of(n), plan_.assignments[n],
                               key_files_[n]);
  } catch (const Error& error) {
    if (error.code() == Code::cancelled || error.code() == Code::out_of_memory) throw;
    // What lacks, the node itself tells when it runs.
    log(Level::warning, cat(graph_.name_of(n), ": nobody can say whether it has changed, so it ",
                            "runs again: ", error.full()));
    return HEDDLE_FINGERPRINT_NEVER;
  }
}

bool Execution::take_from_cache(NodeIndex n, const OutputCache::Reading& cache) {
  std::optional<std::span<const Value>> outputs;
  if (const auto brought = brought_.find(n); brought != brought_.end())
    outputs = brought->second;
  else if (keys_[n] != Hash128())
    outputs = cache.find(keys_[n], control_.work().get());
  if (!outputs) {
    transfers_.expect(n);
    return false;
  }
  const std::uint32_t count = graph_.nodes[n].type->output_count();
  const auto text_at = [&](std::size_t i) { return get_str(*(*outputs)[i]); };
  if (outputs->size() > count && !text_at(count).empty()) result_.ui.emplace(n, text_at(count));
  for (std::size_t i = count + 1; i < outputs->size(); ++i) blocked_[n].push_back(text_at(i));
  outputs = outputs->first(count);
  for (const Value& value : *outputs) use_.touch_holders(value);
  forecast_.made(n, *outputs);
  forecast_.done(n);
  std::ranges::copy(*outputs, outputs_.begin() + std::ptrdiff_t(first_output_[n]));
  result_.timings.push_back({n, 0, true});
  cached_.push_back(n);
  return true;
}

// A thread's share of the run; it comes back when the run is over or has to stop.
void Execution::work() noexcept {
  Lock lock(mutex_, std::defer_lock);
  try {
    Worker worker(environment_.cache);
    enter(lock);
    while (!is_over() && !has_to_stop()) {
      if (report_cached(lock) || finish_deferred(worker, lock)) continue;
      if (control_.paused()) {
        leave(lock);
        worker.adding.flush();
        control_.wait_while_paused();
        enter(lock);
        worker.now = {};
      } else if (const NodeIndex n = schedule_.take(); n != Schedule::kNone) {
        ++running_;
        const bool is_brief = graph_.nodes[n].type->is_brief();
        if (!is_brief && schedule_.can_take()) call_for_help(lock);
        leave(lock);
        if (!is_brief) worker.adding.flush();  // other runs may want it meanwhile
        run_node(n, worker, lock);             // enters again
        --running_;
        schedule_.leave(n);
        drop(worker, lock);
      } else if (!worker.adding.is_empty()) {
        leave(lock);
        worker.adding.flush();
        enter(lock);  // and look again: a node may have become ready
      } else {
        wait_for_change(lock);
        worker.now = {};
      }
    }
  } catch (...) {
    if (is_shared_ && !lock.owns_lock()) lock.lock();
    fail(std::current_exception());
  }
  if (is_shared_) changed_.notify_all();
}

bool Execution::is_over() const {
  return running_ == 0 && deferred_.empty() && schedule_.is_idle() && cached_.empty();
}

bool Execution::has_to_stop() {
  if (failure_ == nullptr && control_.cancelled())
    failure_ = std::make_exception_ptr(Error(Code::cancelled, "cancelled"));
  return failure_ != nullptr;
}

void Execution::fail(std::exception_ptr failure) {
  if (failure_ == nullptr) failure_ = std::move(failure);
  control_.stop();  // nodes that are still running see it
  if (is_shared_) changed_.notify_all();
}

// A node is ready on a queue that nobody works on.
void Execution::call_for_help(Lock& lock) {
  if (sleeping_ > 0) return changed_.notify_one();
  if (helpers_.size() == environment_.devices.size()) return;  // with the first: one for each queue
  if (!is_shared_) {
    lock.lock();
    is_shared_ = true;
  }
  try {
    helpers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // No thread is to be had: then the queues take turns.
  }
}

void Execution::wait_for_change(Lock& lock) {
  if (!lock.owns_lock()) {  // there is no other thread: only a deferred node can change anything
    Lock waiting(mutex_);
    return changed_.wait(waiting, [this] { return !completions_.empty(); });
  }
  ++sleeping_;
  changed_.wait(lock);
  --sleeping_;
}

void Execution::drop(Worker& worker, Lock& lock) {
  if (worker.dropped.empty()) return;
  leave(lock);
  worker.dropped.clear();
  enter(lock);
}

bool Execution::report_cached(Lock& lock) {
  if (cached_.empty()) return false;
  std::vector<NodeIndex> cached = std::exchange(cached_, {});
  std::ranges::sort(cached, {}, [this](NodeIndex n) { return schedule_.rank(n); });
  std::vector<const std::string*> shown;
  for (const NodeIndex n : cached) {
    const auto ui = result_.ui.find(n);
    shown.push_back(ui == result_.ui.end() ? nullptr : &ui->second);
  }
  const auto blocked = std::exchange(blocked_, {});
  leave(lock);
  for (std::size_t i = 0; i < cached.size(); ++i) {
    const Node& node = graph_.nodes[cached[i]];
    if (const auto messages = blocked.find(cached[i]); messages != blocked.end())
      for (const std::string& message : messages->second) observer_.node_blocked(node, message);
    if (shown[i] != nullptr) observer_.node_shows(node, *shown[i]);
    observer_.node_cached(node);
  }
  enter(lock);
  return true;
}

// A helper may start another one while they are joined.
void Execution::join_helpers() {
  for (;;) {
    std::vector<std::thread> helpers;
    {
      Lock lock(mutex_, std::defer_lock);
      enter(lock);
      helpers.swap(helpers_);
    }
    if (helpers.empty()) return;
    for (std::thread& helper : helpers) helper.join();
  }
}

}  // namespace heddle::engine
