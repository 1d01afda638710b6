// All that the loaded plugins brought: node types and model families by name, and other extension
// points by kind. Filled while plugins load (one thread), then immutable.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/json.h"
#include "engine/graph/node_type.h"
#include "heddle/abi/model.h"

namespace heddle::engine {

struct ModelFamily {
  const heddle_model_desc* desc = nullptr;
  std::string plugin;
  std::shared_ptr<const void> owner;
};

struct Extension {
  const void* desc = nullptr;
  std::string plugin;
  std::shared_ptr<const void> owner;
};

class Catalog : public std::enable_shared_from_this<Catalog> {
 public:
  // A type that is there already is replaced when `replace` says so (a plugin named later on the
  // command line), with an info in the log; else it is refused with an Error naming both plugins.
  enum class Duplicate { refuse, replace };
  void add(NodeTypeRef type, Duplicate duplicate);
  void add(ModelFamily family);
  // Something with a name replaces what had it, with an info in the log.
  void add(std::string_view kind, Extension extension);

  NodeTypeRef find(std::string_view type) const;     // nullptr: unknown
  std::vector<std::string_view> type_names() const;  // sorted
  const std::vector<ModelFamily>& families() const { return families_; }
  const std::vector<Extension>& extensions(
      std::string_view kind) const;  // empty when there are none

  // Lists what a FILE or FOLDER widget offers: (folder, widget kind) -> names; of "": all model
  // folders. Set by whoever knows the model folders; none: nothing.
  using FileLister =
      std::function<std::vector<std::string>(std::string_view folder, std::int32_t widget_kind)>;
  // The places that were searched for a folder's files, for messages.
  using FilePlaces = std::function<std::vector<std::string>(std::string_view folder)>;
  void set_file_lister(FileLister lister, FilePlaces places = nullptr);
  bool lists_files() const { return lister_ != nullptr; }

  // What a CHOICE, FILE or FOLDER widget accepts, in order.
  std::vector<std::string> choices(const heddle_widget& widget) const;
  // Where a FILE or FOLDER widget's names were looked for; empty when nobody knows.
  std::vector<std::string> places(const heddle_widget& widget) const;

  // What validators of nodes are given; nullptr: they are not asked.
  void set_host(const heddle_host* host) { host_ = host; }
  const heddle_host* host() const { return host_; }

  // The folders that plugins were loaded from: messages about unknown classes name them.
  void set_plugin_folders(std::vector<std::string> folders) {
    plugin_folders_ = std::move(folders);
  }
  const std::vector<std::string>& plugin_folders() const { return plugin_folders_; }

 private:
  std::map<std::string, NodeTypeRef, std::less<>> types_;
  std::vector<ModelFamily> families_;
  std::map<std::string, std::vector<Extension>, std::less<>> extensions_;
  FileLister lister_;
  FilePlaces places_;
  std::vector<std::string> plugin_folders_;
  const heddle_host* host_ = nullptr;
};

// One node in the shape of ComfyUI's /object_info/{class}: {class: {input: {required, optional,
// hidden}, input_order, output, ...}}.
Json object_info(const NodeType& type, const Catalog& catalog);
// What stands there for an input: [type or choices, options].
Json input_config(const heddle_port& input, const Catalog& catalog);

}  // namespace heddle::engine
