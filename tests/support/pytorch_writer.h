// Makes files as torch.save writes them, for tests: of any pickle, right and wrong ones.
// Independent of the engine's reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace heddle::test {

template <class T>
std::string little_endian(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

struct StoredEntry {
  std::string name, bytes;
  std::uint16_t method = 0;            // 8: deflated
  std::uint32_t claimed = 0xfffffffe;  // its size, as the directory has it; this: its own
};

// A zip file without checksums.
inline std::string zip_bytes(const std::vector<StoredEntry>& entries) {
  std::string file, directory;
  for (const StoredEntry& entry : entries) {
    const auto size =
        entry.claimed == 0xfffffffe ? std::uint32_t(entry.bytes.size()) : entry.claimed;
    const std::string facts = little_endian(entry.method) + std::string(8, '\0') +
                              little_endian(size) + little_endian(size) +
                              little_endian(std::uint16_t(entry.name.size()));
    const auto at = std::uint32_t(file.size());
    file += "PK\x03\x04" + std::string(4, '\0') + facts + std::string(2, '\0') + entry.name +
            entry.bytes;
    directory += "PK\x01\x02" + std::string(6, '\0') + facts + std::string(12, '\0') +
                 little_endian(at) + entry.name;
  }
  const auto count = std::uint16_t(entries.size());
  return file + directory + "PK\x05\x06" + std::string(4, '\0') + little_endian(count) +
         little_endian(count) + little_endian(std::uint32_t(directory.size())) +
         little_endian(std::uint32_t(file.size())) + std::string(2, '\0');
}

// What a pickle is put together from, in protocol 2.
inline std::string pickled_text(std::string_view text) {
  return "X" + little_endian(std::uint32_t(text.size())).append(text);
}
inline std::string pickled_number(std::int32_t number) { return "J" + little_endian(number); }
inline std::string pickled_numbers(const std::vector<std::int32_t>& numbers) {
  std::string bytes = "(";
  for (const std::int32_t number : numbers) bytes += pickled_number(number);
  return bytes + "t";
}
// A tensor of f32 on the storage `key`, which is said to have `count` elements.
inline std::string pickled_tensor(std::string_view key, std::int32_t count, std::int32_t first,
                                  const std::vector<std::int32_t>& shape,
                                  const std::vector<std::int32_t>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") +
         "ctorch\nFloatStorage\n" + pickled_text(key) + pickled_text("cpu") +
         pickled_number(count) + "tQ" + pickled_number(first) + pickled_numbers(shape) +
         pickled_numbers(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}
// A pickle of a dict with one member: its key and value are `value`'s bytes.
inline std::string pickled_dict(std::string_view key, const std::string& value) {
  return "\x80\x02}" + pickled_text(key) + value + "s.";
}

// A file of such a pickle and one storage, "0", of these bytes.
inline std::string pytorch_bytes(const std::string& pickle,
                                 const std::string& storage = std::string(24, '\0')) {
  return zip_bytes({{"m/data.pkl", pickle}, {"m/byteorder", "little"}, {"m/data/0", storage}});
}

// A file of tensors of f32, in a dict under `key`.
inline void write_pytorch(const std::filesystem::path& path, const std::vector<FileTensor>& tensors,
                          std::string_view key) {
  std::vector<StoredEntry> entries = {{"m/data.pkl", ""}, {"m/byteorder", "little"}};
  std::string members;
  for (const FileTensor& tensor : tensors) {
    const std::string number = std::to_string(entries.size());
    std::vector<std::int32_t> shape(tensor.shape.begin(), tensor.shape.end()),
        strides(shape.size());
    std::int32_t count = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; count *= shape[axis]) strides[axis] = count;
    members += pickled_text(tensor.name) + pickled_tensor(number, count, 0, shape, strides);
    entries.push_back({"m/data/" + number, tensor.bytes});
  }
  entries.front().bytes = pickled_dict(key, "}(" + members + "u");
  const std::string bytes = zip_bytes(entries);
  std::ofstream(path, std::ios::binary).write(bytes.data(), std::streamsize(bytes.size()));
}

}  // namespace heddle::test
