#include "engine/files/pytorch.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/files/checkpoint.h"
#include "engine/files/pickle.h"
#include "tests/support/golden_files.h"
#include "tests/support/pytorch_writer.h"
#include "tests/support/refusal.h"

using namespace heddle::engine;
using namespace heddle::test;

BOOST_AUTO_TEST_SUITE(pytorch)

namespace {

std::filesystem::path file_of(std::string_view name) {
  return tests_folder() / "engine/files/pytorch" / name;
}

std::string content_of(std::string_view name) {
  std::ifstream in(file_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

PytorchContent parse_file(const std::string& file) {
  return parse_pytorch(std::as_bytes(std::span(file)), "m.pt");
}

// The refusal's sentence, behind the file's name.
std::string why(const std::string& file) {
  const std::string text = refusal_of([&] { parse_file(file); }).what();
  BOOST_TEST(text.starts_with("m.pt: "), text);
  return text.substr(std::min<std::size_t>(text.size(), 6));
}

void is_refused(const std::string& file, std::string_view part) {
  const std::string text = why(file);
  BOOST_TEST(text.find(part) != text.npos, text << " lacks: " << part);
}
void pickle_is_refused(const std::string& pickle, std::string_view part) {
  is_refused(pytorch_bytes(pickle), part);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

std::string tensor_file(std::int32_t first, const std::vector<std::int32_t>& shape,
                        const std::vector<std::int32_t>& strides) {
  return pytorch_bytes(pickled_dict("w", pickled_tensor("0", 6, first, shape, strides)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_of_every_format_hold_the_same_tensors) {
  const Checkpoint expected = open_checkpoint(file_of("every.safetensors"));
  BOOST_REQUIRE(expected.tensors().size() == 16u);
  for (const char* name : {"zip.ckpt", "legacy.pth", "protocol_4.pt"}) {
    const Checkpoint read = open_checkpoint(file_of(name));
    BOOST_TEST(read.tensors().size() == 16u, name);
    for (const TensorView& tensor : expected.tensors()) {
      const TensorView& same = read.at(tensor.name);
      BOOST_TEST((same.dtype == tensor.dtype), name << " " << tensor.name);
      BOOST_TEST((same.shape == tensor.shape), name << " " << tensor.name);
      BOOST_TEST(
          std::equal(same.data.begin(), same.data.end(), tensor.data.begin(), tensor.data.end()),
          name << " " << tensor.name);
    }
  }
}

BOOST_AUTO_TEST_CASE(views_of_one_storage_share_its_bytes) {
  const Checkpoint read = open_checkpoint(file_of("zip.ckpt"));
  const TensorView &view = read.at("view"), &other = read.at("same_storage");
  BOOST_TEST(view.data.data() == other.data.data() + 16);  // elements 6 and 2 of the storage
}

BOOST_AUTO_TEST_CASE(types_without_a_storage_of_their_own_are_read) {
  const Checkpoint read = open_checkpoint(file_of("untyped.pt"));
  BOOST_TEST((read.at("x").dtype == DType::f8_e4m3));
  BOOST_TEST((read.at("y").dtype == DType::u16));
  BOOST_TEST(read.at("y").data.size() == 4u);
}

BOOST_AUTO_TEST_CASE(dicts_in_dicts_are_named_by_their_ways) {
  const Checkpoint read = open_checkpoint(file_of("nested.pt"));
  BOOST_REQUIRE(read.tensors().size() == 1u);
  BOOST_TEST(read.tensors()[0].name == "string_to_param.*");
}

// As trainers save hypernetworks: {32: (OrderedDict(linear.0.weight=...), ...), ...,
// "activation_func": ...}.
BOOST_AUTO_TEST_CASE(lists_under_numbers_and_what_a_file_says_of_itself_are_read) {
  const Checkpoint read = open_checkpoint(tests_folder() / "plugins/goldens/unet/hypernetwork.pt");
  BOOST_TEST(read.tensors().size() == 32u);
  BOOST_TEST((read.at("32.1.linear.2.weight").shape == std::vector<std::int64_t>{32, 16}));
  BOOST_TEST(read.metadata("activation_func").value_or("") == "mish");
  BOOST_TEST(read.metadata("is_layer_norm").value_or("") == "true");
  BOOST_TEST(read.metadata("activate_output").value_or("") == "false");
  BOOST_TEST(!read.metadata("step").has_value());
}

BOOST_AUTO_TEST_CASE(files_are_the_same_only_with_the_same_tensors) {
  const auto one = parse_file(tensor_file(0, {6}, {1})), two = parse_file(tensor_file(0, {5}, {1}));
  BOOST_TEST((one.hash == parse_file(tensor_file(0, {6}, {1})).hash));
  BOOST_TEST((one.hash != two.hash));
}

BOOST_AUTO_TEST_CASE(a_model_under_a_known_name_is_the_file) {
  const std::string tensor = pickled_tensor("0", 6, 0, {6}, {1});
  for (const char* name :
       {"model_state_dict", "state_dict", "params_ema", "params", "model", "net"}) {
    const std::string inner = "}" + pickled_text("w") + tensor + "s";
    const std::string pickle =
        "\x80\x02}" + pickled_text(name) + inner + "s" + pickled_text("other") + tensor + "s.";
    const PytorchContent read = parse_file(pytorch_bytes(pickle));
    BOOST_REQUIRE(read.tensors.size() == 1u);
    BOOST_TEST(read.tensors[0].name == "w");
  }
}

BOOST_AUTO_TEST_CASE(what_would_run_code_is_refused_with_its_name) {
  is_refused(content_of("calls.pt"), "it asks Python for 'posix.system'. Only tensors");
  is_refused(content_of("calls.pth"), "it asks Python for 'posix.system'");
  for (const char* call :
       {"cos\nsystem\n", "cbuiltins\neval\n", "c__builtin__\nexec\n", "csubprocess\nPopen\n",
        "crunpy\n_run_code\n", "ctorch\nload\n", "ctorch.hub\nload\n",
        "ctorch._utils\n_rebuild_tensor_v2.__globals__\n"}) {
    const std::string names = pickled_dict("w", call);
    pickle_is_refused(names, "it asks Python for '");
    pickle_is_refused(pickled_dict("w", call + pickled_numbers({1}) + "R"), "it asks Python for '");
  }
  pickle_is_refused("\x80\x04\x8c\x02os\x8c\x06system\x93.", "it asks Python for 'os.system'");
  pickle_is_refused(
      "\x80\x02(U\x04"
      "trueios\nsystem\n.",
      "it makes an object of a class");
  pickle_is_refused(
      "\x80\x02"
      "ctorch\nSize\n)\x81.",
      "it makes an object of a class");
  pickle_is_refused("\x80\x02\x82\x01.", "extension registry");
  pickle_is_refused("\x80\x02K\x01)R.", "it calls an integer");
  pickle_is_refused("\x80\x02K\x01}b.", "it sets the state of an integer");
  pickle_is_refused(
      "\x80\x02"
      "ctorch\nSize\n)RK\x01K\x02s.",
      "it sets an item of an object");
  pickle_is_refused("I1\n.", "it is of protocol 0");
  pickle_is_refused("\x80\x04\x8f.", "it holds a set");
  pickle_is_refused(
      "\x80\x02"
      "ccollections\nOrderedDict\n]\x85R.",
      "as Python 2 did");
}

BOOST_AUTO_TEST_CASE(pickles_that_swell_are_refused) {
  // Each list holds the one before ten times: small here, as nothing is copied.
  std::string lists = "\x80\x02]q";
  lists += '\0';
  for (char i = 1; i < 40; ++i) {
    lists += "](";
    for (int times = 0; times < 10; ++times) lists += std::string("h") + char(i - 1);
    lists += std::string("eq") + i;
  }
  pickle_is_refused(lists + ".", "the file holds a list");
  // Dicts of dicts: as many names as ways.
  std::string dicts = "\x80\x02}" + pickled_text("w") + pickled_tensor("0", 6, 0, {6}, {1}) + "sq";
  dicts += '\0';
  for (char i = 1; i < 8; ++i) {
    dicts += "}(";
    for (char key = 'a'; key < 'z'; ++key)
      dicts += pickled_text(std::string(1, key)) + "h" + char(i - 1);
    dicts += std::string("uq") + i;
  }
  pickle_is_refused(dicts + ".", "which no model has");
  std::string circle = "\x80\x02}q";
  circle += std::string(1, '\0') + "(" + pickled_text("a") + "h" + std::string(1, '\0') +
            pickled_text("b") + "Nu.";
  pickle_is_refused(circle, "its dicts are nested deeper than 8");
  pickle_is_refused("\x80\x02" + repeated("(", 2000), "it is nested deeper than 1000");
  pickle_is_refused("\x80\x02" + repeated("N", kMaxPickledValues + 1), "it has more than 1048576");
  pickle_is_refused("\x80\x02N" + repeated("\x94", kMaxPickledValues + 1), "remembers more values");
}

BOOST_AUTO_TEST_CASE(damaged_pickles_are_refused) {
  pickle_is_refused("", "it wants 1 more bytes, but only 0 are left");
  pickle_is_refused("\x80\x09.", "the protocol 9 is not known");
  pickle_is_refused("\x80\x02\xff.", "there is no opcode 255");
  pickle_is_refused("\x80\x02.", "it takes a value that is not there");
  pickle_is_refused("\x80\x02u.", "from a mark that is not there");
  pickle_is_refused("\x80\x02}(Nu.", "a key of a dict has no value");
  pickle_is_refused("\x80\x02h\x07.", "it has no value with the number 7");
  pickle_is_refused("\x80\x02(NN\x87.", "it takes a value that is not there");
  pickle_is_refused(
      "\x80\x02X\xff\xff\xff\xff"
      "a",
      "it wants 4294967295 more bytes");
  pickle_is_refused("\x80\x02\x8b\xff\xff\xff\xff", "it wants 4294967295 more bytes");
  pickle_is_refused("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
                    "it wants 18446744073709551615");
  pickle_is_refused(
      "\x80\x02"
      "ctorch",
      "a name has no end");
  const std::string whole = content_of("zip.ckpt"), legacy = content_of("legacy.pth");
  for (std::size_t size = 0; size < whole.size(); size += 97)
    BOOST_TEST(!why(whole.substr(0, size)).empty());
  for (std::size_t size = 0; size < legacy.size(); size += 31)
    BOOST_TEST(!why(legacy.substr(0, size)).empty());
}

BOOST_AUTO_TEST_CASE(tensors_that_pass_their_storage_are_refused) {
  is_refused(tensor_file(1, {6}, {1}), "tensor 'w': its 6 elements from 1 on pass the 6");
  is_refused(tensor_file(7, {0}, {1}), "its 0 elements from 7 on pass");
  is_refused(tensor_file(0, {7}, {1}), "its 7 elements from 0 on pass");
  is_refused(tensor_file(-1, {1}, {1}), "from -1 on pass");
  is_refused(tensor_file(0, {-1}, {1}), "its shape or strides hold an integer (-1)");
  is_refused(tensor_file(0, {2, 3}, {1}), "it has 2 axes, but 1 strides");
  is_refused(tensor_file(0, {2, 3}, {1, 2}),
             "it is not contiguous: the shape (2, 3) has the strides");
  is_refused(tensor_file(0, {6}, {0}), "it is not contiguous");
  is_refused(tensor_file(0, {2000000000, 2000000000}, {2000000000, 1}), "more than 2^52 elements");
  is_refused(tensor_file(0, std::vector<std::int32_t>(9, 1), std::vector<std::int32_t>(9, 1)),
             "tensor 'w': it has 9 axes, at most 8");
  BOOST_TEST(
      parse_file(tensor_file(0, std::vector<std::int32_t>(8, 1), std::vector<std::int32_t>(8, 1)))
          .tensors.size() == 1u);
  const std::string elsewhere = pickled_dict("w", pickled_tensor("9", 6, 0, {6}, {1}));
  pickle_is_refused(elsewhere, "its storage '9' is not in the file");
  is_refused(content_of("transposed.pt"), "tensor 'w': it is not contiguous");
  is_refused(content_of("complex.pt"), "'torch.ComplexFloatStorage'");
}

BOOST_AUTO_TEST_CASE(numbers_that_are_no_small_integers_are_refused) {
  const std::string tensor = pickled_tensor("0", 6, 0, {6}, {1});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = tensor;
    const std::size_t at = changed.rfind(from);
    BOOST_REQUIRE(at != changed.npos);
    return pickled_dict("w", changed.replace(at, from.size(), to));
  };
  const std::string large = "\x8a\x09" + std::string(8, '\0') + "\x01",
                    first = "Q" + pickled_number(0), shape = pickled_numbers({6});
  pickle_is_refused(with(first, "Q" + large), "at an integer (of 9 bytes)");
  pickle_is_refused(with(first, "QN"), "at None (no number)");
  pickle_is_refused(with(first, "Q" + pickled_text("2")), "at a text ('2')");
  pickle_is_refused(with(shape, "(" + large + "t"), "hold an integer (of 9 bytes)");
  std::string file = content_of("legacy.pth");
  const std::size_t version = file.find("M\xe9\x03.");
  BOOST_REQUIRE(version != file.npos);
  is_refused(std::string(file).replace(version, 3, large), "the version of 9 bytes");
  // Of a dict that is no tensor's name: two such keys would be the same one.
  BOOST_TEST(parse_file(pytorch_bytes("\x80\x02}" + large + tensor + "s.")).tensors.empty());
}

BOOST_AUTO_TEST_CASE(zip_files_that_are_no_weights_are_refused) {
  // Its code is compressed, and nobody looks at it.
  is_refused(zip_bytes({{"m/code/m.py", "x", 8}, {"m/constants.pkl", ""}, {"m/data.pkl", ""}}),
             "this is a TorchScript program");
  is_refused(zip_bytes({{"word/document.xml", "<a/>"}}), "it has no 'data.pkl'");
  const std::string pickle = pickled_dict("w", pickled_tensor("0", 6, 0, {6}, {1}));
  const std::string bytes(24, 'x');
  is_refused(zip_bytes({{"m/data.pkl", pickle}, {"m/data/0", bytes, 8}}),
             "'m/data/0' is compressed or encrypted");
  is_refused(zip_bytes({{"m/data.pkl", pickle}, {"m/byteorder", "big"}}), "byte order is 'big'");
  is_refused(zip_bytes({{"m/data.pkl", pickle}, {"m/data/0", bytes, 0, 1u << 31}}),
             "is to have 2147483648 bytes from byte ");
  is_refused(zip_bytes({{"m/data.pkl", pickle}, {"m/data/0", bytes, 0, 80}, {"m/data/1", bytes}}),
             "overlaps the one before");
  is_refused(zip_bytes({{"m/data/0", bytes}, {"m/data/0", bytes}, {"m/data.pkl", pickle}}),
             "the entry 'm/data/0' is there twice");
  is_refused(std::string("\x80\x02N."), "this is a pickle, but not one of torch.save");
}

BOOST_AUTO_TEST_CASE(storages_behind_the_pickles_have_to_be_whole) {
  std::string file = content_of("legacy.pth");
  is_refused(file.substr(0, file.size() - 1), "bytes, but the file has only ");
  const std::size_t little = file.find("little_endianq");
  BOOST_REQUIRE(little != file.npos);
  file[little + 15] = '\x89';  // False
  is_refused(file, "the file is big-endian");
}

BOOST_AUTO_TEST_SUITE_END()
