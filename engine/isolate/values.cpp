#include "engine/isolate/values.h"

#include "engine/base/text.h"
#include "engine/tensor/gather.h"
#include "engine/tensor/shape.h"

namespace heddle::engine {

namespace {

constexpr unsigned kDeepest = 200;
constexpr std::uint8_t kAbsent = 255;
// In one value: each takes more memory than bytes of a message.
constexpr std::uint32_t kMostValues = 1 << 22;

void write_at(BytesWriter& to, const heddle_value* value, ValueEnd& end, unsigned depth) {
  if (value == nullptr) return to.number(kAbsent);
  if (depth > kDeepest)
    throw Error(Code::unsupported, cat("a value of more than ", kDeepest,
                                       " lists within each other does not cross to a worker"));
  to.number(std::uint8_t(kind_of(*value)));
  switch (kind_of(*value)) {
    case HEDDLE_KIND_NONE:
      return;
    case HEDDLE_KIND_BOOL:
      return to.flag(std::get<bool>(value->content));
    case HEDDLE_KIND_INT:
      return to.number(std::get<std::int64_t>(value->content));
    case HEDDLE_KIND_UINT:
      return to.number(std::get<std::uint64_t>(value->content));
    case HEDDLE_KIND_FLOAT:
      return to.number(std::get<double>(value->content));
    case HEDDLE_KIND_STR:
      return to.text(std::get<std::string>(value->content));
    case HEDDLE_KIND_TENSOR:
      return end.write_tensor(to, std::get<Tensor>(value->content));
    case HEDDLE_KIND_LIST: {
      const List& list = std::get<List>(value->content);
      to.flag(list.is_spread);
      to.number(std::uint32_t(list.items.size()));
      for (const Value& item : list.items) write_at(to, item.get(), end, depth + 1);
      return;
    }
    case HEDDLE_KIND_RECORD: {
      const Record& record = std::get<Record>(value->content);
      to.number(std::uint32_t(record.fields.size()));
      for (const auto& [key, field] : record.fields) {
        to.text(key);
        write_at(to, field.get(), end, depth + 1);
      }
      return;
    }
    case HEDDLE_KIND_BLOCKER:
      return to.text(std::get<Blocker>(value->content).message);
    default:
      return end.write_handle(to, *value);
  }
}

// `left`: how many more values there may be.
Value read_at(BytesReader& from, ValueEnd& end, unsigned depth, std::uint32_t& left) {
  const auto kind = from.number<std::uint8_t>();
  if (kind == kAbsent) {
    if (depth == 0) return {};
    throw Error(Code::internal, "a list or record of a worker has an item without a value");
  }
  if (depth > kDeepest) throw Error(Code::internal, "a value of a worker is too deep");
  if (left-- == 0)
    throw Error(Code::internal, cat("a value of a worker has more than ", kMostValues, " parts"));
  switch (kind) {
    case HEDDLE_KIND_NONE:
      return make_value(None{});
    case HEDDLE_KIND_BOOL:
      return make_value(from.flag());
    case HEDDLE_KIND_INT:
      return Value::adopt(new heddle_value(from.number<std::int64_t>()));
    case HEDDLE_KIND_UINT:
      return make_value(from.number<std::uint64_t>());
    case HEDDLE_KIND_FLOAT:
      return make_value(from.number<double>());
    case HEDDLE_KIND_STR:
      return make_value(std::string(from.text()));
    case HEDDLE_KIND_TENSOR:
      return make_value(end.read_tensor(from));
    case HEDDLE_KIND_LIST: {
      List list;
      list.is_spread = from.flag();
      for (std::uint32_t items = from.count(); items > 0; --items)
        list.items.push_back(read_at(from, end, depth + 1, left));
      return make_value(std::move(list));
    }
    case HEDDLE_KIND_RECORD: {
      Record record;
      for (std::uint32_t fields = from.count(); fields > 0; --fields) {
        std::string key(from.text());
        record.fields.emplace_back(std::move(key), read_at(from, end, depth + 1, left));
      }
      return make_value(std::move(record));
    }
    case HEDDLE_KIND_BLOCKER:
      return make_value(Blocker{std::string(from.text())});
    case HEDDLE_KIND_MODEL:
    case HEDDLE_KIND_OBJECT:
      return end.read_handle(from);
    default:
      throw Error(Code::internal, cat("a worker sends a value of the unknown kind ", int(kind)));
  }
}

}  // namespace

void write_value(BytesWriter& to, const heddle_value* value, ValueEnd& end) {
  write_at(to, value, end, 0);
}

Value read_value(BytesReader& from, ValueEnd& end) {
  std::uint32_t left = kMostValues;
  return read_at(from, end, 0, left);
}

void write_info(BytesWriter& to, const heddle_tensor_info& info) {
  to.number(info.dtype);
  to.number(info.rank);
  to.number(info.layout);
  for (std::uint32_t i = 0; i < info.rank && i < HEDDLE_MAX_RANK; ++i) {
    to.number(info.shape[i]);
    to.number(info.stride[i]);
  }
}

heddle_tensor_info read_info(BytesReader& from) {
  heddle_tensor_info info{};
  info.size = sizeof info;
  info.dtype = from.number<heddle_dtype>();
  info.rank = from.number<std::uint32_t>();
  info.layout = from.number<heddle_layout>();
  for (std::uint32_t i = 0; i < info.rank && i < HEDDLE_MAX_RANK; ++i) {
    info.shape[i] = from.number<std::int64_t>();
    info.stride[i] = from.number<std::int64_t>();
  }
  return info;
}

void write_elements(BytesWriter& to, const heddle_tensor_info& info, const std::byte* data) {
  const std::uint64_t bytes = dense_bytes(info);
  to.number(bytes);
  if (bytes > 0) gather(info, data, to.room(bytes));
}

}  // namespace heddle::engine
