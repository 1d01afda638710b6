#include "engine/run/released_values.h"

#include <algorithm>

namespace heddle::engine {

namespace {

std::uint64_t tensor_bytes(const Value& value) {
  std::uint64_t bytes = 0;
  const heddle_kind kind = kind_of(*value);
  if (kind == HEDDLE_KIND_TENSOR || kind == HEDDLE_KIND_LIST || kind == HEDDLE_KIND_RECORD)
    for_each_tensor(*value, [&](const Tensor& tensor) { bytes += tensor->storage->bytes(); });
  return bytes;
}

}  // namespace

std::uint64_t ReleasedValues::most_bytes(std::span<const RunDevice> devices) {
  constexpr std::uint64_t kMostBytes = 64ull << 20, kPart = 64;
  std::uint64_t least = kMostBytes * kPart;
  for (const RunDevice& device : devices) {
    least = std::min(least, device.state->ledger().budget());
    if (const std::uint64_t total = device.state->device().opening_info().memory_total; total > 0)
      least = std::min(least, total);
  }
  return least / kPart;
}

void ReleasedValues::add(const Source& source, Value value, std::vector<Value>& dropped) {
  if (!value) return;
  const std::uint64_t bytes = tensor_bytes(value);
  if (bytes > most_bytes_) return dropped.push_back(std::move(value));
  while (!kept_.empty() && (bytes_ + bytes > most_bytes_ || kept_.size() >= kMost)) {
    bytes_ -= kept_.front().bytes;
    dropped.push_back(std::move(kept_.front().value));
    kept_.pop_front();
  }
  kept_.push_back({source, std::move(value), bytes});
  bytes_ += bytes;
}

Value ReleasedValues::find(const Source& source) const {
  const auto found = std::ranges::find(kept_, source, &Kept::source);
  return found == kept_.end() ? Value() : found->value;
}

}  // namespace heddle::engine
