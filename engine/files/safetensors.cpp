#include "engine/files/safetensors.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kIncomplete =
    " The download is probably incomplete; fetch the file again.";
constexpr std::string_view kDamaged =
    " The file is damaged or was written by a faulty program; fetch or convert it again.";

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The sentence of an error in the header, whose place is "line:column: ..." in front.
std::string in_header(const Error& error) {
  const std::string what = error.what();
  return cat("header:", what, what.ends_with('?') ? "" : ".");
}

// What people often have under the name of a weight file, and what to do then.
std::optional<std::string_view> other_format(std::string_view text) {
  if (text.starts_with("version https://git-lfs"))
    return "a Git LFS pointer. Run 'git lfs pull' to get the file itself.";
  if (text.starts_with("GGUF")) return "a GGUF file.";
  if (text.starts_with("PK\x03\x04")) return "a zip file, perhaps one of torch.save.";
  for (const std::string_view start : {"<!DOCTYPE", "<!doctype", "<html", "<HTML", "<?xml"}) {
    if (text.starts_with(start))
      return "a web page, not a file of weights. Download the file itself.";
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, std::string_view file_name)
      : file_(file), file_name_(file_name) {}

  SafetensorsHeader read() {
    const std::uint64_t length = header_length();
    const std::string_view text = as_text(file_.subspan(kLengthBytes, length));
    const Json json = parse_json(text, cat(file_name_, ": header"));
    if (!json.is_object())
      throw refuse(cat("the header is ", json.describe(), ", not an object.", kDamaged));
    header_.data_offset = kLengthBytes + length;
    data_size_ = file_.size() - header_.data_offset;
    for (const Json::Member& member : json.members()) {
      if (member.repeated) throw refuse(member, cat("the name is given more than once.", kDamaged));
      if (member.key == kMetadataKey) {
        read_metadata(member.value);
      } else {
        header_.tensors.push_back(read_tensor(member));
      }
    }
    check_coverage();
    std::sort(header_.tensors.begin(), header_.tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) { return a.name < b.name; });
    return std::move(header_);
  }

 private:
  Error refuse(std::string_view what) const {
    return Error(Code::invalid_argument, cat(file_name_, ": ", what));
  }

  Error refuse(const Json::Member& tensor, std::string_view what) const {
    return refuse_tensor(tensor.key, what);
  }

  Error refuse_tensor(std::string_view name, std::string_view what) const {
    return refuse(cat("tensor ", quote(name), ": ", what));
  }

  // For a file that does not even start as it should. Asked last: the first bytes of other formats
  // can be a length, too.
  Error refuse_start(std::string_view what) const {
    const auto other = other_format(as_text(file_.first(std::min<std::size_t>(file_.size(), 64))));
    return other ? refuse(cat("this is ", *other)) : refuse(what);
  }

  // The length that the file claims for its header, checked against the file.
  std::uint64_t header_length() const {
    if (file_.size() < kLengthBytes) {
      throw refuse_start(cat("the file has ", file_.size(),
                             " bytes; a safetensors file has at least ", kLengthBytes, ".",
                             kIncomplete));
    }
    std::uint64_t length = 0;  // little-endian
    for (std::size_t i = kLengthBytes; i-- > 0;)
      length = length << 8 | std::to_integer<std::uint64_t>(file_[i]);
    if (length > kMaxSafetensorsHeader) {
      throw refuse_start(cat("the header claims ", length, " bytes; the limit is ",
                             kMaxSafetensorsHeader,
                             ". This is not a safetensors file, or it is damaged."));
    }
    if (length > file_.size() - kLengthBytes) {
      throw refuse_start(cat("the header claims ", length, " bytes, but the file has only ",
                             file_.size() - kLengthBytes, " behind its first ", kLengthBytes, ".",
                             kIncomplete));
    }
    return length;
  }

  void read_metadata(const Json& json) {
    if (json.is_null()) return;
    try {
      for (const Json::Member& member : json.members()) {
        header_.metadata.emplace_back(member.key, member.value.as_string());
      }
    } catch (const Error& error) {
      throw refuse(
          cat(kMetadataKey, ": ", in_header(error), " It has to be an object of texts.", kDamaged));
    }
  }

  TensorEntry read_tensor(const Json::Member& member) const {
    TensorEntry tensor{.name = member.key};
    std::uint64_t begin = 0, end = 0;
    try {
      tensor.dtype = read_dtype(member);
      for (const Json& size : member.value.at("shape").as_array())
        tensor.shape.push_back(read_dimension(size));
      const Json& offsets = member.value.at("data_offsets");
      if (offsets.as_array().size() != 2) {
        throw Error(Code::invalid_argument,
                    cat(offsets.where(), ": expected two offsets, got ", offsets.describe()));
      }
      begin = offsets.at(std::size_t{0}).as_uint64();
      end = offsets.at(std::size_t{1}).as_uint64();
    } catch (const Error& error) {
      if (error.code() == Code::unsupported) throw;
      throw refuse(member, cat(in_header(error), kDamaged));
    }
    if (end < begin)
      throw refuse(
          member, cat("it ends at byte ", end, " before its begin at byte ", begin, ".", kDamaged));
    tensor.offset = begin;  // in the data section, until check_coverage() has seen it
    tensor.size = end - begin;
    check_size(tensor);
    return tensor;
  }

  DType read_dtype(const Json::Member& member) const {
    const Json& json = member.value.at("dtype");
    if (const auto dtype = parse_safetensors_dtype(json.as_string())) return *dtype;
    if (json.as_string() == "F8_E8M0") return DType::u8;  // bare exponents: scales of mxfp8
    throw Error(Code::unsupported, cat(file_name_, ": tensor ", quote(member.key),
                                       ": the element type ", quote(json.as_string()),
                                       " is not known here. Use a file of another precision."));
  }

  static std::int64_t read_dimension(const Json& json) {
    const std::int64_t size = json.as_int64();
    if (size < 0)
      throw Error(Code::invalid_argument,
                  cat(json.where(), ": the shape holds the negative size ", size));
    return size;
  }

  // The bytes of the shape have to be the bytes between the offsets.
  void check_size(const TensorEntry& tensor) const {
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t bytes = dtype_size(tensor.dtype);
    for (const std::int64_t size : tensor.shape) {
      const auto factor = static_cast<std::uint64_t>(size);
      if (factor != 0 && bytes > kMax / factor) {
        throw refuse_tensor(tensor.name,
                            cat("the shape [", join(tensor.shape, ", "), "] of ",
                                dtype_name(tensor.dtype), " has more than 2^64 bytes.", kDamaged));
      }
      bytes *= factor;
    }
    if (bytes != tensor.size) {
      throw refuse_tensor(
          tensor.name,
          cat("the shape [", join(tensor.shape, ", "), "] of ", dtype_name(tensor.dtype), " has ",
              bytes, " bytes, but the offsets ", tensor.offset, " to ", tensor.offset + tensor.size,
              " have ", tensor.size, ".", kDamaged));
    }
  }

  // The tensors have to fill the data section to its last byte, without overlap. Makes their
  // offsets those of the file.
  void check_coverage() {
    std::vector<TensorEntry>& tensors = header_.tensors;
    std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
      return std::pair(a.offset, a.size) < std::pair(b.offset, b.size);
    });
    for (const TensorEntry& tensor : tensors) {
      if (tensor.offset <= data_size_ && tensor.size <= data_size_ - tensor.offset) continue;
      throw refuse_tensor(tensor.name,
                          cat("it ends at byte ", tensor.offset + tensor.size,
                              " of the data section, but the file has only ", data_size_,
                              " there (file size ", file_.size(), ").", kIncomplete));
    }
    std::uint64_t covered = 0;
    for (TensorEntry& tensor : tensors) {
      if (tensor.offset != covered) {
        throw refuse_tensor(
            tensor.name,
            cat("it begins at byte ", tensor.offset,
                " of the data section, but the tensor before ends at ", covered, ": ",
                tensor.offset < covered ? "they overlap." : "there is a hole.", kDamaged));
      }
      covered += tensor.size;
      tensor.offset += header_.data_offset;
    }
    if (covered != data_size_) {
      throw refuse(cat("the tensors end at byte ", covered, " of the data section, but it has ",
                       data_size_, ".", kDamaged));
    }
  }

  std::span<const std::byte> file_;
  std::string_view file_name_;
  std::uint64_t data_size_ = 0;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view file_name) {
  return Reader(file, file_name).read();
}

}  // namespace heddle::engine
