// Files of published sizes that are put together of parts, as headers over a hole
// (../goldens/part_files.json): of each, the families build models that take every tensor but those
// that are of no use here.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <regex>
#include <set>

#include "engine/base/json.h"
#include "engine/files/checkpoint.h"
#include "engine/graph/model.h"
#include "engine/plugin/loader.h"
#include "engine/plugin/model_builder.h"
#include "tests/plugins/families/part_file_list.h"
#include "tests/support/golden_files.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/true_files.h"

using namespace heddle::test;

namespace {

struct PartFilesFixture {
  TemporaryFolder folder;
  heddle::engine::LoadedPlugins plugins = heddle::engine::load_plugins({HEDDLE_PLUGINS_DIR});
  heddle::engine::Json told = listed("part_files.json"), ltx = listed("ltx_files.json");

  static heddle::engine::Json listed(const std::string& name) {
    return heddle::engine::parse_json(read_text(tests_folder() / "plugins/goldens" / name), name);
  }
  std::vector<FileTensor> tensors_of(const char* name) const {
    std::vector<FileTensor> tensors;
    for (const heddle::engine::Json& row : told.at("files").at(name).as_array()) {
      const std::string part = row.as_array().at(1).as_string();
      const heddle::engine::Json* shapes = told.at("parts").find(part);
      add_part(tensors, row.as_array().at(0).as_string(), shapes ? *shapes : ltx.at(part),
               row.as_array().at(2).as_string());
    }
    return tensors;
  }
  // DAT's table of distances says by its last row how large its windows are: here of 8 x 32.
  static void tell_windows(const std::filesystem::path& path) {
    const auto table = heddle::engine::open_checkpoint(path);
    const auto* found = table.find("layers.0.blocks.0.attn.attns.0.rpe_biases");
    if (found == nullptr) return;
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const std::string last = bytes_of_floats({7, 31});
    file.seekp(std::streamoff(found->file_offset() + found->data.size() - last.size()));
    file.write(last.data(), std::streamsize(last.size()));
  }
  // The tensors that this reader's models read.
  void take(const heddle::engine::Checkpoint& file, const PartReader& reader,
            std::set<std::string>& names) const {
    heddle::engine::Value config;
    if (*reader.config != 0)
      config = heddle::engine::from_json(heddle::engine::parse_json(reader.config, "config"));
    for (const char* role : reader.roles) {
      const heddle::engine::Value model = heddle::engine::build_model(
          *plugins.catalog, role, file.strip_prefix(reader.prefix), config.get(), {});
      for (const auto& node : heddle::engine::get_model(*model)->graph->nodes)
        for (const auto& parts : node.weights)
          for (const auto& part : parts) names.insert(reader.prefix + part.tensor);
    }
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(part_files, PartFilesFixture)

BOOST_AUTO_TEST_CASE(families_take_every_tensor_of_published_files_of_parts) {
  BOOST_TEST(told.at("files").members().size() == std::size(kPartFiles));
  for (const PartFile& wanted : kPartFiles) {
    const std::vector<FileTensor> tensors = tensors_of(wanted.name);
    const std::filesystem::path path = folder / "file.safetensors";
    write_header_only(path, tensors);
    tell_windows(path);
    const heddle::engine::Checkpoint file = heddle::engine::open_checkpoint(path);
    std::set<std::string> names;
    for (const PartReader& reader : wanted.readers) try {
        take(file, reader, names);
      } catch (const std::exception& error) {
        BOOST_TEST(false, wanted.name << ", '" << reader.prefix << "': " << error.what());
      }
    const std::regex of_no_use(wanted.of_no_use);
    std::size_t left_out = 0;
    for (const FileTensor& tensor : tensors) {
      if (names.count(tensor.name) > 0) continue;
      ++left_out;
      BOOST_TEST(std::regex_match(tensor.name, of_no_use),
                 wanted.name << ": nobody takes '" << tensor.name << "'");
    }
    BOOST_TEST(names.size() + left_out == tensors.size(), wanted.name);
    BOOST_TEST((left_out > 0) == (*wanted.of_no_use != 0), wanted.name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
