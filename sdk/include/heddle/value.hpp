// heddle/value.hpp - values and tensors in C++: counted handles, and Wire<T>, which says how a C++
// type crosses the border. All of it is immutable and may be copied and read on any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

#include "checked.hpp"

namespace [[gnu::visibility("hidden")]] heddle {

using Shape = std::vector<std::int64_t>;

inline heddle_tensor_info tensor_info(heddle_dtype dtype, const Shape& shape) {
  if (shape.size() > HEDDLE_MAX_RANK)
    throw Error(HEDDLE_INVALID_ARGUMENT, "a tensor has at most 8 axes");
  heddle_tensor_info info{
      sizeof(heddle_tensor_info), dtype, std::uint32_t(shape.size()), 0, {}, {}};
  for (std::size_t i = 0; i < shape.size(); ++i) info.shape[i] = shape[i];
  return info;
}

// Shares a tensor. Copying is cheap and never copies the elements.
class Tensor {
 public:
  Tensor() = default;
  static Tensor adopt(heddle_tensor* raw) { return Tensor(raw); }
  static Tensor share(heddle_tensor* raw) {
    if (raw != nullptr) services.tensor->retain(raw);
    return Tensor(raw);
  }
  Tensor(const Tensor& other) : raw_(other.raw_) {
    if (raw_ != nullptr) services.tensor->retain(raw_);
  }
  Tensor(Tensor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Tensor() {
    if (raw_ != nullptr) services.tensor->release(raw_);
  }

  explicit operator bool() const { return raw_ != nullptr; }
  const heddle_tensor_info& info() const { return *services.tensor->info(raw_); }
  std::uint32_t rank() const { return info().rank; }
  std::int64_t size(int axis) const { return info().shape[axis < 0 ? int(rank()) + axis : axis]; }
  heddle_dtype dtype() const { return info().dtype; }
  Shape shape() const { return {info().shape, info().shape + rank()}; }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::uint32_t i = 0; i < rank(); ++i) n *= info().shape[i];
    return n;
  }
  // Host tensors only; NULL inside a block.
  template <class T>
  T* data() const {
    return static_cast<T*>(services.tensor->data(raw_));
  }

  // Elements [begin, end) along an axis, without copying.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end) const {
    heddle_tensor_info to = info();
    const auto a = std::uint32_t(axis < 0 ? int(to.rank) + axis : axis);
    if (a >= to.rank || begin < 0 || end < begin || end > to.shape[a])
      throw Error(HEDDLE_INVALID_ARGUMENT, "slice [" + std::to_string(begin) + ", " +
                                               std::to_string(end) + ") does not fit axis " +
                                               std::to_string(axis));
    to.shape[a] = end - begin;
    return view(to, begin * to.stride[a]);
  }
  // The same elements under another shape, without copying: splits axes, or joins axes that lie one
  // after another in memory. Throws where that would take a copy.
  Tensor reshape(const Shape& shape) const;
  // Axis i of the result is axis order[i] of this.
  Tensor permute(const std::vector<int>& order) const {
    const heddle_tensor_info& from = info();
    heddle_tensor_info to = from;
    for (std::uint32_t i = 0; i < to.rank; ++i) {
      to.shape[i] = from.shape[order.at(i)];
      to.stride[i] = from.stride[order.at(i)];
    }
    return view(to, 0);
  }
  Tensor view(const heddle_tensor_info& to, std::int64_t offset) const {
    heddle_tensor* out = nullptr;
    check(services.tensor->view(raw_, &to, offset, &out));
    return adopt(out);
  }

  heddle_tensor* raw() const { return raw_; }
  heddle_tensor* release() { return std::exchange(raw_, nullptr); }

 private:
  explicit Tensor(heddle_tensor* raw) : raw_(raw) {}
  heddle_tensor* raw_ = nullptr;
};

