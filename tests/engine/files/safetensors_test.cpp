#include "engine/files/safetensors.h"

#include <boost/test/unit_test.hpp>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/support/golden_files.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(safetensors_test)

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

SafetensorsHeader parse(const std::string& content) {
  return parse_safetensors(bytes_of(content), "w.safetensors");
}

// The message without the file's name, which every message has to start with.
std::string refusal(const std::string& content) {
  const std::string message = refusal_of([&] { parse(content); }).what();
  constexpr std::string_view kName = "w.safetensors: ";
  return message.starts_with(kName) ? message.substr(kName.size())
                                    : "without file name: " + message;
}

std::string one_tensor(const std::string& entry, const std::string& data = "") {
  return with_length("{\"x\":" + entry + "}", data);
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    int value = 0;
    std::from_chars(digits.data() + i, digits.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string read_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Written by make_goldens.py.
Json goldens() {
  const auto path = tests_folder() / "engine/files/safetensors_goldens.json";
  return parse_json(read_file(path), path.native());
}

void compare(const SafetensorsHeader& header, const std::string& content, const Json& golden) {
  const Json& tensors = golden.at("tensors");
  BOOST_REQUIRE(header.tensors.size() == tensors.size());
  for (const TensorEntry& entry : header.tensors) {
    BOOST_TEST_CONTEXT(quote(entry.name)) {
      const Json& expected = tensors.at(entry.name);
      BOOST_TEST(safetensors_name(entry.dtype) == expected.at("dtype").as_string());
      Json shape = Json::array();
      for (const std::int64_t size : entry.shape) shape.push(size);
      BOOST_TEST((shape == expected.at("shape")));
      BOOST_TEST(
          (content.substr(entry.offset, entry.size) == from_hex(expected.at("data").as_string())));
    }
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : header.metadata) metadata.set(key, value);
  BOOST_TEST((metadata == golden.at("metadata")));
}

}  // namespace

// The one exception is a name given twice: the format forbids it, the reference implementation
// takes the last one.
BOOST_AUTO_TEST_CASE(accepts_refuses_and_reads_as_the_reference_implementation_does) {
  const Json json = goldens();
  int accepted = 0, refused = 0;
  for (const Json& golden : json.at("cases").as_array()) {
    const std::string& name = golden.at("name").as_string();
    const std::string content = from_hex(golden.at("content").as_string());
    BOOST_TEST_CONTEXT(name) {
      if (golden.at("accepted").as_bool() && name != "repeated_name") {
        ++accepted;
        BOOST_CHECK_NO_THROW(compare(parse(content), content, golden));
      } else {
        ++refused;
        const std::string message = refusal(content);
        BOOST_TEST(message != "without file name: nothing was thrown");
        BOOST_TEST(!message.starts_with("without file name"), message);
      }
    }
  }
  BOOST_TEST(accepted == 13);
  BOOST_TEST(refused == 41);
}

BOOST_AUTO_TEST_CASE(tensors_are_sorted_by_name_with_offsets_in_the_file) {
  const SafetensorsHeader header = parse(
      safetensors_bytes({{"b", "U8", {2}, "bb"}, {"a", "F32", {1, 1}, "aaaa"}}, {{"k", "v"}}));
  BOOST_REQUIRE(header.tensors.size() == 2u);
  BOOST_TEST(header.tensors[0].name == "a");
  BOOST_TEST(header.tensors[0].offset == header.data_offset + 2);
  BOOST_TEST(header.tensors[0].size == 4u);
  BOOST_TEST(header.tensors[1].name == "b");
  BOOST_TEST(header.tensors[1].offset == header.data_offset);
  BOOST_TEST(header.metadata.at(0).first == "k");
  BOOST_TEST(header.metadata.at(0).second == "v");
}

BOOST_AUTO_TEST_CASE(truncated_file_is_called_incomplete_with_both_sizes) {
  std::string content = safetensors_bytes({{"a", "U8", {2}, "aa"}, {"b", "U8", {4}, "bbbb"}});
  content.pop_back();
  BOOST_TEST(refusal(content) ==
             cat("tensor 'b': it ends at byte 6 of the data section, but the file has only 5 there "
                 "(file size ",
                 content.size(), "). The download is probably incomplete; fetch the file again."));
  for (std::size_t size = 0; size < content.size(); ++size) {
    const std::string message = refusal(content.substr(0, size));
    BOOST_TEST(message.ends_with("The download is probably incomplete; fetch the file again."),
               message);
  }
}

BOOST_AUTO_TEST_CASE(lying_header_length_is_refused_by_its_number_alone) {
  std::string content = safetensors_bytes({{"a", "U8", {2}, "aa"}});
  content.replace(0, 8, std::string("\x00\xe8\x76\x48\x17\x00\x00\x00", 8));  // 100,000,000,000
  BOOST_TEST(
      refusal(content) ==
      "the header claims 100000000000 bytes; the limit is 100000000. This is not a safetensors "
      "file, or it is damaged.");
  BOOST_TEST(refusal(with_length("{}").replace(0, 1, 1, '\x05')) ==
             "the header claims 5 bytes, but the file has only 2 behind its first 8. The download "
             "is probably incomplete; "
             "fetch the file again.");
}

BOOST_AUTO_TEST_CASE(header_errors_name_tensor_place_and_value) {
  const std::string damaged =
      " The file is damaged or was written by a faulty program; fetch or convert it again.";
  BOOST_TEST(refusal(one_tensor("{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}", "a")) ==
             "tensor 'x': header:1:29: the shape holds the negative size -1." + damaged);
  BOOST_TEST(
      refusal(one_tensor("{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}", "a")) ==
      "tensor 'x': header:1:29: expected an integer, got the number 1.0." + damaged);
  BOOST_TEST(refusal(one_tensor("{\"dtype\":\"U8\",\"shap\":[1],\"data_offsets\":[0,1]}", "a")) ==
             "tensor 'x': header:1:6: the object has no member 'shape'. Did you mean 'shap'?" +
                 damaged);
  BOOST_TEST(refusal(one_tensor("{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}", "a")) ==
             "tensor 'x': header:1:47: expected two offsets, got an array of 1 element." + damaged);
  BOOST_TEST(refusal(one_tensor("{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}", "a")) ==
             "tensor 'x': it ends at byte 0 before its begin at byte 1." + damaged);
  BOOST_TEST(
      refusal(one_tensor("{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,1]}", "a")) ==
      "tensor 'x': the shape [2, 3] of f16 has 12 bytes, but the offsets 0 to 1 have 1." + damaged);
  BOOST_TEST(refusal(one_tensor(
                 "{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}")) ==
             "tensor 'x': the shape [2305843009213693952] of f64 has more than 2^64 bytes." +
                 damaged);
  BOOST_TEST(refusal(with_length("{\"x\":}")) == "header:1:6: expected a value");
  BOOST_TEST(refusal(with_length("[]")) ==
             "the header is an array of 0 elements, not an object." + damaged);
  BOOST_TEST(refusal(with_length("{\"__metadata__\":{\"a\":1}}")) ==
             "__metadata__: header:1:22: expected a text, got the integer 1. It has to be an "
             "object of texts." +
                 damaged);
}

BOOST_AUTO_TEST_CASE(holes_overlaps_and_bytes_left_over_are_named) {
  const std::string damaged =
      " The file is damaged or was written by a faulty program; fetch or convert it again.";
  const auto two = [](int begin, int end, const std::string& data) {
    return with_length(cat("{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},\"y\":{"
                           "\"dtype\":\"U8\",\"shape\":[",
                           end - begin, "],\"data_offsets\":[", begin, ",", end, "]}}"),
                       data);
  };
  BOOST_TEST(refusal(two(3, 4, "abcd")) ==
             "tensor 'y': it begins at byte 3 of the data section, but the tensor before ends at "
             "2: there is a hole." +
                 damaged);
  BOOST_TEST(refusal(two(1, 4, "abcd")) ==
             "tensor 'y': it begins at byte 1 of the data section, but the tensor before ends at "
             "2: they overlap." +
                 damaged);
  BOOST_TEST(refusal(two(2, 4, "abcdef")) ==
             "the tensors end at byte 4 of the data section, but it has 6." + damaged);
  BOOST_CHECK_NO_THROW(parse(two(2, 4, "abcd")));
}

BOOST_AUTO_TEST_CASE(repeated_name_and_unknown_type_are_refused) {
  const std::string entry = "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}";
  BOOST_TEST(refusal(with_length("{\"x\":" + entry + ",\"x\":" + entry + "}", "a"))
                 .starts_with("tensor 'x': the name is given more than once."));
  const std::string unknown =
      one_tensor("{\"dtype\":\"F6_E2M3\",\"shape\":[1],\"data_offsets\":[0,1]}", "a");
  BOOST_TEST(
      refusal(unknown) ==
      "tensor 'x': the element type 'F6_E2M3' is not known here. Use a file of another precision.");
  BOOST_TEST((refusal_of([&] { parse(unknown); }).code() == Code::unsupported));
}

BOOST_AUTO_TEST_CASE(other_kinds_of_files_are_recognised) {
  BOOST_TEST(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n") ==
             "this is a Git LFS pointer. Run 'git lfs pull' to get the file itself.");
  BOOST_TEST(refusal("<!DOCTYPE html><html></html>").starts_with("this is a web page"));
  BOOST_TEST(refusal("GGUF\3\0\0\0aaaaaaaa").starts_with("this is a GGUF file"));
  BOOST_TEST(refusal(std::string("PK\3\4\0\0\x08\x08") + "aaaa")
                 .starts_with("this is a zip file, perhaps one of torch.save"));
}

BOOST_AUTO_TEST_CASE(header_that_begins_like_another_format_is_still_read) {
  // A header of 60 bytes makes '<' the first byte of the file.
  const std::string header = "{}" + std::string(58, ' ');
  BOOST_TEST(with_length(header).starts_with('<'));
  BOOST_CHECK_NO_THROW(parse(with_length(header)));
}

BOOST_AUTO_TEST_CASE(file_of_24_gigabytes_costs_its_header_only) {
  const TemporaryFolder folder;
  std::vector<FileTensor> tensors;
  for (int i = 0; i < 24; ++i)
    tensors.push_back({cat("block.", i, ".weight"), "BF16", {1 << 15, 1 << 14}});
  write_header_only(folder / "large.safetensors", tensors);
  const TensorFile file = open_tensor_file(folder / "large.safetensors");
  BOOST_TEST(file.tensors.size() == 24u);
  BOOST_TEST(file.mapping->size() > std::uint64_t{24} << 30);
  const TensorEntry& last = file.tensors.back();
  BOOST_TEST(std::to_integer<int>(file.mapping->bytes()[last.offset + last.size - 1]) == 0);
}

BOOST_AUTO_TEST_CASE(header_hash_depends_on_the_header_and_not_on_the_data) {
  const TemporaryFolder folder;
  const auto hash = [&](const std::string& content) {
    return hex(open_tensor_file(folder.write("a.safetensors", content)).header_hash);
  };
  const std::string first = hash(safetensors_bytes({{"a", "U8", {2}, "aa"}}));
  BOOST_TEST(hash(safetensors_bytes({{"a", "U8", {2}, "bb"}})) == first);
  BOOST_TEST(hash(safetensors_bytes({{"b", "U8", {2}, "aa"}})) != first);
}

BOOST_AUTO_TEST_CASE(opening_names_the_path_in_every_error) {
  const TemporaryFolder folder;
  const auto path = folder.write("bad.safetensors", "abc");
  BOOST_TEST(std::string(refusal_of([&] { open_tensor_file(path); }).what())
                 .starts_with(path.string() + ": the file has 3 bytes"));
  BOOST_TEST((refusal_of([&] { open_tensor_file(folder / "none.safetensors"); }).code() ==
              Code::not_found));
}

BOOST_AUTO_TEST_SUITE_END()
