#include "engine/run/execution.h"

#include <algorithm>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/text.h"

namespace heddle::engine {

Execution::Execution(const RunRequest& request, Environment& environment, Observer& observer,
                     RunControl& control)
    : request_(request),
      graph_(*request.graph),
      plan_(*request.plan),
      run_(graph_, plan_),
      environment_(environment),
      observer_(observer, [this] { environment_.flights.drop(*this); }),
      control_(control),
      call_shared_{environment,
                   observer_,
                   control,
                   [this](std::list<Completion>& one) { on_complete(one); },
                   request.timeline,
                   &use_,
                   nullptr,
                   &models_,
                   [this](std::string_view id) { return look_up(id); },
                   [this] { environment_.flights.drop(*this); },
                   request.saved == nullptr ? nullptr : this,
                   this},
      transfers_(run_, plan_, schedule_, environment, request.timeline, request.steps),
      use_(environment),
      forecast_(environment.forecast, graph_, plan_.order.empty() ? graph_.order : plan_.order),
      read_ahead_(graph_, plan_, request.fetch, environment, request.timeline),
      member_(environment.flights),
      schedule_(run_, static_cast<std::uint32_t>(environment.devices.size())),
      released_(request.finished != nullptr && request.steps == nullptr &&
                        environment.devices.size() > 1
                    ? ReleasedValues::most_bytes(environment.devices)
                    : 0) {
  result_.timings.reserve(graph_.nodes.size());
  control_.wake_by([this] {
    const Lock lock(mutex_);
    changed_.notify_all();
  });
}

RunResult Execution::run() {
  find_keys();
  if (request_.anew) forget_kept(graph_.order);
  bring_disk_cached();
  bring_finished();
  for (const Source& source : request_.fetch) schedule_.hold(source);
  {
    const OutputCache::Reading cache = environment_.cache.read();
    const auto is_cached = [&](NodeIndex n) { return take_from_cache(n, cache); };
    hold_uncacheable();
    for (const NodeIndex sink : graph_.sinks) schedule_.activate(sink, is_cached);
    for (const Source& source : request_.fetch) schedule_.activate(source.node, is_cached);
  }
  work();
  join_helpers();
  if (!waiting_.empty()) environment_.flights.withdraw(*this);
  if (schedule_.unfinished() == 0) leaves_ = false;
  if (!leaves_) check_cycles();
  if (failure_ == nullptr && !leaves_) show_cached_on_the_way();
  for (std::uint32_t d = 0; d < environment_.devices.size(); ++d)
    if (transfers_.used(d) && !use_.has(d)) use_.touch(d);
  if (failure_ == nullptr) wait_for_devices();
  if (failure_ == nullptr && !control_.work()->finish())
    failure_ = std::make_exception_ptr(Error(Code::cancelled, "cancelled"));
  if (failure_ == nullptr) check_models();
  if (failure_ != nullptr) {
    abandon_deferred();
    for (const RunDevice& device : environment_.devices) device.state->settle();
    const std::vector<bool> lost_devices = use_.failed();
    leave_to_next_try(lost_devices);
    const bool is_any_lost = std::ranges::find(lost_devices, true) != lost_devices.end();
    forget_outputs(is_any_lost ? all_nodes() : lost_nodes());
    control_.work()->forget();
    check_files();
    std::rethrow_exception(failure_);
  }
  check_files();
  use_.succeeded();
  result_.is_suspended = leaves_;
  if (leaves_) {
    const std::lock_guard saving(saving_);
    save_outputs();
  }
  if (!leaves_)
    for (const Source& source : request_.fetch) result_.fetched[source] = output(source);
  std::ranges::stable_sort(files_, {}, &Written::rank);
  for (Written& file : files_) result_.files.push_back(std::move(file.path));
  result_.transferred_bytes = transfers_.bytes();
  for (NodeIndex n = run_.planned_count(); n < run_.size(); ++n) {
    const Node& node = run_.node(n);
    result_.added.push_back({node.id, std::string(node.type->name()), node.origin});
  }
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

// A thread's share of the run; it comes back when the run is over or has to stop.
void Execution::work() noexcept {
  Lock lock(mutex_, std::defer_lock);
  try {
    Worker worker(environment_.cache);
    enter(lock);
    while (!is_over() && !has_to_stop()) {
      if (!held_.empty() && finish_held(worker, lock)) [[unlikely]]
        continue;
      if (!cached_.empty() || any_news_) [[unlikely]]
        if (report_cached(lock) || finish_deferred(worker, lock) || finish_waiting(worker, lock))
          continue;
      if (has_to_leave()) [[unlikely]] {
        if (deferred_.empty()) break;
        wait_for_change(lock);  // what has begun ends first
      } else if (control_.paused()) [[unlikely]] {
        leave(lock);
        environment_.flights.drop(*this);  // nobody finishes deferred nodes meanwhile
        worker.adding.flush();
        control_.wait_while_paused();
        enter(lock);
        worker.now = {};
      } else if (const NodeIndex n = schedule_.take(); n != Schedule::kNone) {
        ++running_;
        const bool is_brief = run_.node(n).type->is_brief();
        if (!is_brief && (schedule_.can_take() || has_to_listen())) call_for_help(lock);
        const bool has_expanded = !expanding_.empty() && expanding_.contains(n);
        leave(lock);
        const bool may_share = !is_brief || member_.has_others();
        if (may_share) worker.adding.flush();  // other runs may want it meanwhile
        if (has_expanded) [[unlikely]]
          finish_expanded(n, worker, lock);  // enters again
        else if (may_share) [[unlikely]]
          run_shared(n, worker, lock);  // enters again
        else
          run_node(n, false, worker, lock);  // enters again
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
  return running_ == 0 && deferred_.empty() && held_.empty() && waiting_.empty() &&
         schedule_.is_idle() && cached_.empty();
}

void Execution::note_cancelled() {
  failure_ = std::make_exception_ptr(Error(Code::cancelled, "cancelled"));
  stop_arrivals();
}

void Execution::fail(std::exception_ptr failure) {
  if (failure_ == nullptr) failure_ = std::move(failure);
  control_.stop();  // nodes that are still running see it
  stop_arrivals();
  if (is_shared_) changed_.notify_all();
}

// A node is ready on a queue that nobody works on, or another run may have news any time.
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
  // There is no other thread: only a deferred node or another run can change anything.
  if (!lock.owns_lock()) {
    Lock waiting(mutex_);
    return changed_.wait(waiting, [this] {
      return any_news_ || control_.cancelled() || (control_.releases() && !leaves_);
    });
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
  if (!observer_.listens()) {
    cached_.clear();
    blocked_.clear();
    return true;
  }
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
    const Node& node = run_.node(cached[i]);
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
