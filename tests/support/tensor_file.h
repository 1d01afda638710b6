// Reads the tensors of a small safetensors file that a generator script wrote: golden values and
// the inputs they belong to. Independent of the engine's reader, because tests compare with what it
// gives. Names must need no JSON escapes. A value; any thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/read_text.h"

namespace heddle::test {

class TensorFile {
 public:
  struct Entry {
    std::string dtype;  // as the file says it: "F32"
    std::vector<std::int64_t> shape;
    std::string bytes;
  };

  explicit TensorFile(const std::filesystem::path& path) {
    const std::string file = read_text(path);
    std::uint64_t length = 0;
    if (file.size() >= 8) std::memcpy(&length, file.data(), 8);
    if (file.size() < 8 || length > file.size() - 8)
      throw std::runtime_error(path.string() + ": no safetensors file");
    rest_ = std::string_view(file).substr(8, length);
    data_ = std::string_view(file).substr(8 + length);
    read_entries();
    rest_ = data_ = {};
  }

  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Entry& at(const std::string& name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw std::runtime_error("no golden tensor '" + name + "'");
    return found->second;
  }
  std::vector<float> floats(const std::string& name) const { return values<float>(name, "F32"); }
  std::vector<std::int32_t> integers(const std::string& name) const {
    return values<std::int32_t>(name, "I32");
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& name, std::string_view dtype) const {
    const Entry& entry = at(name);
    if (entry.dtype != dtype) throw std::runtime_error(name + " holds " + entry.dtype);
    std::vector<T> out(entry.bytes.size() / sizeof(T));
    std::memcpy(out.data(), entry.bytes.data(), out.size() * sizeof(T));
    return out;
  }

  // {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}; "__metadata__" is skipped.
  void read_entries() {
    expect('{');
    while (!take('}')) {
      const std::string name = text();
      expect(':');
      expect('{');
      Entry entry;
      std::vector<std::int64_t> offsets{0, 0};
      while (!take('}')) {
        const std::string key = text();
        expect(':');
        if (key == "shape")
          entry.shape = numbers();
        else if (key == "data_offsets")
          offsets = numbers();
        else
          entry.dtype = text();
        take(',');
      }
      if (name != "__metadata__") {
        entry.bytes =
            data_.substr(std::size_t(offsets.at(0)), std::size_t(offsets.at(1) - offsets[0]));
        entries_.emplace(name, std::move(entry));
      }
      take(',');
    }
  }
  bool take(char c) {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw std::runtime_error("the header of a golden file is damaged");
  }
  std::string text() {
    expect('"');
    const std::size_t end = rest_.find('"');
    if (end == std::string_view::npos)
      throw std::runtime_error("the header of a golden file is cut off");
    const std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return out;
  }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> out;
    expect('[');
    while (!take(']')) {
      std::int64_t value = 0;
      while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
        value = value * 10 + (rest_.front() - '0');
        rest_.remove_prefix(1);
      }
      out.push_back(value);
      if (!take(',') && (rest_.empty() || rest_.front() != ']'))
        throw std::runtime_error("the header of a golden file is damaged");
    }
    return out;
  }

  std::string_view rest_, data_;  // while reading
  std::map<std::string, Entry> entries_;
};

}  // namespace heddle::test