inline Tensor Tensor::reshape(const Shape& shape) const {
  const heddle_tensor_info& from = info();
  heddle_tensor_info to = tensor_info(from.dtype, shape);
  std::int64_t wanted = 1;
  for (const std::int64_t n : shape) wanted = checked_product({wanted, n}, "reshape");
  if (wanted != count())
    throw Error(HEDDLE_INVALID_ARGUMENT, "reshape changes the number of elements");
  // Walk both shapes from the innermost axis; a group of new axes must come out of one dense run of
  // old ones.
  int old_axis = int(from.rank) - 1;
  std::int64_t run = 1,
               stride =
                   1;  // elements left in the current dense run, stride of its innermost element
  for (int axis = int(to.rank) - 1; axis >= 0; --axis) {
    while (run == 1 && old_axis >= 0) {
      run = from.shape[old_axis];
      stride = from.stride[old_axis];
      while (old_axis > 0 && (from.shape[old_axis - 1] == 1 || run == 1 ||
                              from.stride[old_axis - 1] == stride * run)) {
        if (run == 1) stride = from.stride[old_axis - 1];
        run *= from.shape[--old_axis];
      }
      --old_axis;
    }
    if (to.shape[axis] > 0 && run % to.shape[axis] != 0)
      throw Error(HEDDLE_INVALID_ARGUMENT,
                  "reshape would have to copy: these axes do not lie one after another");
    to.stride[axis] = stride;
    if (to.shape[axis] > 0) run /= to.shape[axis];
    stride *= to.shape[axis];
  }
  return view(to, 0);
}

// Shares a value of any kind.
class Value {
 public:
  Value() = default;
  static Value adopt(heddle_value* raw) { return Value(raw); }
  static Value share(const heddle_value* raw) {
    if (raw != nullptr) services.value->retain(raw);
    return Value(raw);
  }
  Value(const Value& other) : raw_(other.raw_) {
    if (raw_ != nullptr) services.value->retain(raw_);
  }
  Value(Value&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~Value() {
    if (raw_ != nullptr) services.value->release(raw_);
  }

  explicit operator bool() const { return raw_ != nullptr; }
  heddle_kind kind() const {
    return raw_ == nullptr ? heddle_kind(HEDDLE_KIND_NONE) : services.value->kind(raw_);
  }
  bool is(heddle_kind k) const { return kind() == k; }
  std::uint32_t count() const { return raw_ == nullptr ? 0 : services.value->count(raw_); }
  Value item(std::uint32_t i) const { return share(services.value->item(raw_, i)); }
  std::string key(std::uint32_t i) const { return services.value->key(raw_, i); }
  // Empty when absent, or when this is no record.
  Value field(const char* key) const {
    return raw_ == nullptr ? Value() : share(services.value->field(raw_, key));
  }
  bool has(const char* key) const {
    return raw_ != nullptr && services.value->field(raw_, key) != nullptr;
  }
  template <class T>
  T as() const;  // throws when of another kind
  // What a str holds, without a copy; as long as somebody shares the value.
  std::string_view text() const {
    heddle_str s{};
    check(services.value->get_str(raw_, &s));
    return s.size == 0 ? std::string_view() : std::string_view(s.data, s.size);
  }
  template <class T>
  T get(const char* key, T otherwise) const;  // the field, or the given value when absent

  // The table and self of an object of that interface.
  template <class Table>
  std::pair<const Table*, void*> object(const char* interface_id) const {
    const void* table = nullptr;
    void* self = nullptr;
    check(services.value->get_object(raw_, interface_id, &table, &self));
    return {static_cast<const Table*>(table), self};
  }

  const heddle_value* raw() const { return raw_; }
  heddle_value* release() { return const_cast<heddle_value*>(std::exchange(raw_, nullptr)); }

 private:
  explicit Value(const heddle_value* raw) : raw_(raw) {}
  const heddle_value* raw_ = nullptr;
};

// The whole of a file as a str, its bytes as they are. Fails for what is no regular file or has
// more than most_bytes bytes; what: the kind of file, for errors ("a tokenizer").
inline Value read_file(const std::string& path, std::uint64_t most_bytes, const char* what) {
  heddle_value* content = nullptr;
  check(service<heddle_files_service>().read(services.host, path.c_str(), most_bytes, what,
                                             &content));
  return Value::adopt(content);
}

// A new file, whole or not at all; false, and nothing done, where the name is taken.
inline bool create_file(const std::string& path, std::string_view content) {
  std::int32_t created = 0;
  check(service<heddle_files_service>().create(services.host, path.c_str(),
                                               {content.data(), content.size()}, &created));
  return created != 0;
}

// ---- how a C++ type crosses the border  ----

template <class T>
struct Wire;  // specialise to give a record type its C++ face: type, widget, read, write

template <>
struct Wire<bool> {
  static constexpr const char* type = "BOOLEAN";
  static constexpr std::int32_t widget = HEDDLE_WIDGET_TOGGLE;
  static bool read(const heddle_value* v) {
    std::int32_t x = 0;
    check(services.value->get_bool(v, &x));
    return x != 0;
  }
  static heddle_value* write(bool x) { return services.value->make_bool(x); }
};
template <>
struct Wire<std::int64_t> {
  static constexpr const char* type = "INT";
  static constexpr std::int32_t widget = HEDDLE_WIDGET_INT;
  static std::int64_t read(const heddle_value* v) {
    std::int64_t x = 0;
    check(services.value->get_int(v, &x));
    return x;
  }
  static heddle_value* write(std::int64_t x) { return services.value->make_int(x); }
};
template <>
struct Wire<std::uint64_t> {  // a seed
  static constexpr const char* type = "INT";
  static constexpr std::int32_t widget = HEDDLE_WIDGET_SEED;
  static std::uint64_t read(const heddle_value* v) {
    std::uint64_t x = 0;
    check(services.value->get_uint(v, &x));
    return x;
  }
  static heddle_value* write(std::uint64_t x) { return services.value->make_uint(x); }
};
template <>
struct Wire<double> {
  static constexpr const char* type = "FLOAT";
  static constexpr std::int32_t widget = HEDDLE_WIDGET_FLOAT;
  static double read(const heddle_value* v) {
    double x = 0;
    check(services.value->get_float(v, &x));
    return x;
  }
  static heddle_value* write(double x) { return services.value->make_float(x); }
};
template <>
struct Wire<std::string> {
  static constexpr const char* type = "STRING";
  static constexpr std::int32_t widget = HEDDLE_WIDGET_TEXT;
  static std::string read(const heddle_value* v) {
    heddle_str s{};
    check(services.value->get_str(v, &s));
    return s.size == 0 ? std::string() : std::string(s.data, s.size);
  }
  static heddle_value* write(std::string_view s) {
    return services.value->make_str({s.data(), s.size()});
  }
};
template <>
struct Wire<Tensor> {
  static constexpr const char* type = "TENSOR";
  static constexpr std::int32_t widget = 0;
  static Tensor read(const heddle_value* v) {
    heddle_tensor* t = nullptr;
    check(services.value->get_tensor(v, &t));
    return Tensor::share(t);
  }
  static heddle_value* write(Tensor t) { return services.value->make_tensor(t.release()); }
};
template <>
struct Wire<Value> {  // anything
  static constexpr const char* type = "*";
  static constexpr std::int32_t widget = 0;
  static Value read(const heddle_value* v) { return Value::share(v); }
  static heddle_value* write(Value v) { return v.release(); }
};

template <class T>
T Value::as() const {
  if (raw_ == nullptr) throw Error(HEDDLE_INVALID_ARGUMENT, "a value is absent");
  return Wire<T>::read(raw_);
}
template <class T>
T Value::get(const char* key, T otherwise) const {
  const Value found = field(key);
  return found && !found.is(HEDDLE_KIND_NONE) ? found.as<T>() : otherwise;
}
// What a maker of values gives, which is NULL only when memory is out.
inline Value made_value(heddle_value* raw) {
  if (raw == nullptr) throw std::bad_alloc();
  return Value::adopt(raw);
}

template <class T>
Value value_of(T&& x) {
  using Of = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Of, Value>)
    return std::forward<T>(x);  // it may be empty
  else
    return made_value(Wire<Of>::write(std::forward<T>(x)));
}
inline Value value_of(const char* x) { return made_value(Wire<std::string>::write(x)); }

