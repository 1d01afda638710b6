#include "engine/memory/ledger.h"

#include <algorithm>
#include <chrono>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

constexpr std::int64_t kEndless = std::int64_t{1} << 62;
constexpr int kTries = 4;  // what is evicted for one thread, another one may take

std::int64_t clamped(std::uint64_t bytes) {
  return std::int64_t(std::min(bytes, std::uint64_t(kEndless)));
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Ledger::Ledger(std::string name, Limits limits, Poll poll, std::shared_ptr<Ledger> parent)
    : name_(std::move(name)),
      limits_(std::move(limits)),
      poll_(std::move(poll)),
      parent_(std::move(parent)) {}

std::uint64_t Ledger::budget(const State& state) const {
  std::uint64_t least = limits_.budget;
  for (const std::uint64_t cap : state.caps) least = std::min(least, cap);
  return least;
}

std::uint64_t Ledger::budget() const { return budget(*state_.lock()); }

std::int64_t Ledger::available_by_budget(const State& state) const {
  return clamped(budget(state)) - clamped(state.taken) - clamped(state.claimed);
}

std::int64_t Ledger::available_by_driver(const State& state) const {
  if (!state.is_polled) return kEndless;
  return clamped(state.driver_free) + clamped(state.taken_then) - clamped(state.taken) -
         clamped(limits_.headroom) - clamped(state.claimed);
}

std::uint64_t Ledger::available() {
  poll_all_when_due();
  return available_unasked();
}

std::uint64_t Ledger::available_unasked() const {
  std::int64_t least = kEndless;
  for (const Ledger* each = this; each != nullptr; each = each->parent())
    least = std::min(least, each->available(*each->state_.lock()));
  return std::uint64_t(std::max<std::int64_t>(0, least));
}

std::uint64_t Ledger::most() {
  std::int64_t least = kEndless;
  for (Ledger* each = this; each != nullptr; each = each->parent()) {
    each->poll_when_due();
    const auto state = each->state_.lock();
    least = std::min(least, clamped(each->budget(*state)));
    if (state->is_polled)
      least = std::min(least, clamped(state->driver_free) + clamped(state->taken_then) -
                                  clamped(each->limits_.headroom));
  }
  return std::uint64_t(std::max<std::int64_t>(0, least));
}

void Ledger::poll_after(double seconds) {
  if (!poll_) return;
  {
    const double now = limits_.now ? limits_.now() : system_seconds();
    const auto state = state_.lock();
    if (state->is_polled && now < state->polled_at + seconds) return;
    state->polled_at = now;  // so that one thread asks
  }
  poll_now();
}

void Ledger::poll_all_after(double seconds) {
  for (Ledger* each = this; each != nullptr; each = each->parent())
    each->poll_after(std::min(seconds, each->limits_.poll_seconds));
}

void Ledger::poll_now() {
  if (!poll_) return;
  const double now = limits_.now ? limits_.now() : system_seconds();
  const std::uint64_t before = state_.lock()->taken;
  std::uint64_t free = 0;
  try {
    free = poll_();
  } catch (const Error&) {
    return;  // a device that cannot be asked says so where it is given work
  }
  const auto state = state_.lock();
  state->is_polled = true;
  state->polled_at = now;
  state->driver_free = free;
  // What others of us took or gave back while the driver was asked may be in its answer or not: the
  // worse is taken for true.
  state->taken_then = std::min(before, state->taken);
  ++state->polls;
}

bool Ledger::add(std::uint64_t bytes, std::uint64_t of_claim, bool is_claim) {
  const std::uint64_t more = bytes - of_claim;
  Ledger* refusing = nullptr;
  for (Ledger* each = this; each != nullptr && refusing == nullptr; each = each->parent()) {
    const auto state = each->state_.lock();
    if (more > 0 && each->available(*state) < clamped(more)) {
      refusing = each;
      break;
    }
    (is_claim ? state->claimed : state->taken) += bytes;
    state->claimed -= of_claim;
  }
  if (refusing == nullptr) {
    if (!is_claim)
      for (Ledger* each = this; each != nullptr; each = each->parent()) {
        const auto state = each->state_.lock();
        state->peak = std::max(state->peak, state->taken);
      }
    return true;
  }
  for (Ledger* each = this; each != refusing; each = each->parent()) {
    const auto state = each->state_.lock();
    (is_claim ? state->claimed : state->taken) -= bytes;
    state->claimed += of_claim;
  }
  return false;
}

std::optional<TakenBytes> Ledger::try_take(std::uint64_t bytes, Reservation* from) {
  poll_all_when_due();
  return try_take_unasked(bytes, from);
}

std::optional<TakenBytes> Ledger::try_take_unasked(std::uint64_t bytes, Reservation* from) {
  const std::uint64_t of_claim =
      from == nullptr || from->ledger_ != this ? 0 : std::min(bytes, from->left_);
  if (!add(bytes, of_claim, false)) return std::nullopt;
  if (of_claim > 0) from->left_ -= of_claim;
  TakenBytes taken;
  taken.ledger_ = this;
  taken.bytes_ = bytes;
  return taken;
}

TakenBytes Ledger::take(std::uint64_t bytes, std::string_view what, Reservation* from) {
  if (auto taken = try_take(bytes, from)) return std::move(*taken);
  const std::uint64_t more =
      bytes - (from == nullptr || from->ledger_ != this ? 0 : std::min(bytes, from->left_));
  for (int i = 0; i < kTries; ++i) {
    make_room(more);
    if (auto taken = try_take(bytes, from)) return std::move(*taken);
  }
  throw out_of_memory(bytes, what);
}

void Ledger::give_back(std::uint64_t bytes) {
  for (Ledger* each = this; each != nullptr; each = each->parent())
    each->state_.lock()->taken -= bytes;
}

void Ledger::give_back_refused(std::uint64_t bytes) {
  for (Ledger* each = this; each != nullptr; each = each->parent()) {
    const auto state = each->state_.lock();
    state->taken -= bytes;
    state->taken_then -= std::min(bytes, state->taken_then);
  }
}

void Ledger::unclaim(std::uint64_t bytes) {
  for (Ledger* each = this; each != nullptr; each = each->parent())
    each->state_.lock()->claimed -= bytes;
}

std::optional<Reservation> Ledger::try_reserve(std::uint64_t bytes) {
  poll_all_when_due();
  if (!add(bytes, 0, true)) return std::nullopt;
  Reservation made;
  made.ledger_ = this;
  made.left_ = bytes;
  return made;
}

Reservation Ledger::reserve(std::uint64_t bytes, std::string_view what) {
  if (auto made = try_reserve(bytes)) return std::move(*made);
  for (int i = 0; i < kTries; ++i) {
    make_room(bytes);
    if (auto made = try_reserve(bytes)) return std::move(*made);
  }
  throw out_of_memory(bytes, what);
}

std::uint64_t Ledger::missing(std::uint64_t bytes) const {
  return std::uint64_t(std::max<std::int64_t>(0, clamped(bytes) - available(*state_.lock())));
}

// Others may take what was evicted before this thread does, so it goes round again as long as
// anything goes.
void Ledger::make_room(std::uint64_t bytes) {
  for (Ledger* each = this; each != nullptr; each = each->parent()) {
    const auto is_short = [&] { return each->missing(bytes) > 0; };
    const auto short_by_driver = [&] {
      return each->available_by_driver(*each->state_.lock()) < clamped(bytes);
    };
    if (short_by_driver()) each->poll_now();
    while (is_short() && each->evict_once(bytes) > 0) {
    }
    if (is_short() && short_by_driver()) each->poll_now();  // before memory is said to be out
  }
}

// What others take meanwhile is counted as not given back.
void Ledger::ask(const Evictor& evictor, std::uint64_t bytes) {
  const std::uint64_t before = state_.lock()->taken;
  evictor.evict(bytes);
  const auto state = state_.lock();
  if (state->taken >= before) return;
  LedgerReport::Evicted& evicted = state->evicted[std::size_t(evictor.priority)];
  ++evicted.times;
  evicted.bytes += before - state->taken;
}

std::uint64_t Ledger::evict_once(std::uint64_t bytes) {
  std::vector<Evictor> evictors;
  std::uint64_t before = 0;
  {
    const auto state = state_.lock();
    evictors = state->evictors;
    before = state->taken;
  }
  for (const Evictor& evictor : evictors) {
    const std::uint64_t lacks = missing(bytes);
    if (lacks == 0) break;
    ask(evictor, lacks);
  }
  const std::uint64_t after = state_.lock()->taken;
  return before - std::min(before, after);
}

bool Ledger::after_refusal(std::uint64_t bytes) {
  bool has_gone = false;
  for (Ledger* each = this; each != nullptr; each = each->parent()) {
    each->poll_now();
    // The driver knows better than its own figure: as much as was refused goes, whatever room there
    // seems to be.
    const std::uint64_t before = each->state_.lock()->taken;
    std::vector<Evictor> evictors = each->state_.lock()->evictors;
    const auto gone = [&] { return before - std::min(before, each->state_.lock()->taken); };
    for (const Evictor& evictor : evictors) {
      if (gone() >= bytes) break;
      each->ask(evictor, bytes - gone());
    }
    has_gone = has_gone || gone() > 0;
  }
  return has_gone;
}

void Ledger::on_shortage(EvictionOrder priority, const void* who, EvictCallback evict) {
  const auto state = state_.lock();
  const auto at = std::ranges::upper_bound(state->evictors, priority, {}, &Evictor::priority);
  state->evictors.insert(at, Evictor{priority, who, std::move(evict)});
}

void Ledger::remove_evict_callback(const void* who) {
  std::erase_if(state_.lock()->evictors,
                [&](const Evictor& evictor) { return evictor.who == who; });
}

Ledger::Cap::Cap(Ledger& ledger, std::uint64_t bytes) : ledger_(&ledger), bytes_(bytes) {
  ledger.state_.lock()->caps.push_back(bytes);
  try {
    ledger.make_room(0);  // what is held above it goes, where it can
  } catch (...) {
    const auto state = ledger.state_.lock();
    state->caps.erase(std::ranges::find(state->caps, bytes));
    throw;
  }
}

Ledger::Cap& Ledger::Cap::operator=(Cap&& other) noexcept {
  std::swap(ledger_, other.ledger_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Ledger::Cap::~Cap() {
  if (ledger_ == nullptr) return;
  const auto state = ledger_->state_.lock();
  state->caps.erase(std::ranges::find(state->caps, bytes_));
}

std::uint32_t Ledger::owner(std::string_view name) {
  const auto state = state_.lock();
  const auto found = std::ranges::find(state->owners, name);
  if (found != state->owners.end()) return std::uint32_t(found - state->owners.begin());
  state->owners.emplace_back(name);
  state->held.emplace_back();
  return std::uint32_t(state->owners.size() - 1);
}

void Ledger::tag(MemoryTag tag, std::uint64_t bytes) {
  state_.lock()->held[tag.owner][std::size_t(tag.kind)].bytes += bytes;
}
void Ledger::untag(MemoryTag tag, std::uint64_t bytes) {
  state_.lock()->held[tag.owner][std::size_t(tag.kind)].bytes -= bytes;
}
void Ledger::pin(MemoryTag tag, std::uint64_t bytes) {
  state_.lock()->held[tag.owner][std::size_t(tag.kind)].pinned += bytes;
}
void Ledger::unpin(MemoryTag tag, std::uint64_t bytes) {
  state_.lock()->held[tag.owner][std::size_t(tag.kind)].pinned -= bytes;
}

bool Ledger::is_pressed() {
  for (Ledger* each = this; each != nullptr; each = each->parent()) {
    each->poll_when_due();
    const auto state = each->state_.lock();
    if (each->available_by_driver(*state) < 0) return true;
  }
  return false;
}

LedgerReport Ledger::report() const {
  const auto state = state_.lock();
  LedgerReport report{name_,
                      budget(*state),
                      limits_.headroom,
                      state->taken,
                      state->peak,
                      state->claimed,
                      std::uint64_t(std::max<std::int64_t>(0, available(*state))),
                      std::nullopt,
                      {},
                      state->evicted};
  if (state->is_polled)
    report.driver_free = std::uint64_t(std::max<std::int64_t>(
        0, clamped(state->driver_free) + clamped(state->taken_then) - clamped(state->taken)));
  for (std::size_t owner = 0; owner < state->held.size(); ++owner)
    for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
      if (const Amount& amount = state->held[owner][kind]; amount.bytes > 0)
        report.held.push_back(
            {MemoryKind(kind), state->owners[owner], amount.bytes, amount.pinned});
  std::ranges::stable_sort(report.held, std::greater<>(), &LedgerReport::Line::bytes);
  return report;
}

std::string Ledger::figures() const {
  const LedgerReport now = report();
  std::vector<std::string> parts;
  std::uint64_t held = 0;
  for (const LedgerReport::Line& line : now.held) {
    held += line.bytes;
    parts.push_back(cat(memory_kind_name(line.kind), line.owner.empty() ? "" : " of ", line.owner,
                        " ", format_bytes(line.bytes),
                        line.pinned > 0 ? cat(" (pinned ", format_bytes(line.pinned), ")") : ""));
  }
  if (now.taken > held) parts.push_back(cat("free in pools ", format_bytes(now.taken - held)));
  if (now.reserved > 0) parts.push_back(cat("reserved ", format_bytes(now.reserved)));
  std::string text =
      now.budget == kNoLimit ? "no budget" : cat("budget ", format_bytes(now.budget));
  if (now.driver_free)
    text += cat(", ", format_bytes(*now.driver_free), " free by the driver less ",
                format_bytes(now.headroom), " for others");
  return cat(text, parts.empty() ? ": nothing of ours is there" : ": ", join(parts, ", "));
}

Error Ledger::out_of_memory(std::uint64_t bytes, std::string_view what,
                            std::string_view cause) const {
  const Ledger* refusing = this;
  for (const Ledger* each = this; each != nullptr; each = each->parent())
    if (each->missing(bytes) > 0) refusing = each;
  return Error(
      Code::out_of_memory,
      cat("out of memory on ", name_, ": wanted ", format_bytes(bytes), what.empty() ? "" : " for ",
          what, "; ", refusing == this ? "" : cat(refusing->name_, ": "), refusing->figures(),
          cause.empty() ? "" : cat(" (", cause, ")"),
          ". Raise its budget, end what else uses it, or place less there"));
}

}  // namespace heddle::engine
