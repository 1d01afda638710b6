#include "plugins/blocks/safetensors_text.h"

#include <bit>
#include <cstring>
#include <heddle/node.hpp>

#include "plugins/blocks/json_text.h"

namespace heddle::blocks {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

struct StoredType {
  heddle_dtype dtype;
  const char* name;
  std::size_t bytes;
};
constexpr StoredType kStoredTypes[] = {
    {HEDDLE_F32, "F32", 4}, {HEDDLE_F16, "F16", 2},   {HEDDLE_BF16, "BF16", 2},
    {HEDDLE_F64, "F64", 8}, {HEDDLE_I64, "I64", 8},   {HEDDLE_I32, "I32", 4},
    {HEDDLE_I16, "I16", 2}, {HEDDLE_U8, "U8", 1},     {HEDDLE_I8, "I8", 1},
    {HEDDLE_U16, "U16", 2}, {HEDDLE_BOOL8, "BOOL", 1}};

const StoredType& stored_type(heddle_dtype dtype) {
  for (const StoredType& one : kStoredTypes)
    if (one.dtype == dtype) return one;
  throw Error(HEDDLE_UNSUPPORTED,
              "a tensor of this type of elements cannot be saved. Save one of "
              "f32, f16 or bf16.");
}

std::string header_entry(const StoredTensor& tensor, std::size_t begin) {
  std::string sides;
  for (const std::int64_t side : tensor.shape)
    sides += (sides.empty() ? "" : ", ") + std::to_string(side);
  return json_string(tensor.name) + R"(: {"dtype": ")" + stored_type(tensor.dtype).name +
         R"(", "shape": [)" + sides + R"(], "data_offsets": [)" + std::to_string(begin) + ", " +
         std::to_string(begin + tensor.bytes.size()) + "]}";
}

// A header's entries, held against the data behind it.
class StoredReader {
 public:
  StoredReader(std::span<const std::uint8_t> data, const std::string& name, const KindOfFile& kind)
      : data_(data), name_(name), kind_(kind) {}

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(HEDDLE_INVALID_ARGUMENT,
                name_ + ": this is no " + kind_.what + ": " + why + ". " + kind_.advice);
  }

  StoredTensor tensor(const std::string& key, const Value& entry) const {
    if (!entry.is(HEDDLE_KIND_RECORD)) refuse("its header is damaged");
    const auto type = entry.get<std::string>("dtype", "");
    const StoredType* found = nullptr;
    for (const StoredType& one : kStoredTypes)
      if (type == one.name) found = &one;
    if (found == nullptr) refuse("its numbers are of type '" + type + "'");
    const Value shape = entry.field("shape"), place = entry.field("data_offsets");
    if (place.count() != 2 || !shape.is(HEDDLE_KIND_LIST) || shape.count() > HEDDLE_MAX_RANK)
      refuse("its header is damaged");
    StoredTensor tensor{key, found->dtype, {}, {}};
    std::int64_t count = 1;
    for (std::uint32_t i = 0; i < shape.count(); ++i) {
      const auto side = shape.item(i).as<std::int64_t>();
      if (side < 0) refuse("its header is damaged");
      tensor.shape.push_back(side);
      count = checked_product({count, side}, name_.c_str());
    }
    const auto begin = place.item(0).as<std::uint64_t>(), end = place.item(1).as<std::uint64_t>();
    if (begin > end || end > data_.size() || (end - begin) % found->bytes != 0 ||
        (end - begin) / found->bytes != std::uint64_t(count))
      refuse("its numbers are not where its header says");
    tensor.bytes = data_.subspan(std::size_t(begin), std::size_t(end - begin));
    return tensor;
  }

 private:
  std::span<const std::uint8_t> data_;
  const std::string& name_;
  const KindOfFile& kind_;
};

}  // namespace

std::string safetensors_text(std::span<const StoredTensor> tensors,
                             const std::vector<std::pair<std::string, std::string>>& notes) {
  std::string header, metadata;
  for (const auto& [key, text] : notes)
    metadata += (metadata.empty() ? "" : ", ") + json_string(key) + ": " + json_string(text);
  if (!metadata.empty()) header = "\"__metadata__\": {" + metadata + "}";
  std::size_t begin = 0;
  for (const StoredTensor& tensor : tensors) {
    header += (header.empty() ? "" : ", ") + header_entry(tensor, begin);
    begin += tensor.bytes.size();
  }
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  for (const StoredTensor& tensor : tensors)
    file.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return file;
}

const StoredTensor* StoredTensors::find(const std::string& name) const {
  for (const StoredTensor& tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

StoredTensors read_safetensors(std::span<const std::uint8_t> bytes, const std::string& name,
                               const KindOfFile& kind) {
  std::uint64_t size = 0;
  const StoredReader outer({}, name, kind);
  if (bytes.size() < sizeof size) outer.refuse("it is too short");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) outer.refuse("its header is longer than the file");
  heddle_value* parsed = nullptr;
  check(service<heddle_json_service>().parse(
      services.host, {reinterpret_cast<const char*>(bytes.data()) + sizeof size, std::size_t(size)},
      name.c_str(), &parsed));
  const Value header = Value::adopt(parsed);
  if (!header.is(HEDDLE_KIND_RECORD)) outer.refuse("its header is damaged");
  const StoredReader reader(bytes.subspan(sizeof size + std::size_t(size)), name, kind);
  StoredTensors content;
  for (std::uint32_t i = 0; i < header.count(); ++i) {
    if (header.key(i) == "__metadata__")
      content.notes = header.item(i);
    else
      content.tensors.push_back(reader.tensor(header.key(i), header.item(i)));
  }
  return content;
}

HostBytes::HostBytes(Context& ctx, const Tensor& tensor)
    : bytes_(std::size_t(tensor.count()) * stored_type(tensor.dtype()).bytes) {
  check(services.tensor->read(ctx.raw(), tensor.raw(), bytes_.data(), bytes_.size()));
}

Tensor to_tensor(Context& ctx, const StoredTensor& stored) {
  const Tensor tensor = ctx.make_host(stored.shape, stored.dtype);
  if (!stored.bytes.empty())
    std::memcpy(tensor.data<std::uint8_t>(), stored.bytes.data(), stored.bytes.size());
  return tensor;
}

}  // namespace heddle::blocks
