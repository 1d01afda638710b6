#include "host_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <stdexcept>

#include "heddle/device.hpp"

namespace heddle::conformance {

namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr auto kPoison = std::byte{0xff};

template <class T>
double read_as(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

template <class T>
void write_as(double value, std::byte* to) {
  const T stored = static_cast<T>(value);
  std::memcpy(to, &stored, sizeof stored);
}

// Small floats by their definition, on purpose in another way than the plugins do it.
struct Form {
  int exponent_bits, mantissa_bits;
  bool infinity;
};

Form form_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_F16:
      return {5, 10, true};
    case HEDDLE_BF16:
      return {8, 7, true};
    case HEDDLE_F8_E4M3:
      return {4, 3, false};
    default:
      return {5, 2, true};
  }
}

double decode(Form form, unsigned bits) {
  const unsigned m = bits & ((1u << form.mantissa_bits) - 1);
  const unsigned top = (1u << form.exponent_bits) - 1;
  const unsigned e = (bits >> form.mantissa_bits) & top;
  const double sign = bits >> (form.mantissa_bits + form.exponent_bits) ? -1 : 1;
  const double fraction = m / static_cast<double>(1u << form.mantissa_bits);
  const int bias = (1 << (form.exponent_bits - 1)) - 1;
  if (e == top && form.infinity) return sign * (m == 0 ? INFINITY : NAN);
  if (e == top && m == (1u << form.mantissa_bits) - 1) return NAN;
  return sign * (e == 0 ? std::ldexp(fraction, 1 - bias)
                        : std::ldexp(1 + fraction, static_cast<int>(e) - bias));
}

// The magnitudes of a type, which are ordered like their bits, without infinity and NaN.
const std::vector<double>& magnitudes(heddle_dtype dtype) {
  static std::map<heddle_dtype, std::vector<double>> tables;
  std::vector<double>& table = tables[dtype];
  const Form form = form_of(dtype);
  while (table.empty() || table.size() < 1u << (form.exponent_bits + form.mantissa_bits)) {
    const double next = decode(form, static_cast<unsigned>(table.size()));
    if (!std::isfinite(next)) break;
    table.push_back(next);
  }
  return table;
}

// The nearest one; of two equally near ones the even one.
unsigned encode(heddle_dtype dtype, double value) {
  const Form form = form_of(dtype);
  const std::vector<double>& table = magnitudes(dtype);
  const unsigned sign = std::signbit(value) ? 1u << (form.exponent_bits + form.mantissa_bits) : 0;
  const double magnitude = std::fabs(value);
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude);
  const auto high = static_cast<unsigned>(above - table.begin());
  if (above == table.end()) return sign | (high - 1);  // test inputs are never too large
  if (*above == magnitude) return sign | high;
  const double down = magnitude - table[high - 1], up = *above - magnitude;
  return sign | (down < up || (down == up && high % 2 == 1) ? high - 1 : high);
}

bool is_small_float(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16 || dtype == HEDDLE_F8_E4M3 ||
         dtype == HEDDLE_F8_E5M2;
}

}  // namespace

HostTensor::HostTensor(heddle_dtype dtype, Shape shape) {
  info_ = device::row_major(dtype, shape.data(), static_cast<std::uint32_t>(shape.size()));
  allocate(device::element_count(info_));
}

HostTensor HostTensor::slice(heddle_dtype dtype, Shape shape, std::int64_t margin) {
  Shape larger = shape;
  larger.back() += 2 * margin;
  HostTensor tensor(dtype, larger);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) tensor.info_.shape[axis] = shape[axis];
  tensor.origin_ += static_cast<std::size_t>(device::bytes_of(dtype, margin));
  return tensor;
}

HostTensor HostTensor::permuted(heddle_dtype dtype, Shape shape, std::vector<int> order) {
  Shape stored(shape.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    stored[static_cast<std::size_t>(order[axis])] = shape[axis];
  HostTensor tensor(dtype, stored);
  const heddle_tensor_info from = tensor.info_;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    tensor.info_.shape[axis] = shape[axis];
    tensor.info_.stride[axis] = from.stride[order[axis]];
  }
  return tensor;
}

void HostTensor::allocate(std::int64_t elements) {
  memory_.assign(
      static_cast<std::size_t>(device::bytes_of(info_.dtype, elements)) + 2 * kGuardBytes, kPoison);
  origin_ = kGuardBytes;
}

std::int64_t HostTensor::count() const { return device::element_count(info_); }

