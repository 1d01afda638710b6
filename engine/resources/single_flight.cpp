#include "engine/resources/single_flight.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/base/caught.h"

namespace heddle::engine {

SingleFlight::Flight::Flight(std::unique_ptr<State> state) : state_(std::move(state)) {}

SingleFlight::Begun SingleFlight::begin(const Hash128& key, Run& run, NodeIndex node,
                                        std::uint32_t place) {
  try {
    auto state = std::make_unique<State>(State{*this, key, &run, place});
    const auto table = table_of(key).lock();
    const auto [at, is_new] = table->try_emplace(key, state.get());
    if (is_new) return {Flight(std::move(state)), false};
    State& other = *at->second;
    if (other.run == &run) return {};
    Waiting waiting{&run, place, std::list<News>(1)};
    waiting.news.front().node = node;
    other.waiting.push_back(std::move(waiting));
    return {{}, true};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

// `tell` says of each who waits what the news are. The flight is out of the table by then, so that
// whoever looks again finds none, or that of another.
template <class Tell>
void SingleFlight::close(Table& table, State& state, Tell&& tell) noexcept {
  if (!state.is_open) return;
  state.is_open = false;
  table.erase(state.key);
  for (Waiting& waiting : state.waiting) {
    tell(waiting, waiting.news.front());
    waiting.run->hear(waiting.news);
  }
  state.waiting.clear();
}

void SingleFlight::Flight::finish(std::span<const Value> outputs, const WorkMark& by) noexcept {
  if (state_ == nullptr) return;
  {
    const auto table = state_->flights.table_of(state_->key).lock();
    std::shared_ptr<const std::vector<Value>> shared;
    try {
      if (!state_->waiting.empty() && (by.work == nullptr || by.work->hold(by.mark)))
        shared = std::make_shared<std::vector<Value>>(outputs.begin(), outputs.end());
    } catch (const std::bad_alloc&) {
      // Then they look again, and find it in the cache, or make it once more.
    }
    close(*table, *state_, [&](const Waiting&, News& news) { news.outputs = shared; });
  }
  state_.reset();
}

void SingleFlight::Flight::fail(const Error& failure, bool is_of_device) noexcept {
  if (state_ == nullptr) return;
  {
    const auto table = state_->flights.table_of(state_->key).lock();
    std::shared_ptr<const Error> shared;
    try {
      if (!state_->waiting.empty()) shared = std::make_shared<Error>(for_another_thread(failure));
    } catch (const std::bad_alloc&) {
      // Then they look again, and fail by themselves.
    }
    close(*table, *state_, [&](const Waiting& waiting, News& news) {
      if (!is_of_device || waiting.place == state_->place) news.failure = shared;
    });
  }
  state_.reset();
}

void SingleFlight::Flight::end() noexcept {
  {
    const auto table = state_->flights.table_of(state_->key).lock();
    close(*table, *state_, [](const Waiting&, News&) {});
  }
  state_.reset();
}

void SingleFlight::drop(const Run& run) noexcept {
  for (Guarded<Table>& part : tables_) {
    const auto table = part.lock();
    const auto is_of_run = [&](const auto& entry) { return entry.second->run == &run; };
    for (auto at = std::ranges::find_if(*table, is_of_run); at != table->end();
         at = std::ranges::find_if(*table, is_of_run))
      close(*table, *at->second, [](const Waiting&, News&) {});
  }
}

std::size_t SingleFlight::waiting() const {
  std::size_t count = 0;
  for (const Guarded<Table>& part : tables_)
    for (const auto table = part.lock(); const auto& [key, state] : *table)
      count += state->waiting.size();
  return count;
}

void SingleFlight::withdraw(const Run& run) noexcept {
  for (Guarded<Table>& part : tables_) {
    const auto table = part.lock();
    for (const auto& [key, state] : *table)
      std::erase_if(state->waiting, [&](const Waiting& waiting) { return waiting.run == &run; });
  }
}

}  // namespace heddle::engine
