// heddle_parts_service of a call: what it makes and what it reads in parts.
#include <algorithm>

#include "engine/run/node_call.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

bool NodeCall::is_taken_back() const {
  return std::ranges::any_of(arrivals_, [](const auto& one) { return one->is_stopped(); });
}

bool NodeCall::begin_output(std::uint32_t output, Tensor tensor) {
  const bool comes_in_rows =
      tensor && tensor->storage->place() == std::string_view("host") && is_contiguous(tensor->info);
  if (shared_.parts == nullptr || !may_begin_ || deferred() || output >= output_count_ ||
      !comes_in_rows)
    return false;
  const auto arrival = std::make_shared<Arrival>(std::move(tensor));
  if (!shared_.parts->begin_output({index_, output}, arrival)) return false;
  begun_.emplace_back(output, arrival);
  return true;
}

void NodeCall::made_rows(std::uint32_t output, std::int64_t rows) {
  for (const auto& [port, arrival] : begun_)
    if (port == output) arrival->made(rows);
}

void NodeCall::take_back_output(std::uint32_t output) {
  const auto is_it = [&](const auto& one) { return one.first == output; };
  if (std::erase_if(begun_, is_it) > 0) shared_.parts->take_back_output({index_, output});
}

void NodeCall::await_rows(const heddle_tensor& part, std::int64_t rows) {
  if (arrivals_.empty()) return;
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& arrival : arrivals_)
    if (arrival->has(part)) arrival->await(part, rows);
  waited_ += std::chrono::steady_clock::now() - begin;
}

void NodeCall::await_arrivals() {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& arrival : arrivals_) arrival->await_end();
  waited_ += std::chrono::steady_clock::now() - begin;
}

}  // namespace heddle::engine
