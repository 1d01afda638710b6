#include "gemm.h"

namespace heddle::cpu {

const float* Right::panel(std::int64_t number, std::int64_t k0, std::int64_t k, float* room,
                          Scratch& scratch) const {
  const heddle_tensor_info& info = weight->info;
  if (info.layout == kMatrixBlocks) {
    const std::int64_t size = device::block_elements(info.dtype);
    auto* blocks = scratch.take<float>(static_cast<std::size_t>(k * kPanelColumns));
    vector->widen(info.dtype, stored(number, k0), k * kPanelColumns, blocks);
    for (std::int64_t done = 0; done < k; done += size) {
      const float* rows[kPanelColumns];
      for (std::int64_t r = 0; r < kPanelColumns; ++r)
        rows[r] = blocks + done * kPanelColumns + r * size;
      vector->pack_panel(rows, size, room + done * kPanelColumns);
    }
    return room;
  }
  if (info.layout != kPlainLayout) {
    const std::byte* from = stored(number, k0);
    if (info.dtype == HEDDLE_F32) return reinterpret_cast<const float*>(from);
    if (is_paired(info.layout))
      vector->widen_pairs(from, k, room);
    else
      vector->widen(info.dtype, from, k * kPanelColumns, room);
    if (info.layout == kMatrixScaled) vector->scale_columns(room, k, scales(number));
    return room;
  }
  // 32 rows of a plain matrix, turned. Rows past the end repeat the first one; their sums are never
  // written.
  const std::int64_t first = number * kPanelColumns;
  const float* rows[kPanelColumns];
  float* widened = info.dtype == HEDDLE_F32
                       ? nullptr
                       : scratch.take<float>(static_cast<std::size_t>(k * kPanelColumns));
  for (std::int64_t r = 0; r < kPanelColumns; ++r) {
    const std::int64_t row = first + r < info.shape[0] ? first + r : first;
    const std::byte* from = element(*weight, row * info.stride[0] + k0);
    rows[r] = reinterpret_cast<const float*>(from);
    if (widened == nullptr) continue;
    vector->widen(info.dtype, from, k, widened + r * k);
    rows[r] = widened + r * k;
  }
  vector->pack_panel(rows, k, room);
  return room;
}

Finish::Finish(const Call& call, const float* bias, heddle_activation activation,
               const heddle_view* residual)
    : vector_(call.device().vector()), bias_(bias), activation_(activation), out_(call.out()) {
  if (residual != nullptr) residual_.emplace(*residual);
}

void Finish::write(float* sums, std::int64_t step, std::int64_t row, std::int64_t rows,
                   std::int64_t column, std::int64_t columns, Scratch& scratch) const {
  const bool widens = residual_ && residual_->dtype() != HEDDLE_F32;
  const bool in_place = out_.dtype() == HEDDLE_F32;
  float* widened = widens ? scratch.take<float>(static_cast<std::size_t>(columns)) : nullptr;
  for (std::int64_t r = 0; r < rows; ++r) {
    // The first step that there is writes to the output where that is f32, the others go on there.
    const float* from = sums + r * step;
    std::byte* out = out_.at(row + r, column);
    float* to = in_place ? reinterpret_cast<float*>(out) : sums + r * step;
    if (bias_ != nullptr) {
      vector_.add(from, bias_ + column, to, columns);
      from = to;
    }
    if (activation_ != HEDDLE_ACT_NONE) {
      vector_.activate(activation_, from, to, columns);
      from = to;
    }
    if (residual_) {
      const std::byte* added = residual_->at(row + r, column);
      if (widens) vector_.widen(residual_->dtype(), added, columns, widened);
      vector_.add(from, widens ? widened : reinterpret_cast<const float*>(added), to, columns);
      from = to;
    }
    if (from != to || !in_place) vector_.narrow(out_.dtype(), from, columns, out);
  }
}

const float* load_bias(const Call& call, const heddle_view* bias, std::int64_t outputs) {
  if (bias == nullptr) return nullptr;
  const std::int64_t padded = panel_count(outputs) * kPanelColumns;
  auto* values = call.stream().call_scratch().take<float>(static_cast<std::size_t>(padded));
  std::fill(values + outputs, values + padded, 0.0f);
  call.device().vector().widen(bias->info.dtype, bias->data, outputs, values);
  return values;
}

Cut::Cut(std::int64_t rows, std::int64_t columns, Widening widening)
    : rows(rows), columns(columns) {
  // A tile's packed rows and its sums stay in a core's second cache. Each side costs a little,
  // packing on one and reading the weight on the other, so both are long, but an output gives
  // enough tiles for some threads.
  const std::int64_t most_rows = (widening == Widening::kSlow ? 16 : 8) * kBlockRows;
  constexpr std::int64_t kColumns = 16 * kPanelColumns, kFewestColumns = 4 * kPanelColumns;
  constexpr std::int64_t kVectorColumns = 2 * kPanelColumns, kWantedTiles = 8;
  down = std::max<std::int64_t>(1, (rows + most_rows - 1) / most_rows);
  const std::int64_t even = (rows + down - 1) / down;
  tile_rows = rows <= kFewRows ? kFewRows : (even + kBlockRows - 1) / kBlockRows * kBlockRows;
  down = (rows + tile_rows - 1) / tile_rows;
  const auto count = [&] { return (columns + tile_columns - 1) / tile_columns; };
  tile_columns = kColumns;
  while (down * count() < kWantedTiles && tile_columns > kFewestColumns) tile_columns /= 2;
  // Few rows are bound by reading the weight: narrow tiles share that among all threads.
  if (rows <= kBlockRows) tile_columns = kVectorColumns;
  across = count();
}

}  // namespace heddle::cpu
