#include "engine/files/checkpoint.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/files/safetensors.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

std::string data_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.data.data()), view.data.size()};
}

std::vector<std::string> names_of(std::span<const TensorView> views) {
  std::vector<std::string> names;
  for (const TensorView& view : views) names.push_back(view.name);
  return names;
}

using Names = std::vector<std::string>;

// A checkpoint of two shards and its index.
struct Shards {
  Shards() {
    write_safetensors(folder / "m-1.safetensors",
                      {{"b", "U8", {2}, "bb"}, {"extra", "U8", {1}, "e"}}, {{"format", "pt"}});
    write_safetensors(folder / "m-2.safetensors",
                      {{"a", "F32", {1}, "aaaa"}, {"c", "U8", {0, 5}, ""}},
                      {{"format", "np"}, {"second", "yes"}});
  }
  std::filesystem::path index(const std::string& weight_map) const {
    return folder.write(
        "m.safetensors.index.json",
        "{\"metadata\": {\"total_size\": 6},\n \"weight_map\": {" + weight_map + "}}");
  }
  std::filesystem::path good_index() const {
    return index(R"("a": "m-2.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors")");
  }
  std::string refusal(const std::string& weight_map) const {
    const auto path = index(weight_map);
    const std::string message = refusal_of([&] { open_checkpoint(path); }).what();
    return message.starts_with(path.string() + ":") ? message.substr(path.string().size() + 1)
                                                    : message;
  }
  TemporaryFolder folder;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_test)

BOOST_AUTO_TEST_CASE(one_file_gives_its_tensors_sorted_with_their_data) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors",
                    {{"b", "U8", {2}, "bb"}, {"a", "F16", {2, 1}, "aaaa"}}, {{"format", "pt"}});
  const Checkpoint checkpoint = open_checkpoint(folder / "m.safetensors");
  BOOST_TEST(names_of(checkpoint.tensors()) == (Names{"a", "b"}), boost::test_tools::per_element());
  const TensorView* view = checkpoint.find("a");
  BOOST_REQUIRE(view != nullptr);
  BOOST_TEST((view->dtype == DType::f16));
  BOOST_TEST(view->shape == (std::vector<std::int64_t>{2, 1}), boost::test_tools::per_element());
  BOOST_TEST(data_of(*view) == "aaaa");
  BOOST_TEST(view->file_offset() == view->file->mapping->size() - 4);
  BOOST_TEST(checkpoint.total_bytes() == 6u);
  BOOST_TEST(checkpoint.metadata("format").value() == "pt");
  BOOST_TEST(!checkpoint.metadata("none").has_value());
  BOOST_TEST(checkpoint.path() == folder / "m.safetensors");
}

BOOST_AUTO_TEST_CASE(absent_tensor_is_nothing_or_an_error_with_the_nearest_name) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors", {{"layers.0.weight", "U8", {1}, "x"}});
  const Checkpoint checkpoint = open_checkpoint(folder / "m.safetensors");
  BOOST_TEST(checkpoint.find("layers.0.bias") == nullptr);
  BOOST_TEST(!checkpoint.has("layers.0"));
  const Error error = refusal_of([&] { checkpoint.at("layers.0.wieght"); });
  BOOST_TEST((error.code() == Code::not_found));
  BOOST_TEST(std::string(error.what()) ==
             (folder / "m.safetensors").string() +
                 ": there is no tensor 'layers.0.wieght'. Did you mean 'layers.0.weight'?");
}

BOOST_AUTO_TEST_CASE(prefixes_select_and_are_stripped) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors", {{"unet.a", "U8", {1}, "1"},
                                               {"unet.b", "U8", {2}, "22"},
                                               {"unet2", "U8", {1}, "3"},
                                               {"te.a", "U8", {1}, "4"}});
  const Checkpoint checkpoint = open_checkpoint(folder / "m.safetensors");
  BOOST_TEST(names_of(checkpoint.with_prefix("unet.")) == (Names{"unet.a", "unet.b"}),
             boost::test_tools::per_element());
  BOOST_TEST(checkpoint.with_prefix("x").empty());
  BOOST_TEST(checkpoint.with_prefix("").size() == 4u);
  const Checkpoint unet = checkpoint.strip_prefix("unet.");
  BOOST_TEST(names_of(unet.tensors()) == (Names{"a", "b"}), boost::test_tools::per_element());
  BOOST_TEST(data_of(unet.at("b")) == "22");
  BOOST_TEST(unet.total_bytes() == 3u);
  BOOST_TEST(unet.find("unet.a") == nullptr);
}

BOOST_AUTO_TEST_CASE(views_keep_the_mapping_alive) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors", {{"p.a", "U8", {3}, "abc"}});
  const TensorView view = open_checkpoint(folder / "m.safetensors").strip_prefix("p.").at("a");
  std::filesystem::remove(folder / "m.safetensors");
  BOOST_TEST(data_of(view) == "abc");
}

