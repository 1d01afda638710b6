#include "engine/files/gguf.h"

#include <sys/mman.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "engine/files/checkpoint.h"
#include "engine/files/checkpoint_cache.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(gguf)

namespace {

GgufHeader parse(const std::string& file) {
  return parse_gguf(std::as_bytes(std::span(file)), "m.gguf");
}

// The refusal's sentence, which begins with the file's name.
std::string refusal(const std::string& file) {
  const std::string text = refusal_of([&] { parse(file); }).what();
  BOOST_TEST(text.starts_with("m.gguf: "), text);
  return text.substr(std::min<std::size_t>(text.size(), 8));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::string zeros(std::size_t bytes) { return std::string(bytes, '\0'); }

GgufContent two_tensors() {
  return {.entries = {{"general.architecture", kGgufText, gguf_text("flux")}},
          .tensors = {{"b.weight", kGgmlQ8_0, {64, 3}, zeros(3 * 68)},
                      {"a.bias", kGgmlF32, {3}, "abcdefghijkl"}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_are_sorted_with_their_outermost_axis_first) {
  const std::string file = gguf_bytes(two_tensors());
  const GgufHeader header = parse(file);
  BOOST_REQUIRE(header.tensors.size() == 2u);
  const TensorEntry &a = header.tensors[0], &b = header.tensors[1];
  BOOST_TEST(a.name == "a.bias");
  BOOST_TEST((a.dtype == DType::f32));
  BOOST_TEST((a.shape == std::vector<std::int64_t>{3}));
  BOOST_TEST(file.substr(a.offset, a.size) == "abcdefghijkl");
  BOOST_TEST(b.name == "b.weight");
  BOOST_TEST((b.dtype == DType::q8_0));
  BOOST_TEST((b.shape == std::vector<std::int64_t>{3, 64}));
  BOOST_TEST(b.size == 3u * 2 * 34);
  BOOST_TEST(b.offset == header.data_offset);
  BOOST_TEST(header.data_offset % 32 == 0u);
}

BOOST_AUTO_TEST_CASE(every_type_has_the_bytes_of_its_blocks) {
  struct Case {
    std::uint32_t type;
    DType dtype;
    std::uint64_t bytes;  // of 256 elements
  };
  for (const Case& one : {Case{0, DType::f32, 1024},
                          {1, DType::f16, 512},
                          {30, DType::bf16, 512},
                          {2, DType::q4_0, 144},
                          {3, DType::q4_1, 160},
                          {6, DType::q5_0, 176},
                          {7, DType::q5_1, 192},
                          {8, DType::q8_0, 272},
                          {12, DType::q4_k, 144},
                          {13, DType::q5_k, 176},
                          {14, DType::q6_k, 210}}) {
    const GgufHeader header =
        parse(gguf_bytes({.tensors = {{"x", one.type, {256}, zeros(one.bytes)}}}));
    BOOST_TEST((header.tensors.at(0).dtype == one.dtype));
    BOOST_TEST(header.tensors.at(0).size == one.bytes);
  }
}

BOOST_AUTO_TEST_CASE(entries_become_text_and_long_arrays_are_left_out) {
  std::vector<std::string> words, few;
  for (int i = 0; i < 20; ++i) words.push_back(gguf_text("w"));
  for (std::int32_t i : {3, -4}) few.push_back(gguf_number(i));
  const GgufHeader header =
      parse(gguf_bytes({.entries = {{"text", kGgufText, gguf_text("a b")},
                                    {"small", kGgufU8, gguf_number(std::uint8_t(200))},
                                    {"float", kGgufF32, gguf_number(0.5f)},
                                    {"yes", kGgufBool, gguf_number(std::uint8_t(1))},
                                    {"large", kGgufU64, gguf_number(~std::uint64_t(0))},
                                    {"words", kGgufArray, gguf_array(kGgufText, words)},
                                    {"few", kGgufArray, gguf_array(kGgufI32, few)}}}));
  const Metadata expected = {{"text", "a b"},
                             {"small", "200"},
                             {"float", "0.5"},
                             {"yes", "true"},
                             {"large", "18446744073709551615"},
                             {"few", "[3, -4]"}};
  BOOST_TEST((header.metadata == expected));
}

BOOST_AUTO_TEST_CASE(a_tensor_stored_in_another_shape_gets_its_own_one_back) {
  const auto shape_of = [](std::vector<std::int32_t> shape) {
    std::vector<std::string> members;
    for (const std::int32_t size : shape) members.push_back(gguf_number(size));
    return gguf_bytes(
        {.entries = {{"comfy.gguf.orig_shape.x", kGgufArray, gguf_array(kGgufI32, members)}},
         .tensors = {{"x", kGgmlF16, {6, 10}, zeros(120)}}});
  };
  BOOST_TEST((parse(shape_of({5, 1, 3, 2, 2})).tensors[0].shape ==
              std::vector<std::int64_t>{5, 1, 3, 2, 2}));
  BOOST_TEST(has(refusal(shape_of({5, 13})), "original shape is given as '[5, 13]'"));
  BOOST_TEST(has(refusal(shape_of({60, -1})), "tensor 'x'"));
  // Of more elements than an i64 counts.
  BOOST_TEST(has(refusal(shape_of({1 << 30, 1 << 30, 1 << 30})), "does not fit"));
}

BOOST_AUTO_TEST_CASE(another_alignment_is_kept_and_a_wrong_one_refused) {
  GgufContent content = two_tensors();
  content.alignment = 64;
  content.entries.push_back({"general.alignment", kGgufU32, gguf_number(std::uint32_t(64))});
  BOOST_TEST(parse(gguf_bytes(content)).data_offset % 64 == 0u);
  content.entries.back().value = gguf_number(std::uint32_t(12));
  BOOST_TEST(has(refusal(gguf_bytes(content)), "general.alignment is '12'"));
}

BOOST_AUTO_TEST_CASE(every_cut_through_a_file_is_refused_as_incomplete) {
  const std::string file = gguf_bytes(two_tensors());
  for (std::size_t size = 4; size < file.size() - 20;
       ++size)  // the last tensor's padding may be missing
    BOOST_TEST(has(refusal(file.substr(0, size)), "fetch the file again"), size);
  BOOST_TEST(has(refusal("GGU"), "no gguf file"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_refused_by_name) {
  const auto of = [](GgufTensor tensor) {
    return refusal(gguf_bytes({.tensors = {std::move(tensor)}}));
  };
  BOOST_TEST(
      has(of({"x", kGgmlQ2_K, {256}, zeros(84)}), "tensor 'x': the type Q2_K is not read here"));
  BOOST_TEST(has(of({"x", 1000, {256}, zeros(84)}), "the type number 1000"));
  BOOST_TEST(has(of({"x", kGgmlQ4_K, {128}, zeros(72)}),
                 "the shape (128) of q4_k has no whole blocks of 256"));
  BOOST_TEST(has(of({"x", kGgmlQ8_0, {}, zeros(34)}), "no whole blocks"));
  BOOST_TEST(has(of({"x", kGgmlF32, {std::uint64_t(1) << 40, std::uint64_t(1) << 40}, ""}),
                 "more than 2^52 elements"));
  BOOST_TEST(has(of({"x", kGgmlF32, {~std::uint64_t(0)}, ""}),
                 "axis 0 has the size 18446744073709551615"));
  BOOST_TEST(has(of({"x", kGgmlF32, {1, 1, 1, 1, 1}, zeros(4)}), "has 5 axes, at most 4"));
  BOOST_TEST(has(of({"x", kGgmlF32, {4}, zeros(16), 16}), "no multiple of 32"));
  BOOST_TEST(has(of({"x", kGgmlF32, {100}, zeros(16)}), "400 bytes from byte 0"));
  BOOST_TEST(has(of({"", kGgmlF32, {1}, zeros(4)}), "the name of tensor 0"));
  BOOST_TEST(has(
      refusal(gguf_bytes(
          {.tensors = {{"x", kGgmlF32, {16}, zeros(64)}, {"y", kGgmlF32, {4}, zeros(16), 32}}})),
      "tensor 'y': it begins at byte 32 of the data section, but the tensor before ends at 64"));
  BOOST_TEST(has(refusal(gguf_bytes({.tensors = {{"x", kGgmlF32, {4}, zeros(16)},
                                                 {"x", kGgmlF32, {4}, zeros(16)}}})),
                 "more than once"));
  GgufContent old = two_tensors();
  old.version = 1;
  BOOST_TEST(has(refusal(gguf_bytes(old)), "version 1 of gguf"));
  old.version = 0x03000000;
  BOOST_TEST(has(refusal(gguf_bytes(old)), "big-endian"));
  const GgufEntry twice{"k", kGgufU8, "1"};
  BOOST_TEST(
      has(refusal(gguf_bytes({.entries = {twice, twice}})), "entry 'k' is given more than once"));
  BOOST_TEST(has(refusal(gguf_bytes({.entries = {{"k", 77, ""}}})), "type 77"));
  BOOST_TEST(has(
      refusal(gguf_bytes({.entries = {{"k", kGgufArray, gguf_array(kGgufArray, {zeros(12)})}}})),
      "array of arrays"));
  BOOST_TEST(has(refusal(gguf_bytes(
                     {.entries = {{"k", kGgufArray,
                                   gguf_number(kGgufU64) + gguf_number(std::uint64_t(1) << 61)}}})),
                 "2305843009213693952 members"));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_opens_it_like_any_other_file_and_maps_it_once) {
  const TemporaryFolder folder;
  const auto path = folder.write("m.gguf", gguf_bytes(two_tensors()));
  CheckpointCache cache;
  const Checkpoint first = cache.open(path), second = cache.open(path);
  BOOST_TEST(first.at("b.weight").file.get() == second.at("b.weight").file.get());
  BOOST_TEST(first.total_bytes() == 3u * 68 + 12);
  BOOST_TEST((first.metadata("general.architecture") == "flux"));
  BOOST_TEST((first.identity() == open_checkpoint(path).identity()));
  // What its content says counts before what its name says.
  BOOST_TEST(
      open_checkpoint(folder.write("m.safetensors", gguf_bytes(two_tensors()))).has("a.bias"));
  BOOST_TEST(has(refusal_of([&] { open_checkpoint(folder.write("short.gguf", "GG")); }).what(),
                 "no gguf file"));
}

// A file of holes may claim to be all header. What is behind it is never read.
BOOST_AUTO_TEST_CASE(a_header_has_an_end) {
  constexpr std::size_t kBytes = std::size_t{1} << 33;
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  BOOST_REQUIRE(memory != MAP_FAILED);
  const auto refused = [&](const std::string& begin) {
    std::ranges::copy(begin, static_cast<char*>(memory));
    return std::string(refusal_of([&] {
                         parse_gguf({static_cast<std::byte*>(memory), kBytes}, "m.gguf");
                       }).what());
  };
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string begin = "GGUF" + number(std::uint32_t{3}) + number(std::uint64_t{0}) +
                            number(std::uint64_t{1}) + number(std::uint64_t{1}) + "k";
  const std::uint64_t many = std::uint64_t{1} << 30;
  const std::uint32_t text = 8, array = 9, byte = 0;
  for (const std::string& entry :
       {number(text) + number(many), number(array) + number(text) + number(many),
        number(array) + number(byte) + number(many)})
    BOOST_TEST(has(refused(begin + entry), "the header ends beyond byte 134217728"));
  ::munmap(memory, kBytes);
}

BOOST_AUTO_TEST_SUITE_END()