inline Value list_of(const std::vector<Value>& items) {
  std::vector<const heddle_value*> raw;
  for (const Value& v : items) raw.push_back(v.raw());
  return made_value(services.value->make_list(std::uint32_t(raw.size()), raw.data()));
}

// In the place of an output, or of an element of one that is a list: whoever would read it is not
// called (heddle_value_service.make_blocker). With a message the first one is reported.
inline Value blocker(std::string_view message = {}) {
  return made_value(services.value->make_blocker({message.data(), message.size()}));
}

// Named values under construction; a copy of an existing record can be changed.
class Record {
 public:
  Record() = default;
  explicit Record(const Value& from) {
    for (std::uint32_t i = 0; i < from.count(); ++i) set(from.key(i), from.item(i));
  }
  Record& set(const std::string& key, Value value) {
    for (auto& [name, old] : fields_)
      if (name == key) {
        old = std::move(value);
        return *this;
      }
    fields_.emplace_back(key, std::move(value));
    return *this;
  }
  Value value() const {
    std::vector<const char*> keys;
    std::vector<const heddle_value*> values;
    for (const auto& [key, value] : fields_) {
      keys.push_back(key.c_str());
      values.push_back(value.raw());
    }
    return made_value(
        services.value->make_record(std::uint32_t(keys.size()), keys.data(), values.data()));
  }

 private:
  std::vector<std::pair<std::string, Value>> fields_;
};

}  // namespace heddle
