// heddle/device.hpp - the small C++20 helpers a device plugin wants: errors that become statuses at
// the border, views of tensors, typed attributes, options. Header-only; needs nothing but the ABI
// headers. Nothing here has state: every function may be called on any thread. Own namespace, so
// that a plugin may include node.hpp beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "abi/device.h"
#include "abi/ops.h"

// Hidden: two plugins in one process must not share what is inline here.
namespace [[gnu::visibility("hidden")]] heddle {
namespace device {

// ---- errors ----

class Error : public std::runtime_error {
 public:
  Error(heddle_code code, const std::string& what) : std::runtime_error(what), code_(code) {}
  heddle_code code() const { return code_; }

 private:
  heddle_code code_;
};

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn]] void fail(heddle_code code, const Parts&... parts) {
  throw Error(code, cat(parts...));
}

// A share of a flag that says whether work is still wanted; or none: then it is.
class Cancel {
 public:
  Cancel() = default;
  explicit Cancel(heddle_cancel* flag) : flag_(flag) {
    if (flag_ != nullptr) flag_->retain(flag_);
  }
  Cancel(const Cancel& other) : Cancel(other.flag_) {}
  Cancel(Cancel&& other) noexcept : flag_(std::exchange(other.flag_, nullptr)) {}
  Cancel& operator=(Cancel other) noexcept {
    std::swap(flag_, other.flag_);
    return *this;
  }
  ~Cancel() {
    if (flag_ != nullptr) flag_->release(flag_);
  }

  bool came() const noexcept {
    return flag_ != nullptr && __atomic_load_n(&flag_->value, __ATOMIC_ACQUIRE) != 0;
  }
  // Work is left out because it came.
  void pass_over() const noexcept {
    if (flag_ != nullptr) __atomic_store_n(&flag_->passed_over, 1, __ATOMIC_RELEASE);
  }

 private:
  heddle_cancel* flag_ = nullptr;
};

// Runs work and turns what it throws into a status that the engine owns. `where` begins the
// message.
template <class Work>
heddle_status* guard(const heddle_host* host, std::string_view where, Work&& work) {
  heddle_code code = HEDDLE_INTERNAL;
  std::string text;
  try {
    std::forward<Work>(work)();
    return nullptr;
  } catch (const Error& error) {
    code = error.code();
    text = cat(where, ": ", error.what());
  } catch (const std::bad_alloc&) {
    return host->fail(host, HEDDLE_OUT_OF_MEMORY, "a device plugin ran out of host memory");
  } catch (const std::exception& error) {
    text = cat(where, ": ", error.what());
  } catch (...) {
    text = cat(where, ": an exception of an unknown type");
  }
  return host->fail(host, code, text.c_str());
}

// ---- element types ----

// Bytes of one element; 0 for a type this header does not know, and for the block formats.
constexpr std::size_t dtype_bytes(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_U8:
    case HEDDLE_I8:
    case HEDDLE_F8_E4M3:
    case HEDDLE_F8_E5M2:
    case HEDDLE_BOOL8:
      return 1;
    case HEDDLE_F16:
    case HEDDLE_BF16:
    case HEDDLE_I16:
    case HEDDLE_U16:
      return 2;
    case HEDDLE_F32:
    case HEDDLE_I32:
    case HEDDLE_U32:
      return 4;
    case HEDDLE_I64:
    case HEDDLE_F64:
    case HEDDLE_U64:
      return 8;
    default:
      return 0;
  }
}

// Elements that stand together in a block, and the block's bytes; one element for other types.
constexpr bool is_block_format(heddle_dtype dtype) {
  return dtype >= HEDDLE_Q8_0 && dtype <= HEDDLE_I4_GROUPED;
}
constexpr std::int64_t block_elements(heddle_dtype dtype) {
  return !is_block_format(dtype) ? 1 : dtype >= HEDDLE_Q4_K ? 256 : 32;
}
constexpr std::int64_t block_bytes(heddle_dtype dtype) {
  constexpr std::int64_t kBytes[] = {34,  18,  20,  22,  24,  144, 176, 210,
                                     260, 260, 148, 132, 148, 264, 160};
  return is_block_format(dtype) ? kBytes[dtype - HEDDLE_Q8_0]
                                : static_cast<std::int64_t>(dtype_bytes(dtype));
}

// Bytes of neighbouring elements, or of the way to one. REQUIRES: whole blocks.
constexpr std::int64_t bytes_of(heddle_dtype dtype, std::int64_t elements) {
  return is_block_format(dtype) ? elements / block_elements(dtype) * block_bytes(dtype)
                                : elements * static_cast<std::int64_t>(dtype_bytes(dtype));
}

constexpr const char* dtype_name(heddle_dtype dtype) {
  constexpr const char* kNames[] = {
      "?",         "f32",        "f16",   "bf16",       "i32",      "i64",   "u8",        "i8",
      "f8_e4m3",   "f8_e5m2",    "f64",   "bool",       "i16",      "u16",   "u32",       "u64",
      "q8_0",      "q4_0",       "q4_1",  "q5_0",       "q5_1",     "q4_k",  "q5_k",      "q6_k",
      "i8_scaled", "i8_rotated", "nvfp4", "i4_rotated", "i4_coded", "mxfp8", "i4_grouped"};
  return dtype >= 1 && dtype <= HEDDLE_I4_GROUPED ? kNames[dtype] : kNames[0];
}

