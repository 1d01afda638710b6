// Makes safetensors files for tests: small ones with data, and header-only ones of any size, whose
// data section is a hole that takes no room on disk and reads as zeros. Independent of the engine's
// reader.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::test {

struct FileTensor {
  std::string name;
  std::string dtype;  // as the header says it: "F32"
  std::vector<std::int64_t> shape;
  std::string bytes = {};  // the data; may stay empty for write_header_only()
};

inline std::string bytes_of_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

using FileMetadata = std::vector<std::pair<std::string, std::string>>;

inline std::uint64_t bytes_of(const FileTensor& tensor) {
  const std::string& dtype = tensor.dtype;
  std::uint64_t bytes = 1;
  if (dtype.ends_with("64")) bytes = 8;
  if (dtype.ends_with("32")) bytes = 4;
  if (dtype.ends_with("16")) bytes = 2;
  for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

// Names and metadata go into the JSON as they are; they must not need escapes.
inline std::string safetensors_header(const std::vector<FileTensor>& tensors,
                                      const FileMetadata& metadata = {}) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) json += "\"" + key + "\":\"" + value + "\",";
    json.back() = '}';
    json += ",";
  }
  std::uint64_t offset = 0;
  for (const FileTensor& tensor : tensors) {
    json += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (const std::int64_t size : tensor.shape) json += std::to_string(size) + ",";
    if (!tensor.shape.empty()) json.pop_back();
    const std::uint64_t end = offset + bytes_of(tensor);
    json += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]},";
    offset = end;
  }
  if (json.size() > 1) json.pop_back();
  return json + "}";
}

// The length in front of any header, right or wrong: for files that a test breaks on purpose.
inline std::string with_length(std::string_view header, std::string_view data = "") {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8)
    file += static_cast<char>(std::uint64_t{header.size()} >> shift);
  return file.append(header).append(data);
}

inline std::string safetensors_bytes(const std::vector<FileTensor>& tensors,
                                     const FileMetadata& metadata = {}) {
  std::string data;
  for (const FileTensor& tensor : tensors) {
    if (tensor.bytes.size() != bytes_of(tensor))
      throw std::logic_error(tensor.name + ": data do not fit the shape");
    data += tensor.bytes;
  }
  return with_length(safetensors_header(tensors, metadata), data);
}

inline void write_safetensors(const std::filesystem::path& path,
                              const std::vector<FileTensor>& tensors,
                              const FileMetadata& metadata = {}) {
  std::ofstream stream(path, std::ios::binary);
  stream << safetensors_bytes(tensors, metadata);
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

inline void write_header_only(const std::filesystem::path& path,
                              const std::vector<FileTensor>& tensors,
                              const FileMetadata& metadata = {}) {
  const std::string start = with_length(safetensors_header(tensors, metadata));
  std::ofstream stream(path, std::ios::binary);
  stream << start;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
  std::uint64_t size = start.size();
  for (const FileTensor& tensor : tensors) size += bytes_of(tensor);
  std::filesystem::resize_file(path, size);
}

}  // namespace heddle::test
