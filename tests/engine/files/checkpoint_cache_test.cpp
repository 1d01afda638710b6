#include "engine/files/checkpoint_cache.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/refusal.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"

using namespace heddle::engine;
using namespace heddle::test;

namespace {

const TensorFile* file_of(const Checkpoint& checkpoint) {
  return checkpoint.tensors().front().file.get();
}

// Replaces the file by rename, as programs that write weights should.
std::filesystem::path put(const TemporaryFolder& folder, const std::string& name,
                          const std::string& data) {
  return folder.write(
      name, safetensors_bytes({{"a", "U8", {static_cast<std::int64_t>(data.size())}, data}}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_cache_test)

BOOST_AUTO_TEST_CASE(a_file_is_mapped_once_whatever_its_spelling) {
  const TemporaryFolder folder;
  const auto path = put(folder, "m.safetensors", "abc");
  std::filesystem::create_symlink("m.safetensors", folder / "link.safetensors");
  CheckpointCache cache;
  const Checkpoint first = cache.open(path);
  BOOST_TEST(file_of(cache.open(path)) == file_of(first));
  BOOST_TEST(file_of(cache.open(folder.path() / "." / "m.safetensors")) == file_of(first));
  BOOST_TEST(file_of(cache.open(folder / "link.safetensors")) == file_of(first));
}

BOOST_AUTO_TEST_CASE(a_shard_opened_alone_is_shared_with_the_sharded_checkpoint) {
  const TemporaryFolder folder;
  const auto shard = put(folder, "m-1.safetensors", "abc");
  const auto index = folder.write("m.index.json", R"({"weight_map": {"a": "m-1.safetensors"}})");
  CheckpointCache cache;
  const Checkpoint whole = cache.open(index);
  BOOST_TEST(file_of(cache.open(shard)) == file_of(whole));
}

BOOST_AUTO_TEST_CASE(a_replaced_file_is_mapped_anew_while_the_old_one_stays_usable) {
  const TemporaryFolder folder;
  CheckpointCache cache;
  const Checkpoint old = cache.open(put(folder, "m.safetensors", "abc"));
  const Checkpoint fresh = cache.open(put(folder, "m.safetensors", "xyz"));
  BOOST_TEST(file_of(fresh) != file_of(old));
  BOOST_TEST(std::to_integer<char>(old.at("a").data[0]) == 'a');
  BOOST_TEST(std::to_integer<char>(fresh.at("a").data[0]) == 'x');
  BOOST_TEST(file_of(cache.open(folder / "m.safetensors")) == file_of(fresh));
}

BOOST_AUTO_TEST_CASE(the_cache_itself_keeps_no_file_mapped) {
  const TemporaryFolder folder;
  const auto path = put(folder, "m.safetensors", "abc");
  CheckpointCache cache;
  std::weak_ptr<const TensorFile> file;
  {
    const Checkpoint checkpoint = cache.open(path);
    file = checkpoint.at("a").file;
    BOOST_TEST(!file.expired());
  }
  BOOST_TEST(file.expired());
  BOOST_TEST(cache.open(path).has("a"));
}

BOOST_AUTO_TEST_CASE(a_failed_opening_leaves_nothing_behind) {
  const TemporaryFolder folder;
  CheckpointCache cache;
  BOOST_TEST((refusal_of([&] { cache.open(folder / "m.safetensors"); }).code() == Code::not_found));
  folder.write("m.safetensors", "damaged");
  BOOST_TEST(
      (refusal_of([&] { cache.open(folder / "m.safetensors"); }).code() == Code::invalid_argument));
  BOOST_TEST(cache.open(put(folder, "m.safetensors", "abc")).has("a"));
}

BOOST_AUTO_TEST_CASE(threads_that_open_together_share_one_file) {
  const TemporaryFolder folder;
  const auto path = put(folder, "m.safetensors", "abc");
  CheckpointCache cache;
  std::vector<std::optional<Checkpoint>> opened(8);
  {
    std::vector<std::jthread> threads;
    for (auto& slot : opened)
      threads.emplace_back([&cache, &path, &slot] { slot = cache.open(path); });
  }
  for (const auto& checkpoint : opened)
    BOOST_TEST(file_of(*checkpoint) == file_of(*opened.front()));
}

BOOST_AUTO_TEST_SUITE_END()
