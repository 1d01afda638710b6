#include "engine/graph/catalog.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/text.h"

namespace heddle::engine {
namespace {

// How the descs begin that a CHOICE widget's `source` may name.
struct NamedDesc {
  std::uint32_t size;
  const char* name;
};

// Empty: it has none.
std::string_view listed_name(const Extension& extension) {
  const auto* const named = static_cast<const NamedDesc*>(extension.desc);
  return named->size >= sizeof(NamedDesc) && named->name != nullptr ? named->name
                                                                    : std::string_view();
}

bool is_file(const heddle_widget& widget) {
  return widget.kind == HEDDLE_WIDGET_FILE || widget.kind == HEDDLE_WIDGET_FOLDER;
}

void add_listed(const heddle_widget& widget, std::vector<std::string>& names) {
  for (const char* const* choice = widget.choices; choice != nullptr && *choice != nullptr;
       ++choice)
    names.emplace_back(*choice);
}

std::string_view source_of(const heddle_widget& widget) {
  return widget.source == nullptr ? std::string_view() : std::string_view(widget.source);
}

// The name of a choice of a FILE widget (heddle_widget::choices), where all files are there that it
// is made of.
std::optional<std::string> offered(std::string_view choice, const Catalog::FileLister& lister) {
  const std::size_t name_end = std::min(choice.find('|'), choice.size());
  std::string_view rest = choice.substr(name_end);
  if (!rest.empty() && lister == nullptr) return std::nullopt;
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view wanted = rest.substr(0, rest.find('|'));
    rest.remove_prefix(wanted.size());
    const std::size_t slash = wanted.find('/');
    const std::string_view beginning = wanted.substr(slash + 1);  // all of it without a slash
    const std::string_view folder = slash == wanted.npos ? "" : wanted.substr(0, slash);
    const std::vector<std::string> files = lister(folder, HEDDLE_WIDGET_FILE);
    if (std::ranges::none_of(files, [&](const std::string& f) { return f.starts_with(beginning); }))
      return std::nullopt;
  }
  return std::string(choice.substr(0, name_end));
}

}  // namespace

void Catalog::add(NodeTypeRef type, Duplicate duplicate) {
  const auto found = types_.find(type->name());
  if (found == types_.end()) {
    types_.emplace(std::string(type->name()), std::move(type));
    return;
  }
  const std::string& there = found->second->plugin();
  if (duplicate == Duplicate::refuse) {
    throw Error(Code::invalid_argument,
                cat("plugin ", quote(type->plugin()), " brings the node type ", quote(type->name()),
                    ", which plugin ", quote(there),
                    " has brought already. Rename it, or load only one of the two plugins."));
  }
  log(Level::info, cat("the node type ", quote(type->name()), " of plugin ", quote(type->plugin()),
                       " replaces that of plugin ", quote(there)));
  found->second = std::move(type);
}

void Catalog::add(ModelFamily family) { families_.push_back(std::move(family)); }

void Catalog::add(std::string_view kind, Extension extension) {
  auto found = extensions_.find(kind);
  if (found == extensions_.end())
    found = extensions_.emplace(std::string(kind), std::vector<Extension>()).first;
  std::vector<Extension>& there = found->second;
  const std::string_view name = listed_name(extension);
  const auto same = name.empty() ? there.end() : std::ranges::find(there, name, listed_name);
  if (same == there.end()) {
    there.push_back(std::move(extension));
    return;
  }
  log(Level::info, cat(quote(name), " of ", kind, " of plugin ", quote(extension.plugin),
                       " replaces that of plugin ", quote(same->plugin)));
  *same = std::move(extension);
}

NodeTypeRef Catalog::find(std::string_view type) const {
  const auto found = types_.find(type);
  return found == types_.end() ? nullptr : found->second;
}

std::vector<std::string_view> Catalog::type_names() const {
  std::vector<std::string_view> names;
  names.reserve(types_.size());
  for (const auto& [name, type] : types_) names.push_back(name);
  return names;
}

const std::vector<Extension>& Catalog::extensions(std::string_view kind) const {
  static const std::vector<Extension> none;
  const auto found = extensions_.find(kind);
  return found == extensions_.end() ? none : found->second;
}

void Catalog::set_file_lister(FileLister lister, FilePlaces places) {
  lister_ = std::move(lister);
  places_ = std::move(places);
}

std::vector<std::string> Catalog::choices(const heddle_widget& widget) const {
  std::vector<std::string> names;
  if (is_file(widget)) {
    if (lister_ != nullptr) names = lister_(source_of(widget), widget.kind);
    std::vector<std::string> listed;
    add_listed(widget, listed);
    for (const std::string& choice : listed)
      if (std::optional<std::string> name = offered(choice, lister_))
        names.push_back(std::move(*name));
    return names;
  }
  if (widget.kind != HEDDLE_WIDGET_CHOICE) return names;
  add_listed(widget, names);
  for (const Extension& extension : extensions(source_of(widget)))
    if (const std::string_view name = listed_name(extension); !name.empty())
      names.emplace_back(name);
  return names;
}

std::vector<std::string> Catalog::places(const heddle_widget& widget) const {
  return is_file(widget) && places_ != nullptr ? places_(source_of(widget))
                                               : std::vector<std::string>();
}

}  // namespace heddle::engine
