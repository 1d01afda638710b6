#include "engine/run/run_files.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/files/weight_patches.h"

namespace heddle::engine {

namespace {

template <class Visit>
void for_each_mapping(const std::vector<Checkpoint>& checkpoints, Visit&& visit) {
  for (const Checkpoint& checkpoint : checkpoints)
    for (const auto& file : checkpoint.files()) visit(*file->mapping);
}

}  // namespace

const UsedFile* find_changed(const UsedFiles& files) {
  for (const UsedFile& file : files) {
    try {
      if (identify_file(file.path) != file.identity) return &file;
    } catch (const Error&) {
      return &file;
    }
  }
  return nullptr;
}

void MappedModels::use(const Model& model) {
  std::vector<Checkpoint> used;
  if (model.checkpoint != nullptr) used.push_back(*model.checkpoint);
  if (model.patches != nullptr)
    used.insert(used.end(), model.patches->files().begin(), model.patches->files().end());
  const auto all = checkpoints_.lock();
  for (Checkpoint& checkpoint : used) {
    const auto is_same = [&](const Checkpoint& known) {
      return std::ranges::equal(known.files(), checkpoint.files());
    };
    if (std::ranges::none_of(*all, is_same)) all->push_back(checkpoint);
  }
  for_each_mapping(used, [](const MappedFile& file) { file.check(); });
}

void MappedModels::check_all() const {
  for_each_mapping(*checkpoints_.lock(), [](const MappedFile& file) { file.check(); });
}

bool MappedModels::is_damaged() const {
  bool is_damaged = false;
  for_each_mapping(*checkpoints_.lock(),
                   [&](const MappedFile& file) { is_damaged = is_damaged || file.is_damaged(); });
  return is_damaged;
}

void MappedModels::check_sizes() const {
  for_each_mapping(*checkpoints_.lock(), [](const MappedFile& file) { file.check_size(); });
}

}  // namespace heddle::engine