// The types that kernels take as floating-point operands.
constexpr bool is_compute_float(heddle_dtype dtype) {
  return dtype == HEDDLE_F32 || dtype == HEDDLE_F16 || dtype == HEDDLE_BF16;
}

constexpr bool is_f8(heddle_dtype dtype) {
  return dtype == HEDDLE_F8_E4M3 || dtype == HEDDLE_F8_E5M2;
}

constexpr bool is_float(heddle_dtype dtype) {
  return is_compute_float(dtype) || dtype == HEDDLE_F64 || is_f8(dtype) || is_block_format(dtype);
}

// ---- shapes ----

inline std::int64_t element_count(const heddle_tensor_info& info) {
  std::int64_t count = 1;
  for (std::uint32_t axis = 0; axis < info.rank; ++axis) count *= info.shape[axis];
  return count;
}

inline heddle_tensor_info row_major(heddle_dtype dtype, const std::int64_t* shape,
                                    std::uint32_t rank) {
  heddle_tensor_info info{};
  info.size = sizeof info;
  info.dtype = dtype;
  info.rank = rank;
  std::int64_t stride = 1;
  for (std::uint32_t axis = rank; axis-- > 0;) {
    info.shape[axis] = shape[axis];
    info.stride[axis] = stride;
    stride *= shape[axis];
  }
  return info;
}

inline heddle_tensor_info row_major(heddle_dtype dtype, std::initializer_list<std::int64_t> shape) {
  return row_major(dtype, shape.begin(), static_cast<std::uint32_t>(shape.size()));
}

// "f32 (2, 77, 768)"
inline std::string describe(const heddle_tensor_info& info) {
  std::string text = cat(dtype_name(info.dtype), " (");
  for (std::uint32_t axis = 0; axis < info.rank && axis < HEDDLE_MAX_RANK; ++axis)
    text += cat(axis == 0 ? "" : ", ", info.shape[axis]);
  return text + (info.layout == 0 ? ")" : cat(") in layout ", info.layout));
}

// ---- calls ----

// An operand, or nullptr where it is absent.
inline const heddle_view* operand(const heddle_op_call& call, std::uint32_t index) {
  return index < call.in_count ? call.in[index] : nullptr;
}

// The attributes of a call. A longer struct than ours is a newer one: its tail is ignored.
template <class Attrs>
const Attrs& attributes(const heddle_op_call& call) {
  if (call.attrs == nullptr || call.attrs_size < sizeof(Attrs))
    fail(HEDDLE_INVALID_ARGUMENT, "has ", call.attrs_size, " bytes of attributes, needs ",
         sizeof(Attrs));
  return *static_cast<const Attrs*>(call.attrs);
}

// ---- options ----

// Reads the record that open() is given. Borrows it. NULL is an empty record.
class Options {
 public:
  Options(const heddle_host* host, const heddle_value* record) : host_(host), record_(record) {
    if (record_ == nullptr) return;
    values_ = static_cast<const heddle_value_service*>(host->service(host, HEDDLE_SERVICE_VALUE));
    if (values_ == nullptr)
      fail(HEDDLE_UNSUPPORTED, "this engine has no ", HEDDLE_SERVICE_VALUE,
           " to read options with");
    const heddle_kind kind = values_->kind(record_);
    if (kind == HEDDLE_KIND_NONE)
      record_ = nullptr;
    else if (kind != HEDDLE_KIND_RECORD)
      fail(HEDDLE_INVALID_ARGUMENT, "the options are of kind ", kind, ", not a record");
  }

  // Fails on a key that is not in the list.
  void only(std::initializer_list<std::string_view> known) const {
    for (std::uint32_t i = 0; record_ != nullptr && i < values_->count(record_); ++i) {
      const std::string_view key = values_->key(record_, i);
      bool found = false;
      std::string names;
      for (std::string_view name : known) {
        found = found || name == key;
        names += cat(names.empty() ? "" : ", ", name);
      }
      if (!found)
        fail(HEDDLE_INVALID_ARGUMENT, "unknown option '", key, "'. Known options: ", names);
    }
  }

  std::int64_t integer(const char* key, std::int64_t otherwise) const {
    const heddle_value* value = find(key);
    std::int64_t result = otherwise;
    if (value != nullptr) check(values_->get_int(value, &result), key, "a whole number");
    return result;
  }

  std::string text(const char* key, std::string_view otherwise) const {
    const heddle_value* value = find(key);
    heddle_str result{otherwise.data(), otherwise.size()};
    if (value != nullptr) check(values_->get_str(value, &result), key, "a text");
    return std::string(result.data, result.size);
  }

 private:
  const heddle_value* find(const char* key) const {
    return record_ == nullptr ? nullptr : values_->field(record_, key);
  }

  void check(heddle_status* status, const char* key, const char* wanted) const {
    if (status == nullptr) return;
    host_->status_free(status);
    fail(HEDDLE_INVALID_ARGUMENT, "option '", key, "' has to be ", wanted);
  }

  const heddle_host* host_;
  const heddle_value* record_;
  const heddle_value_service* values_ = nullptr;
};

}  // namespace device
}  // namespace heddle