BOOST_AUTO_TEST_CASE(shards_are_one_name_space_without_the_tensors_that_the_index_leaves_out) {
  const Shards shards;
  const Checkpoint checkpoint = open_checkpoint(shards.good_index());
  BOOST_TEST(names_of(checkpoint.tensors()) == (Names{"a", "b", "c"}),
             boost::test_tools::per_element());
  BOOST_TEST(data_of(checkpoint.at("a")) == "aaaa");
  BOOST_TEST(data_of(checkpoint.at("b")) == "bb");
  BOOST_TEST(checkpoint.at("c").data.empty());
  BOOST_TEST((checkpoint.at("a").file == checkpoint.at("c").file));
  BOOST_TEST(checkpoint.metadata("format").value() == "pt");
  BOOST_TEST(checkpoint.metadata("second").value() == "yes");
}

BOOST_AUTO_TEST_CASE(missing_shards_are_counted_and_named) {
  const Shards shards;
  BOOST_TEST(
      shards.refusal(R"("a": "m-2.safetensors", "x": "m-3.safetensors", "y": "m-4.safetensors")") ==
      " 2 of 3 shards are missing, first 'm-3.safetensors'. Download them into the folder of the "
      "index.");
}

BOOST_AUTO_TEST_CASE(tensor_absent_from_its_shard_is_an_error_with_both_names) {
  const Shards shards;
  BOOST_TEST(shards.refusal(R"("a": "m-1.safetensors")") ==
             " tensor 'a' is not in " + quote((shards.folder / "m-1.safetensors").native()) +
                 ", where the index has it. Index and shards are of different downloads.");
}

BOOST_AUTO_TEST_CASE(broken_index_is_refused_with_its_place) {
  const Shards shards;
  BOOST_TEST(shards.refusal(R"("a": 5)") == "2:22: expected a text, got the integer 5");
  BOOST_TEST(shards.refusal(R"("a": "m-1.safetensors", "a": "m-2.safetensors")") ==
             "2:17: the tensor 'a' is given more than once");
  BOOST_TEST(shards.refusal(R"("a": "../m-1.safetensors")") ==
             "2:22: '../m-1.safetensors' is not a file name; shards lie beside their index");
  for (const char* name : {"", ".", "..", "/etc/passwd", "a\\\\b", "a\\u0000b"}) {
    BOOST_TEST(shards.refusal(cat("\"a\": \"", name, "\""))
                   .ends_with("is not a file name; shards lie beside their index"));
  }
  BOOST_TEST(shards.refusal("x") == "2:17: expected a key in double quotes or '}'");
  const auto path = shards.folder.write("no_map.json", "{}");
  BOOST_TEST(std::string(refusal_of([&] { open_checkpoint(path); }).what()) ==
             path.string() + ":1:1: the object has no member 'weight_map'");
}

BOOST_AUTO_TEST_CASE(damage_in_a_shard_is_reported_with_its_path) {
  const Shards shards;
  const auto shard = shards.folder.write("m-2.safetensors", "abc");
  const auto index = shards.good_index();
  BOOST_TEST(std::string(refusal_of([&] { open_checkpoint(index); }).what())
                 .starts_with(shard.string() + ": "));
}

BOOST_AUTO_TEST_CASE(missing_file_is_not_found) {
  const TemporaryFolder folder;
  BOOST_TEST(
      (refusal_of([&] { open_checkpoint(folder / "m.safetensors"); }).code() == Code::not_found));
  BOOST_TEST((refusal_of([&] { open_checkpoint(folder / "m.safetensors.index.json"); }).code() ==
              Code::not_found));
}

BOOST_AUTO_TEST_CASE(identity_follows_files_and_prefix) {
  const TemporaryFolder folder;
  const auto path = folder / "m.safetensors";
  write_safetensors(path, {{"a.b.c", "U8", {1}, "x"}});
  const Checkpoint first = open_checkpoint(path);
  BOOST_TEST((open_checkpoint(path).identity() == first.identity()));
  BOOST_TEST(
      (open_checkpoint(folder.path() / "." / "m.safetensors").identity() == first.identity()));
  BOOST_TEST((first.strip_prefix("a.").identity() != first.identity()));
  BOOST_TEST((first.strip_prefix("a.").strip_prefix("b.").identity() ==
              first.strip_prefix("a.b.").identity()));
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  BOOST_TEST((open_checkpoint(path).identity() != first.identity()));
}

