#include "engine/memory/weights.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace heddle::core {

heddle_tensor_info WeightSource::info() const {
  const TensorView& first = *parts.at(0).tensor;
  std::vector<std::int64_t> shape = first.shape;
  std::int64_t rows = 0;
  for (const Part& part : parts) {
    const TensorView& t = *part.tensor;
    if (t.shape.empty() || part.begin < 0 || part.end > t.shape[0] || part.begin > part.end)
      throw Error(Code::invalid_argument, cat(quote(t.name), " (", join(t.shape, ", "), ") has no rows ", part.begin, " to ", part.end));
    if (!std::equal(t.shape.begin() + 1, t.shape.end(), shape.begin() + 1, shape.end()))
      throw Error(Code::invalid_argument, cat(quote(first.name), " (", join(first.shape, ", "), ") and ", quote(t.name), " (", join(t.shape, ", "),
                                              ") cannot be joined: only their first sizes may differ"));
    rows += part.end - part.begin;
  }
  shape[0] = rows;
  if (!columns.empty()) {
    std::int64_t wide = 0;
    for (const Range& c : columns) {
      if (shape.size() < 2 || c.begin < 0 || c.end < c.begin || c.end > shape[1])
        throw Error(Code::invalid_argument, cat(quote(first.name), " (", join(first.shape, ", "), ") has no columns ", c.begin, " to ", c.end));
      wide += c.end - c.begin;
    }
    shape[1] = wide;
  }
  return make_info(heddle_dtype(first.dtype), shape);
}

namespace {

// The rows' bytes of some columns, side by side; shape[1] becomes their number.
std::vector<std::byte> columns_of(const std::byte* rows, std::vector<std::int64_t>& shape, std::uint64_t row_bytes, const std::vector<WeightSource::Range>& columns) {
  const std::uint64_t column_bytes = row_bytes / std::uint64_t(shape[1]);
  shape[1] = 0;
  for (const WeightSource::Range& c : columns) shape[1] += c.end - c.begin;
  std::vector<std::byte> bytes;
  bytes.reserve(std::uint64_t(shape[0]) * std::uint64_t(shape[1]) * column_bytes);
  for (std::int64_t row = 0; row < shape[0]; ++row)
    for (const WeightSource::Range& c : columns) {
      const std::byte* const begin = rows + std::uint64_t(row) * row_bytes + std::uint64_t(c.begin) * column_bytes;
      bytes.insert(bytes.end(), begin, begin + std::uint64_t(c.end - c.begin) * column_bytes);
    }
  return bytes;
}

}  // namespace

std::shared_ptr<const DeviceWeight> WeightStore::get(const WeightSource& source, Hash128 checkpoint, const WorkWatch& watch) {
  Hasher hasher;
  hasher.add(checkpoint).add(source.use);
  for (const WeightSource::Part& part : source.parts) hasher.add(std::string_view(part.tensor->name)).add(part.begin).add(part.end);
  for (const WeightSource::Range& c : source.columns) hasher.add(std::string_view("columns")).add(c.begin).add(c.end);
  const Hash128 key = hasher.finish();

  const auto state = entries_.lock();
  if (const auto found = state->entries.find(key); found != state->entries.end()) {
    found->second.last_use = ++state->clock;
    return found->second.weight;
  }
  if (state->unproven.empty()) state->failures_before = state_.device().failed_waits();
  auto weight = std::make_shared<DeviceWeight>();
  weight->form = form(source);
  evict(*state, weight->form.bytes);
  weight->memory = state_.allocate(weight->form.bytes);
  std::vector<heddle_view> parts;
  for (const WeightSource::Part& part : source.parts) {
    const TensorView& t = *part.tensor;
    std::vector<std::int64_t> shape = t.shape;
    shape[0] = part.end - part.begin;
    const std::uint64_t row_bytes = t.shape[0] == 0 ? 0 : t.data.size() / std::uint64_t(t.shape[0]);
    // Kernels only read here; the ABI's view has one kind of pointer.
    auto* data = const_cast<std::byte*>(t.data.data()) + std::uint64_t(part.begin) * row_bytes;
    if (!source.columns.empty()) {
      state->gathered.push_back(columns_of(data, shape, row_bytes, source.columns));
      data = state->gathered.back().data();
    }
    parts.push_back({make_info(heddle_dtype(t.dtype), shape), data});
    state->reading.push_back(t.file);
  }
  try {
    watched(watch, state_, weight->form.bytes, [&] {
      state_.with_stream([&](Stream& stream) { state_.device().make_weight(stream, source.use, weight->form, parts, weight->memory->data()); });
    });
  } catch (const Error&) {
    lose_unproven(*state);  // a device that takes no more work has perhaps dropped what it had taken
    throw;
  }
  state->bytes += weight->form.bytes;
  state->entries[key] = {weight, ++state->clock};
  state->unproven.emplace_back(key, weight);
  return weight;
}

void WeightStore::finish(std::span<const std::shared_ptr<const DeviceWeight>> wanted) {
  const auto state = entries_.lock();
  if (!state->reading.empty()) prove(*state);
  if (std::ranges::any_of(wanted, [](const auto& weight) { return weight != nullptr && weight->is_lost; }))
    throw Error(Code::io, cat(state_.device().name(), ": weights were lost when the device failed: ", state_.device().last_failure()));
}

void WeightStore::prove(State& state) const {
  try {
    state_.synchronize();
    if (!state.unproven.empty() && state_.device().failed_waits() != state.failures_before)
      throw Error(Code::io, cat(state_.device().name(), ": the device failed while weights were copied there: ", state_.device().last_failure()));
  } catch (const Error&) {
    lose_unproven(state);
    throw;  // what enqueued work reads stays: nobody knows whether it is done
  }
  // By file: whoever asked for a weight and failed may have let go of its checkpoint since, but not of the file.
  for (const auto& file : state.reading) file->mapping->advise(0, file->mapping->bytes().size(), Advice::dont_need);
  state.gathered.clear();
  state.reading.clear();
  state.unproven.clear();
}

void WeightStore::lose_unproven(State& state) {
  for (const auto& [key, unproven] : state.unproven) {
    const std::shared_ptr<DeviceWeight> weight = unproven.lock();
    if (weight == nullptr) continue;
    weight->is_lost = true;
    const auto at = state.entries.find(key);
    if (at == state.entries.end() || at->second.weight != weight) continue;
    state.bytes -= weight->form.bytes;
    state.entries.erase(at);
  }
  state.unproven.clear();
}

void WeightStore::drop_all() {
  const auto state = entries_.lock();
  lose_unproven(*state);
  state->entries.clear();
  state->bytes = 0;
}

std::uint64_t WeightStore::bytes() const { return entries_.lock()->bytes; }

void WeightStore::drop_unused() {
  const auto state = entries_.lock();
  evict(*state, limit_bytes_);
}

void WeightStore::evict(State& state, std::uint64_t wanted) const {
  while (state.bytes + wanted > limit_bytes_) {
    auto oldest = state.entries.end();
    for (auto e = state.entries.begin(); e != state.entries.end(); ++e)
      if (e->second.weight.use_count() == 1 && (oldest == state.entries.end() || e->second.last_use < oldest->second.last_use)) oldest = e;
    if (oldest == state.entries.end()) return;  // all in use: the pool will say whether there is room
    state.bytes -= oldest->second.weight->form.bytes;
    state.entries.erase(oldest);
  }
}

}  // namespace heddle::core
