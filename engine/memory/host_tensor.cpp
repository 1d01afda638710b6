#include "engine/memory/host_tensor.h"

#include <utility>

#include "engine/base/text.h"

namespace heddle::engine {

namespace {

// For less than this nobody asks the system what is free: there are many of them, and the next
// large one asks.
constexpr std::uint64_t kSmall = 64 << 10;

std::optional<TakenBytes> take_if_there(Ledger& ledger, std::uint64_t bytes, Reservation* from) {
  if (bytes <= kSmall)
    if (auto taken = ledger.try_take_unasked(bytes, from)) return taken;
  return ledger.try_take(bytes, from);
}

}  // namespace

HostTensorMemory::HostTensorMemory(TakenBytes taken, std::shared_ptr<Ledger> ledger)
    : ledger_(std::move(ledger)), taken_(std::move(taken)), piece_(allocate_host(taken_.bytes())) {
  taken_.tag(kTag);
}

HostTensorMemory::~HostTensorMemory() { free_host(piece_); }

Tensor make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger,
                        Reservation* from) {
  if (ledger == nullptr) return make_host_tensor(info);
  const std::uint64_t bytes = dense_bytes(info);
  auto taken = take_if_there(*ledger, bytes, from);
  if (!taken) taken = ledger->take(bytes, describe(info), from);
  return make_tensor(info, std::make_shared<HostTensorMemory>(std::move(*taken), ledger));
}

std::shared_ptr<void> count_host_bytes(std::uint64_t bytes, std::string_view what,
                                       const std::shared_ptr<Ledger>& ledger, Reservation* from) {
  struct Counted {
    std::shared_ptr<Ledger> ledger;  // outlives what was taken of it
    TakenBytes taken;
  };
  if (ledger == nullptr) return nullptr;
  auto taken = take_if_there(*ledger, bytes, from);
  if (!taken) taken = ledger->take(bytes, what, from);
  taken->tag({MemoryKind::values, 0});
  return std::make_shared<Counted>(Counted{ledger, std::move(*taken)});
}

Tensor try_make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger) {
  if (ledger == nullptr) return make_host_tensor(info);
  auto taken = take_if_there(*ledger, dense_bytes(info), nullptr);
  if (!taken) return {};
  return make_tensor(info, std::make_shared<HostTensorMemory>(std::move(*taken), ledger));
}

}  // namespace heddle::engine