BOOST_AUTO_TEST_CASE(a_tensor_of_8_bits_has_the_scale_that_stands_beside_it) {
  const TemporaryFolder folder;
  const auto path = folder / "m.safetensors";
  write_safetensors(path, {{"p.a.weight", "F8_E4M3", {2}, "xy"},
                           {"p.a.scale_weight", "F32", {}, bytes_of_floats({0.5f})},
                           {"p.b.weight", "F8_E5M2", {2}, "xy"},
                           {"p.b.weight_scale", "F32", {1}, bytes_of_floats({0.25f})},
                           {"p.c.weight", "F8_E4M3", {2}, "xy"},
                           {"p.d.weight", "F16", {1}, "xy"},
                           {"p.d.weight_scale", "F32", {1}, bytes_of_floats({9})}});
  const Checkpoint part = open_checkpoint(path).strip_prefix("p.");
  BOOST_TEST(part.at("a.weight").scale() == 0.5f);
  BOOST_TEST(part.at("b.weight").scale() == 0.25f);
  BOOST_TEST(part.at("c.weight").scale() == 1.0f);
  BOOST_TEST(part.at("d.weight").scale() == 1.0f);
  write_safetensors(path, {{"a.weight", "F8_E4M3", {2, 1}, "xy"},
                           {"a.weight_scale", "F32", {2, 1}, bytes_of_floats({1, 2})}});
  const Error error = refusal_of([&] { open_checkpoint(path); });
  BOOST_TEST((error.code() == Code::unsupported));
  BOOST_TEST(std::string(error.what()).find("'a.weight_scale' of 'a.weight' is f32 (2, 1)") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_cast_is_another_checkpoint_and_what_is_in_blocks_cannot_be_cast) {
  const TemporaryFolder folder;
  write_safetensors(folder / "m.safetensors",
                    {{"p.ids", "I32", {1}, "abcd"}, {"p.weight", "F16", {1}, "xy"}});
  const Checkpoint plain = open_checkpoint(folder / "m.safetensors"),
                   cast = plain.cast(DType::f8_e4m3).strip_prefix("p.");
  BOOST_TEST((cast.at("weight").cast == DType::f8_e4m3));
  BOOST_TEST((cast.at("weight").dtype == DType::f16));
  BOOST_TEST(!cast.at("ids").cast.has_value());
  BOOST_TEST(!plain.at("p.weight").cast.has_value());
  BOOST_TEST((cast.identity() == plain.strip_prefix("p.").cast(DType::f8_e4m3).identity()));
  BOOST_TEST((cast.identity() != plain.strip_prefix("p.").identity()));
  BOOST_TEST((cast.identity() != plain.strip_prefix("p.").cast(DType::f8_e5m2).identity()));
  BOOST_TEST(
      std::string(refusal_of([&] { plain.cast(DType::f16); }).what()).ends_with("not to f16"));
  const Checkpoint scaled = plain.scale_to_fp8().strip_prefix("p.");
  BOOST_TEST((scaled.at("weight").cast == DType::f8_e4m3));
  BOOST_TEST(scaled.at("weight").is_scaled_fp8);
  BOOST_TEST(!scaled.at("ids").is_scaled_fp8);
  BOOST_TEST(!cast.at("weight").is_scaled_fp8);
  BOOST_TEST((scaled.identity() != cast.identity()));
  BOOST_TEST((scaled.cast(DType::f8_e4m3).identity() == cast.identity()));
  BOOST_TEST(!scaled.cast(DType::f8_e4m3).at("weight").is_scaled_fp8);
  const auto blocks = folder.write(
      "m.gguf", gguf_bytes({.tensors = {{"w", kGgmlQ8_0, {32}, std::string(34, 'x')}}}));
  const std::string refused =
      refusal_of([&] { open_checkpoint(blocks).cast(DType::f8_e4m3); }).what();
  BOOST_TEST(refused.find("tensor 'w' is q8_0") != refused.npos);
}

BOOST_AUTO_TEST_CASE(two_checkpoints_are_joined_under_a_prefix) {
  const TemporaryFolder folder;
  write_safetensors(folder / "model.safetensors", {{"a", "U8", {1}, "A"}, {"p.c", "U8", {1}, "C"}},
                    {{"format", "pt"}});
  write_safetensors(folder / "patch.safetensors", {{"b", "U8", {1}, "B"}}, {{"format", "np"}});
  const Checkpoint model = open_checkpoint(folder / "model.safetensors"),
                   patch = open_checkpoint(folder / "patch.safetensors"),
                   joined = model.join(patch, "p.");
  BOOST_TEST((names_of(joined.tensors()) == Names{"a", "p.b", "p.c"}));
  BOOST_TEST(data_of(joined.at("p.b")) == "B");
  BOOST_TEST((joined.path() == model.path()));
  BOOST_TEST(*joined.metadata("format") == "pt");
  BOOST_TEST(joined.files().size() == 2u);
  BOOST_TEST((joined.identity() != model.identity()));
  BOOST_TEST((joined.identity() != model.join(patch, "q.").identity()));
  BOOST_TEST((joined.identity() == model.join(patch, "p.").identity()));
  // Each is known by where it came from, also after another one has come.
  BOOST_TEST((*joined.at("a").joined_from == model.identity()));
  BOOST_TEST((*joined.at("p.b").joined_from == patch.identity()));
  BOOST_TEST((*joined.join(patch, "q.").at("a").joined_from == model.identity()));
  BOOST_TEST(!model.at("a").joined_from.has_value());
  const std::string refused = refusal_of([&] { joined.join(patch, "p."); }).what();
  BOOST_TEST(refused.find("both have a tensor 'p.b'") != refused.npos, refused);
}

BOOST_AUTO_TEST_SUITE_END()
