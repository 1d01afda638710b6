#include "engine/files/value_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/hash.h"
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "engine/files/safetensors.h"
#include "engine/tensor/gather.h"

namespace heddle::engine {

namespace {

constexpr std::string_view kName = "heddle.name", kContent = "heddle.values",
                           kChecksum = "heddle.checksum";
// In the place of the checksum while it is computed.
const std::string kNoChecksum(32, '0');

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Nothing for what no file can hold.
std::optional<Json> to_structure(const heddle_value& value, std::vector<Tensor>& tensors) {
  switch (kind_of(value)) {
    case HEDDLE_KIND_MODEL:
    case HEDDLE_KIND_OBJECT:
    case HEDDLE_KIND_BLOCKER:
      return std::nullopt;
    case HEDDLE_KIND_TENSOR:
      tensors.push_back(get_tensor(value));
      if (tensors.back()->info.layout != 0) return std::nullopt;
      return Json::object().set("tensor", tensors.size() - 1);
    case HEDDLE_KIND_LIST: {
      Json list = Json::array();
      for (const Value& item : std::get<List>(value.content).items) {
        std::optional<Json> json = to_structure(*item, tensors);
        if (!json) return std::nullopt;
        list.push(*std::move(json));
      }
      return list;
    }
    case HEDDLE_KIND_RECORD: {
      Json fields = Json::array();
      for (const auto& [key, field] : std::get<Record>(value.content).fields) {
        std::optional<Json> json = to_structure(*field, tensors);
        if (!json) return std::nullopt;
        Json pair = Json::array();
        pair.push(key).push(*std::move(json));
        fields.push(std::move(pair));
      }
      return Json::object().set("record", std::move(fields));
    }
    default:
      return to_json(value);
  }
}

Value from_structure(const Json& json, const std::vector<Tensor>& tensors) {
  if (json.is_array()) {
    List list;
    for (const Json& item : json.as_array()) list.items.push_back(from_structure(item, tensors));
    return make_value(std::move(list));
  }
  if (!json.is_object()) return from_json(json);
  if (const Json* number = json.find("tensor")) {
    const std::uint64_t n = number->as_uint64();
    if (n >= tensors.size())
      throw Error(Code::invalid_argument, cat("there is no tensor ", n, " of ", tensors.size()));
    return make_value(tensors[n]);
  }
  Record record;
  for (const Json& pair : json.at("record").as_array())
    record.fields.emplace_back(pair.at(std::size_t{0}).as_string(),
                               from_structure(pair.at(1), tensors));
  return make_value(std::move(record));
}

Json entry_of(const Tensor& tensor, std::uint64_t begin, std::uint64_t end) {
  Json shape = Json::array(), offsets = Json::array();
  for (std::uint32_t i = 0; i < tensor->info.rank; ++i) shape.push(tensor->info.shape[i]);
  offsets.push(begin).push(end);
  return std::move(Json::object()
                       .set("dtype", safetensors_name(DType(tensor->info.dtype)))
                       .set("shape", std::move(shape))
                       .set("data_offsets", std::move(offsets)));
}

// The number of the tensors is their order in the file, so that none has to be looked up.
std::vector<Tensor> read_tensors(std::span<const std::byte> file, const SafetensorsHeader& header,
                                 const MakeTensor& make) {
  std::vector<Tensor> tensors(header.tensors.size());
  for (const TensorEntry& entry : header.tensors) {
    const heddle_tensor_info info = make_info(heddle_dtype(entry.dtype), std::span(entry.shape));
    const Tensor tensor = make ? make(info) : make_host_tensor(info);
    if (entry.size > 0) std::memcpy(tensor->data(), file.data() + entry.offset, entry.size);
    const auto is_free = [&](std::size_t n) { return n < tensors.size() && !tensors[n]; };
    const Json number = parse_json(entry.name, entry.name);
    if (!is_free(number.as_uint64()))
      throw Error(Code::invalid_argument,
                  cat("the tensor ", quote(entry.name), " is one too many"));
    tensors[number.as_uint64()] = tensor;
  }
  return tensors;
}

std::string_view metadata_of(const SafetensorsHeader& header, std::string_view key) {
  const auto found = std::ranges::find(header.metadata, key, [](const auto& e) { return e.first; });
  if (found == header.metadata.end())
    throw Error(Code::invalid_argument, cat("it has no ", quote(key), ": it is another file"));
  return found->second;
}

}  // namespace

std::optional<std::string> write_values(std::span<const Value> values, std::string_view name) {
  std::vector<Tensor> tensors;
  Json content = Json::array();
  for (const Value& value : values) {
    std::optional<Json> json = to_structure(*value, tensors);
    if (!json) return std::nullopt;
    content.push(*std::move(json));
  }
  Json header = Json::object();
  header.set("__metadata__", std::move(Json::object()
                                           .set(std::string(kName), name)
                                           .set(std::string(kContent), write_json(content))
                                           .set(std::string(kChecksum), kNoChecksum)));
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t end = bytes + dense_bytes(tensors[i]->info);
    header.set(cat(i), entry_of(tensors[i], bytes, end));
    bytes = end;
  }
  std::string text = write_json(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    file[i] = static_cast<char>(std::uint64_t(text.size()) >> (8 * i));
  file += text;
  const std::size_t data = file.size();
  file.resize(data + bytes);
  auto* to = reinterpret_cast<std::byte*>(file.data() + data);
  for (const Tensor& tensor : tensors) {
    const std::uint64_t size = dense_bytes(tensor->info);
    if (size > 0) gather(tensor->info, tensor->data(), to);
    to += size;
  }
  const std::string checksum = hex(hash_bytes(std::as_bytes(std::span(file))));
  // It is the last of the metadata, and what stands in front of it cannot hold a bare quote.
  const std::size_t place = file.find(cat('"', kChecksum, "\":\"")) + kChecksum.size() + 4;
  file.replace(place, checksum.size(), checksum);
  return file;
}

std::vector<Value> read_values(std::span<const std::byte> file, std::string_view name,
                               std::string_view file_name, const MakeTensor& make) {
  const SafetensorsHeader header = parse_safetensors(file, file_name);
  try {
    if (metadata_of(header, kName) != name)
      throw Error(Code::invalid_argument,
                  cat("it holds ", quote(metadata_of(header, kName)), ", not ", quote(name)));
    std::string copy(text_of(file));
    const std::size_t place = copy.find(cat('"', kChecksum, "\":\""));
    if (place < header.data_offset)
      copy.replace(place + kChecksum.size() + 4, kNoChecksum.size(), kNoChecksum);
    if (hex(hash_bytes(std::as_bytes(std::span(copy)))) != metadata_of(header, kChecksum))
      throw Error(Code::invalid_argument, "its checksum is wrong: it is damaged");
    const std::vector<Tensor> tensors = read_tensors(file, header, make);
    std::vector<Value> values;
    const Json content = parse_json(metadata_of(header, kContent), "values");
    for (const Json& json : content.as_array()) values.push_back(from_structure(json, tensors));
    return values;
  } catch (const Error& error) {
    throw Error(error.code(), cat(file_name, ": ", error.what()));
  }
}

}  // namespace heddle::engine
