#include "engine/resources/merged_pages.h"

#include <map>
#include <vector>

#include "engine/base/guarded.h"

namespace heddle::core {

namespace {

constexpr Holder kHolder{Held::staging, 0};

}  // namespace

struct MergedPages::State {
  explicit State(std::shared_ptr<Ledger> host) : ledger(std::move(host)) {}

  const std::shared_ptr<Ledger> ledger;
  struct Kept {
    std::map<Hash128, std::shared_ptr<const HostWeight>> weights;
    std::uint64_t merges = 0;
  };
  Guarded<Kept> kept;

  void give_back(std::uint64_t bytes) const {
    if (ledger == nullptr || bytes == 0) return;
    ledger->let_go(kHolder, bytes);
    ledger->give_back(bytes);
  }

  // What enqueued copies read stays: its memory would not be free.
  void let_go(std::uint64_t missing) {
    std::vector<std::shared_ptr<const HostWeight>> gone;
    std::uint64_t bytes = 0;
    {
      const auto state = kept.lock();
      for (auto at = state->weights.begin(); at != state->weights.end() && bytes < missing;) {
        if (at->second.use_count() > 1) {
          ++at;
          continue;
        }
        bytes += at->second->made_bytes;
        gone.push_back(std::move(at->second));
        at = state->weights.erase(at);
      }
    }
    gone.clear();
    give_back(bytes);
  }
};

MergedPages::MergedPages(std::shared_ptr<Ledger> host)
    : state_(std::make_shared<State>(std::move(host))) {
  if (state_->ledger != nullptr)
    state_->ledger->on_shortage(EvictionOrder::merged_weights, state_.get(),
                                [state = std::weak_ptr(state_)](std::uint64_t missing) {
                                  if (const auto here = state.lock()) here->let_go(missing);
                                });
}

MergedPages::~MergedPages() {
  if (state_->ledger != nullptr) state_->ledger->forget_shed(state_.get());
  decltype(State::Kept::weights) gone;
  gone.swap(state_->kept.lock()->weights);
  std::uint64_t bytes = 0;
  for (const auto& [key, weight] : gone) bytes += weight->made_bytes;
  gone.clear();
  state_->give_back(bytes);
}

namespace {

// Whoever holds it holds the kept one.
HostWeight shared(const std::shared_ptr<const HostWeight>& kept) {
  HostWeight weight = *kept;
  weight.keep = {kept};
  return weight;
}

}  // namespace

HostWeight MergedPages::get(const Hash128& key, const std::function<HostWeight()>& make) {
  {
    const auto state = state_->kept.lock();
    if (const auto found = state->weights.find(key); found != state->weights.end())
      return shared(found->second);
  }
  HostWeight made = make();
  if (made.made_bytes == 0) return made;
  std::uint64_t bytes = 0;  // all of it: of what lies in a file only a lease is held, which ends
  for (const heddle_view& part : made.parts) bytes += dense_bytes(part.info);
  const bool has_room = state_->ledger == nullptr || state_->ledger->try_take(bytes);
  if (has_room && state_->ledger != nullptr) state_->ledger->hold(kHolder, bytes);
  if (has_room) try {
      detach(made);
    } catch (...) {
      state_->give_back(bytes);
      throw;
    }
  const auto state = state_->kept.lock();
  ++state->merges;
  if (!has_room) return made;
  const auto [at, is_new] =
      state->weights.try_emplace(key, std::make_shared<const HostWeight>(std::move(made)));
  if (!is_new) state_->give_back(bytes);  // another thread was as fast
  return shared(at->second);
}

std::uint64_t MergedPages::merges() const { return state_->kept.lock()->merges; }

}  // namespace heddle::core
