#include "goldens.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

#include "heddle/abi/frame_ops.h"
#include "heddle/abi/node.h"
#include "heddle/device.hpp"

namespace heddle::conformance {

namespace {

heddle_dtype dtype_of(const std::string& name) {
  static const std::map<std::string, heddle_dtype> kNames = {
      {"F32", HEDDLE_F32},         {"F16", HEDDLE_F16},        {"BF16", HEDDLE_BF16},
      {"F64", HEDDLE_F64},         {"I8", HEDDLE_I8},          {"I32", HEDDLE_I32},
      {"I64", HEDDLE_I64},         {"U8", HEDDLE_U8},          {"BOOL", HEDDLE_BOOL8},
      {"F8_E4M3", HEDDLE_F8_E4M3}, {"F8_E5M2", HEDDLE_F8_E5M2}};
  return kNames.at(name);
}

HostTensor read_tensor(const rapidjson::Value& entry, const std::string& data) {
  Shape shape;
  for (const auto& size : entry["shape"].GetArray()) shape.push_back(size.GetInt64());
  HostTensor tensor(dtype_of(entry["dtype"].GetString()), shape);
  const auto begin = entry["data_offsets"][0].GetUint64(),
             end = entry["data_offsets"][1].GetUint64();
  if (end > data.size() || end - begin != tensor.elements().size())
    throw std::runtime_error("goldens: a tensor is cut off");
  std::memcpy(tensor.memory().data() + tensor.origin(), data.data() + begin, end - begin);
  return tensor;
}

std::vector<std::byte> bytes_of(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct File {
  rapidjson::Document tree;
  std::string data;
};

File read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t header_bytes = 0;
  if (!file.read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes) ||
      header_bytes > (1u << 20))
    throw std::runtime_error(path + ": no golden file");
  std::string header(header_bytes, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header_bytes));
  File result;
  result.data.assign(std::istreambuf_iterator<char>(file), {});
  if (result.tree.Parse(header.c_str()).HasParseError())
    throw std::runtime_error(path + ": the header is not JSON");
  return result;
}

}  // namespace

std::map<std::string, HostTensor> read_tensors(const std::string& path) {
  const File file = read_file(path);
  std::map<std::string, HostTensor> tensors;
  for (const auto& entry : file.tree.GetObject())
    if (std::string(entry.name.GetString()) != "__metadata__")
      tensors[entry.name.GetString()] = read_tensor(entry.value, file.data);
  return tensors;
}

std::vector<OpCase> read_goldens(const std::string& path) {
  const File file = read_file(path);
  const rapidjson::Document& tree = file.tree;
  const std::string& data = file.data;
  std::vector<OpCase> cases;
  for (const auto& entry : tree["__metadata__"].GetObject()) {
    OpCase op_case;
    op_case.name = entry.name.GetString();
    std::istringstream words(entry.value.GetString());
    std::size_t inputs = 0;
    std::string attrs;
    words >> op_case.op >> inputs >> attrs;
    op_case.attrs = bytes_of(attrs);
    for (std::size_t i = 0; i < inputs; ++i) {
      const std::string key = device::cat(op_case.name, "/in", i);
      op_case.in.emplace_back();
      if (tree.HasMember(key.c_str())) op_case.in.back() = read_tensor(tree[key.c_str()], data);
    }
    for (std::size_t i = 0; tree.HasMember(device::cat(op_case.name, "/out", i).c_str()); ++i)
      op_case.out.push_back(read_tensor(tree[device::cat(op_case.name, "/out", i).c_str()], data));
    if (op_case.op == HEDDLE_OP_LINEAR) op_case.weight = {1, HEDDLE_USE_LINEAR};
    if (op_case.op == HEDDLE_OP_CONV2D || op_case.op == HEDDLE_OP_CONV3D)
      op_case.weight = {1, HEDDLE_USE_CONV2D};
    cases.push_back(std::move(op_case));
  }
  std::sort(cases.begin(), cases.end(),
            [](const OpCase& a, const OpCase& b) { return a.name < b.name; });
  return cases;
}

}  // namespace heddle::conformance
