#include "engine/resources/merged_pages.h"

#include <map>
#include <optional>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::engine {

namespace {

constexpr MemoryTag kTag{MemoryKind::staging, 0};

}  // namespace

struct MergedPages::State {
  explicit State(std::shared_ptr<Ledger> host) : ledger(std::move(host)) {}

  struct Merged {
    TakenBytes taken;  // goes back after the weight
    std::shared_ptr<const HostWeight> weight;
  };
  struct Stored {
    std::map<Hash128, Merged> weights;
    std::uint64_t merges = 0;
  };
  const std::shared_ptr<Ledger> ledger;
  Guarded<Stored> stored;

  // What enqueued copies read stays: its memory would not be free.
  void evict(std::uint64_t missing) {
    std::vector<Merged> gone;  // after the lock
    std::uint64_t bytes = 0;
    const auto state = stored.lock();
    for (auto at = state->weights.begin(); at != state->weights.end() && bytes < missing;) {
      if (at->second.weight.use_count() > 1) {
        ++at;
        continue;
      }
      bytes += at->second.taken.bytes();
      gone.push_back(std::move(at->second));
      at = state->weights.erase(at);
    }
  }
};

MergedPages::MergedPages(std::shared_ptr<Ledger> host)
    : state_(std::make_shared<State>(std::move(host))) {
  if (state_->ledger != nullptr)
    state_->ledger->on_shortage(EvictionOrder::merged_weights, state_.get(),
                                [state = std::weak_ptr(state_)](std::uint64_t missing) {
                                  if (const auto here = state.lock()) here->evict(missing);
                                });
}

MergedPages::~MergedPages() {
  if (state_->ledger != nullptr) state_->ledger->remove_evict_callback(state_.get());
  decltype(State::Stored::weights) gone;
  gone.swap(state_->stored.lock()->weights);
}

namespace {

// Whoever holds it holds the kept one.
HostWeight shared(const std::shared_ptr<const HostWeight>& stored) {
  HostWeight weight = *stored;
  weight.keep = {stored};
  return weight;
}

}  // namespace

HostWeight MergedPages::get(const Hash128& key, const std::function<HostWeight()>& make) {
  {
    const auto state = state_->stored.lock();
    if (const auto found = state->weights.find(key); found != state->weights.end())
      return shared(found->second.weight);
  }
  HostWeight made = make();
  if (made.made_bytes == 0) return made;
  std::uint64_t bytes = 0;  // all of it: of what lies in a file only a lease is held, which ends
  for (const heddle_view& part : made.parts) bytes += dense_bytes(part.info);
  std::optional<TakenBytes> taken = TakenBytes();
  if (state_->ledger != nullptr) taken = state_->ledger->try_take(bytes);
  if (taken) {
    taken->tag(kTag);
    detach(made);
  }
  const auto state = state_->stored.lock();
  ++state->merges;
  if (!taken) return made;
  // Where another thread was as fast, its own stays, and what this one has taken goes back.
  const auto at = state->weights.find(key);
  if (at != state->weights.end()) return shared(at->second.weight);
  auto weight = std::make_shared<const HostWeight>(std::move(made));
  return shared(state->weights.try_emplace(key, State::Merged{std::move(*taken), std::move(weight)})
                    .first->second.weight);
}

std::uint64_t MergedPages::merges() const { return state_->stored.lock()->merges; }

}  // namespace heddle::engine
