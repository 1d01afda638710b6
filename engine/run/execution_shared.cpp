// Nodes that other runs of the engine compute at the same time (single_flight.h): one of them does,
// and the others take what comes of it as if they had found it in the cache.
#include <algorithm>
#include <new>
#include <optional>
#include <string_view>

#include "engine/base/caught.h"
#include "engine/base/text.h"
#include "engine/run/execution.h"

namespace heddle::engine {

// The node is ready, and may be in flight, or have been made since the run began. Called without
// the lock, returns with it.
void Execution::run_shared(NodeIndex n, Worker& worker, Lock& lock) {
  const Hash128& key = key_of(n);
  // What asks for new nodes waits for them, and those are shared by themselves. What reads parts of
  // others waits for these, and until they are done nobody can count what they are read by.
  if (key == Hash128() || run_.node(n).type->has(HEDDLE_NODE_EXPANDS) || reads_unfinished(n, lock))
    return run_node(n, false, worker, lock);
  SingleFlight::Begun begun = environment_.flights.begin(key, *this, n, side_of(run_.place(n)));
  if (begun.waits)
    return guard_node(n, false, lock, [&] {
      enter(lock);
      waiting_.push_back(n);
    });
  std::optional<std::vector<Value>> made = made_by_others(n);
  if (!made) {
    const bool has_flight = bool(begun.flight);
    if (has_flight) keep_flight(n, std::move(begun.flight));
    return run_node(n, has_flight, worker, lock);
  }
  begun.flight.finish(*made, {});
  guard_node(n, false, lock, [&] { adopt(n, std::move(*made), worker, lock); });
}

// As the cache has it. Of two nodes of a run that are the same each is computed, as it would be if
// the run were alone.
std::optional<std::vector<Value>> Execution::made_by_others(NodeIndex n) const {
  const OutputCache::Reading cache = environment_.cache.read();
  const auto found = cache.find(key_of(n), control_.work().get(), member_.number());
  if (!found) return std::nullopt;
  return std::vector<Value>(found->begin(), found->end());
}

// What another run has made, as the cache holds it. Called without the lock, returns with it.
void Execution::adopt(NodeIndex n, std::vector<Value> made, Worker& worker, Lock& lock) {
  const Node& node = run_.node(n);
  const std::uint32_t count = node.type->output_count();
  const std::span<Value> outputs = std::span(made).first(count);
  const std::string ui = made.size() > count ? get_str(*made[count]) : std::string();
  for (const Value& value : outputs) use_.touch_holders(value);
  forecast_.made(n, outputs);
  forecast_.done(n);
  read_ahead_.done(n);
  for (std::size_t i = count + 1; i < made.size(); ++i)
    observer_.node_blocked(node, get_str(*made[i]));
  if (!ui.empty()) observer_.node_shows(node, ui);
  observer_.node_cached(node);
  worker.copies.clear();
  transfers_.finished(n, worker.copies);
  for (std::uint32_t o = 0; o < count; ++o) output({n, o}) = std::move(outputs[o]);
  enter(lock);
  if (!ui.empty()) result_.ui.emplace(n, ui);
  result_.timings.push_back({n, 0, true});
  schedule_.finish_outputs(n, [&](const Source& source) { drop_output(source, worker); });
  finish_inputs(n, worker);
}

void Execution::keep_flight(NodeIndex n, SingleFlight::Flight flight) {
  const Lock lock(mutex_);
  flights_.insert_or_assign(n, std::move(flight));
}

SingleFlight::Flight Execution::take_flight(NodeIndex n) noexcept {
  const Lock lock(mutex_);
  const auto at = flights_.find(n);
  return at == flights_.end() ? SingleFlight::Flight() : std::move(flights_.extract(at).mapped());
}

// The next three are called without the lock: those who hear of it have locks of their own.

// Who waits for it gets it when it is in the cache, so that nobody finds it in neither place.
void Execution::finish_flight(const Made& made, std::span<const Value> values) {
  const WorkMark mark = work_so_far();
  environment_.cache.add(key_of(made.node), values, made.seconds, mark);
  take_flight(made.node).finish(values, mark);
}

// In a catch block. Nobody goes on waiting; that this run was cancelled concerns nobody else.
void Execution::fail_flight(NodeIndex n) noexcept {
  SingleFlight::Flight flight = take_flight(n);
  try {
    const Node& node = run_.node(n);
    const std::string& device = device_of(n).state->device().name();
    Error failure = caught_error();
    if (failure.code() == Code::cancelled) return;
    const bool is_of_device = failure.code() == Code::out_of_memory ||
                              std::string_view(failure.what()).starts_with(cat(device, ":"));
    failure.at(cat(name_of(node), " of another run, which computed it for this one"));
    flight.fail(failure, is_of_device);
  } catch (const std::bad_alloc&) {
    // Then they look again.
  }
}

void Execution::drop_flight(NodeIndex n) noexcept { take_flight(n).drop(); }

void Execution::hear(std::list<SingleFlight::News>& one) noexcept {
  const Lock lock(mutex_);
  heard_.splice(heard_.end(), one);
  any_news_ = true;
  changed_.notify_all();
}

// Goes on with a node that another run was to compute. False: there is no news of any.
bool Execution::finish_waiting(Worker& worker, Lock& lock) {
  if (!any_news_) return false;
  const bool had_lock = lock.owns_lock();
  if (!had_lock) lock.lock();
  // There may be news before the thread that came to the node has put it there.
  const auto at = std::ranges::find_if(heard_, [this](const SingleFlight::News& one) {
    return std::ranges::find(waiting_, one.node) != waiting_.end();
  });
  const bool is_any = at != heard_.end();
  SingleFlight::News news;
  if (is_any) {
    news = std::move(*at);
    heard_.erase(at);
    waiting_.erase(std::ranges::find(waiting_, news.node));
  }
  any_news_ = !completions_.empty() || !heard_.empty();
  if (is_any && !news.outputs && !news.failure) schedule_.make_ready(news.node);
  if (!news.outputs && !news.failure) {
    if (!had_lock) lock.unlock();
    return is_any;
  }
  ++running_;
  lock.unlock();
  guard_node(news.node, false, lock, [&] {
    if (news.failure) throw for_another_thread(*news.failure);
    std::vector<Value> made = *news.outputs;
    news.outputs.reset();  // without the lock, as memory may take time to go
    adopt(news.node, std::move(made), worker, lock);
  });
  --running_;
  drop(worker, lock);
  return true;
}

}  // namespace heddle::engine