std::size_t HostTensor::byte_of(std::int64_t i) const {
  std::int64_t offset = 0;
  for (std::uint32_t axis = info_.rank; axis-- > 0;) {
    offset += i % info_.shape[axis] * info_.stride[axis];
    i /= info_.shape[axis];
  }
  return origin_ + static_cast<std::size_t>(offset) * device::dtype_bytes(info_.dtype);
}

double HostTensor::get(std::int64_t i) const {
  const std::byte* from = memory_.data() + byte_of(i);
  switch (info_.dtype) {
    case HEDDLE_F32:
      return read_as<float>(from);
    case HEDDLE_F64:
      return read_as<double>(from);
    case HEDDLE_F16:
    case HEDDLE_BF16:
      return decode(form_of(info_.dtype), static_cast<unsigned>(read_as<std::uint16_t>(from)));
    case HEDDLE_F8_E4M3:
    case HEDDLE_F8_E5M2:
      return decode(form_of(info_.dtype), static_cast<unsigned>(read_as<std::uint8_t>(from)));
    case HEDDLE_I8:
      return read_as<std::int8_t>(from);
    case HEDDLE_I16:
      return read_as<std::int16_t>(from);
    case HEDDLE_I32:
      return read_as<std::int32_t>(from);
    case HEDDLE_I64:
      return read_as<std::int64_t>(from);
    case HEDDLE_U16:
      return read_as<std::uint16_t>(from);
    case HEDDLE_U32:
      return read_as<std::uint32_t>(from);
    case HEDDLE_U64:
      return read_as<std::uint64_t>(from);
    default:
      return read_as<std::uint8_t>(from);
  }
}

void HostTensor::set(std::int64_t i, double value) {
  std::byte* to = memory_.data() + byte_of(i);
  if (is_small_float(info_.dtype)) {
    const unsigned bits = encode(info_.dtype, value);
    if (device::dtype_bytes(info_.dtype) == 1) return write_as<std::uint8_t>(bits, to);
    return write_as<std::uint16_t>(bits, to);
  }
  switch (info_.dtype) {
    case HEDDLE_F32:
      return write_as<float>(value, to);
    case HEDDLE_F64:
      return write_as<double>(value, to);
    case HEDDLE_I8:
      return write_as<std::int8_t>(value, to);
    case HEDDLE_I16:
      return write_as<std::int16_t>(value, to);
    case HEDDLE_I32:
      return write_as<std::int32_t>(value, to);
    case HEDDLE_I64:
      return write_as<std::int64_t>(value, to);
    case HEDDLE_U16:
      return write_as<std::uint16_t>(value, to);
    case HEDDLE_U32:
      return write_as<std::uint32_t>(value, to);
    case HEDDLE_U64:
      return write_as<std::uint64_t>(value, to);
    default:
      return write_as<std::uint8_t>(value, to);
  }
}

void HostTensor::poison() { std::fill(memory_.begin(), memory_.end(), kPoison); }

bool HostTensor::untouched_outside() const {
  std::vector<bool> inside(memory_.size(), false);
  const std::size_t bytes = device::dtype_bytes(info_.dtype);
  for (std::int64_t i = 0; i < count(); ++i)
    std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(byte_of(i)), bytes, true);
  for (std::size_t b = 0; b < memory_.size(); ++b)
    if (!inside[b] && memory_[b] != kPoison) return false;
  return true;
}

std::vector<std::byte> HostTensor::elements() const {
  const std::size_t bytes = device::dtype_bytes(info_.dtype);
  std::vector<std::byte> result(static_cast<std::size_t>(count()) * bytes);
  for (std::int64_t i = 0; i < count(); ++i)
    std::memcpy(result.data() + static_cast<std::size_t>(i) * bytes, memory_.data() + byte_of(i),
                bytes);
  return result;
}

HostTensor HostTensor::items(std::int64_t first, std::int64_t n) const {
  Shape shape(info_.shape, info_.shape + info_.rank);
  const std::int64_t per_item = shape[0] == 0 ? 0 : count() / shape[0];
  shape[0] = n;
  HostTensor result(info_.dtype, shape);
  const std::vector<std::byte> all = elements();
  const std::size_t bytes = static_cast<std::size_t>(per_item) * device::dtype_bytes(info_.dtype);
  std::memcpy(result.memory_.data() + result.origin_,
              all.data() + static_cast<std::size_t>(first) * bytes,
              static_cast<std::size_t>(n) * bytes);
  return result;
}

}  // namespace heddle::conformance
