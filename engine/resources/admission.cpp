#include "engine/resources/admission.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace heddle::engine {

namespace {

MemoryCapacity of(const std::vector<std::uint64_t>& capacities) {
  return [&capacities](std::uint32_t memory) { return capacities[memory]; };
}

}  // namespace

void Admission::set_memories(std::uint32_t devices, std::uint32_t memories,
                             MemoryCapacity capacity) {
  devices_ = devices;
  memories_ = memories;
  capacity_ = std::move(capacity);
}

std::vector<std::uint64_t> Admission::capacities() const {
  std::vector<std::uint64_t> all;
  for (std::uint32_t m = 0; m < memories_; ++m) all.push_back(capacity_(m));
  return all;
}

void Admission::wake(const Wakes& wakes) {
  for (const std::shared_ptr<Member>& member : wakes.woken) member->wake();
  for (const std::shared_ptr<Member>& member : wakes.preempted)
    if (member->preempt) member->preempt();
}

// True: there was nothing left to count, and nobody has come since.
bool Admission::count_all() {
  std::vector<std::pair<Id, std::shared_ptr<Member>>> uncounted;
  {
    const auto state = state_.lock();
    for (const auto& [id, member] : state->members)
      if (!member->is_counted) uncounted.emplace_back(id, member);
  }
  for (const auto& [id, member] : uncounted) {
    std::vector<MemoryNeed> needs;
    {
      const auto count = member->needs.lock();
      if (!*count) continue;  // another thread has done it, or the run is leaving
      const CountNeeds counts = std::exchange(*count, {});
      try {
        needs = counts();
      } catch (const std::exception&) {
        // Then it counts for nothing, and begins again alone where that was wrong.
      }
    }
    const auto state = state_.lock();
    if (member->is_counted) continue;
    state->queue.set_needs(id, std::move(needs));
    member->is_counted = true;
  }
  return uncounted.empty();
}

Admission::Ticket Admission::enter(Request request) {
  auto member = std::make_shared<Member>(std::move(request.needs));
  member->wake = std::move(request.wake);
  member->preempt = std::move(request.preempt);
  Ticket ticket(this, request.id);  // leaves again where anything throws
  {
    const auto state = state_.lock();
    const bool is_first = state->members.empty() && !request.counts_alone;
    state->members.emplace(request.id, member);
    if (is_first) {
      state->queue.add_admitted(request.id, {}, request.priority);
      return ticket;
    }
    // Until its needs are known it counts as paused: nobody knows whether it fits.
    state->queue.add(request.id, request.priority, {}, request.after);
    if (request.at_front) state->queue.move_to_front(request.id);
    state->queue.set_paused(request.id, true);
  }
  while (!count_all()) {
  }
  state_.lock()->queue.set_paused(request.id, false);
  admit();
  return ticket;
}

std::optional<Admission::NoRoom> Admission::keep(const Hash128& model,
                                                 const AdmissionQueue::KeptModel& kept,
                                                 const std::vector<std::uint32_t>& memories) {
  while (!count_all()) {
  }
  const std::vector<std::uint64_t> now = capacities();
  const auto state = state_.lock();
  for (const std::uint32_t memory : memories)
    if (!state->queue.may_keep(memory, model, kept, now[memory]))
      return NoRoom{memory, now[memory]};
  for (const std::uint32_t memory : memories) state->queue.keep(memory, model, kept);
  return std::nullopt;
}

void Admission::forget(const Hash128& model, const std::vector<std::uint32_t>& memories) {
  forget_but({}, model, memories);
}

void Admission::forget_but(const AdmissionQueue::KeptModel& rest, const Hash128& model,
                           const std::vector<std::uint32_t>& memories) {
  {
    const auto state = state_.lock();
    for (const std::uint32_t memory : memories) state->queue.keep(memory, model, rest);
  }
  admit();
}

void Admission::leave(Id id) noexcept {
  std::shared_ptr<Member> member;
  {
    const auto state = state_.lock();
    const auto found = state->members.find(id);
    if (found == state->members.end()) return;
    member = std::move(found->second);
    state->members.erase(found);
    state->queue.remove(id);
  }
  *member->needs.lock() = {};  // after whoever counts them now
  try {
    const std::vector<std::uint64_t> now = capacities();
    Wakes wakes;
    {
      const auto state = state_.lock();
      wakes = admit_now(*state, now);
      offer_idle_devices(*state, wakes);
    }
    wake(wakes);
  } catch (const std::bad_alloc&) {
    // Those that wait look again by themselves.
  }
}

void Admission::admit() {
  const std::vector<std::uint64_t> now = capacities();
  Wakes wakes;
  {
    const auto state = state_.lock();
    wakes = admit_now(*state, now);
  }
  wake(wakes);
}

Admission::Wakes Admission::admit_now(State& state, const std::vector<std::uint64_t>& capacities) {
  Wakes wakes;
  for (const Id id : state.queue.admit(of(capacities))) wakes.woken.push_back(state.members.at(id));
  for (const Id id : state.queue.preempt(of(capacities)))
    wakes.preempted.push_back(state.members.at(id));
  return wakes;
}

// To the first that waits, and has not refused it before.
void Admission::offer_idle_devices(State& state, Wakes& wakes) const {
  const std::vector<Id> waiting = state.queue.waiting();
  if (waiting.empty()) return;
  for (std::uint32_t device = 0; device < devices_; ++device) {
    if (state.queue.is_used(device)) continue;
    for (const Id id : waiting) {
      const std::shared_ptr<Member>& member = state.members.at(id);
      if (!member->is_counted || member->has_idle_device) continue;
      if (!member->offered.insert(device).second) continue;
      member->has_idle_device = true;
      wakes.woken.push_back(member);
      break;
    }
  }
}

bool Admission::Ticket::is_admitted() const {
  return admission_->state_.lock()->queue.is_admitted(id_);
}

bool Admission::Ticket::ran_beside_others() const {
  return admission_->state_.lock()->queue.ran_beside_others(id_);
}

void Admission::Ticket::set_paused(bool is_paused) const {
  admission_->state_.lock()->queue.set_paused(id_, is_paused);
  admission_->admit();
}

void Admission::Ticket::begin_anyway() const { admission_->state_.lock()->queue.admit_anyway(id_); }

std::optional<AdmissionQueue::Lack> Admission::Ticket::lack() const {
  const std::vector<std::uint64_t> now = admission_->capacities();
  return admission_->state_.lock()->queue.lack_of(id_, of(now));
}

bool Admission::Ticket::take_idle_device() const {
  return std::exchange(admission_->state_.lock()->members.at(id_)->has_idle_device, false);
}

void Admission::Ticket::give_back() const {
  std::shared_ptr<Member> member;
  {
    const auto state = admission_->state_.lock();
    member = state->members.at(id_);
    member->is_counted = true;  // as nothing, until there is something to count
    member->has_idle_device = false;
    member->offered.clear();
  }
  *member->needs.lock() = {};  // after whoever counts them now
  const std::vector<std::uint64_t> now = admission_->capacities();
  Wakes wakes;
  {
    const auto state = admission_->state_.lock();
    state->queue.give_back(id_);
    wakes = admission_->admit_now(*state, now);
    admission_->offer_idle_devices(*state, wakes);
  }
  wake(wakes);
}

bool Admission::Ticket::replace_needs(CountNeeds needs) const {
  std::vector<MemoryNeed> counted = needs();
  {
    const auto state = admission_->state_.lock();
    if (state->queue.is_admitted(id_)) return false;
    state->queue.set_needs(id_, std::move(counted));
  }
  admission_->admit();
  return true;
}

}  // namespace heddle::engine
