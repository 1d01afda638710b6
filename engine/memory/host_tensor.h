// Tensors in host memory that count in a ledger: as long as their storage lives, whoever shares it
// and on whatever thread it goes. Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "engine/memory/ledger.h"
#include "engine/tensor/host_memory.h"
#include "engine/tensor/tensor.h"

namespace heddle::engine {

class HostTensorMemory final : public Storage {
 public:
  // Of the bytes that were taken from the ledger.
  HostTensorMemory(TakenBytes taken, std::shared_ptr<Ledger> ledger);
  ~HostTensorMemory() override;
  HostTensorMemory(const HostTensorMemory&) = delete;
  std::byte* data() const override { return static_cast<std::byte*>(piece_.data); }
  std::uint64_t bytes() const override { return taken_.bytes(); }
  const char* place() const override { return "host"; }

 private:
  static constexpr MemoryTag kTag{MemoryKind::values, 0};
  const std::shared_ptr<Ledger> ledger_;
  TakenBytes taken_;
  const HostPiece piece_;
};

// As make_host_tensor() of one argument, in this ledger; nullptr: in none. Takes of `from` first,
// lets others go where it has to, so with no lock held that they might take. Throws out_of_memory
// with the ledger.
Tensor make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger,
                        Reservation* from = nullptr);
// The same for memory that others allocate: it counts as long as the result lives. nullptr where
// there is no ledger.
std::shared_ptr<void> count_host_bytes(std::uint64_t bytes, std::string_view what,
                                       const std::shared_ptr<Ledger>& ledger,
                                       Reservation* from = nullptr);
// The same where there is room; nothing is evicted for it. Empty: there is none.
Tensor try_make_host_tensor(const heddle_tensor_info& info, const std::shared_ptr<Ledger>& ledger);

}  // namespace heddle::engine
