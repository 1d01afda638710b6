#include "engine/memory/host_tensor.h"

#include <utility>

#include "engine/base/text.h"

namespace heddle::core {

namespace {

// For less than this nobody asks the system what is free: there are many of them, and the next
// large one asks.
constexpr std::uint64_t kSmall = 64 << 10;

bool take_if_there(Ledger& ledger, std::uint64_t bytes, Reservation* from) {
  if (bytes <= kSmall && ledger.try_take_unasked(bytes, from)) return true;
  return ledger.try_take(bytes, from);
}

// REQUIRES: `bytes` are taken.
Tensor make_taken(const heddle_tensor_info& info, std::uint64_t bytes,
                  const std::shared_ptr<Ledger>& ledger) {
  std::shared_ptr<HostTensorMemory> memory;
  try {
    memory = std::make_shared<HostTensorMemory>(bytes, ledger);
  } catch (...) {
    ledger->give_back(bytes);
    throw;
  }
  return make_tensor(info, std::move(memory));
}

}  // namespace

HostTensorMemory::HostTensorMemory(std::uint64_t bytes, std::shared_ptr<Ledger> ledger)
    : bytes_(bytes), ledger_(std::move(ledger)), piece_(allocate_host(bytes)) {
  ledger_->hold(kHolder, bytes_);
}

HostTensorMemory::~HostTensorMemory() {
  free_host(piece_);
  ledger_->give_back(bytes_, kHolder);
}

Tensor make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger,
                        Reservation* from) {
  if (ledger == nullptr) return make_host_tensor(info);
  const std::uint64_t bytes = dense_bytes(info);
  if (!take_if_there(*ledger, bytes, from)) ledger->take(bytes, describe(info), from);
  return make_taken(info, bytes, ledger);
}

Tensor try_make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger) {
  if (ledger == nullptr) return make_host_tensor(info);
  const std::uint64_t bytes = dense_bytes(info);
  if (!take_if_there(*ledger, bytes, nullptr)) return {};
  return make_taken(info, bytes, ledger);
}

}  // namespace heddle::core
