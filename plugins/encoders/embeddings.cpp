#include "embeddings.h"

#include <algorithm>
#include <set>

#include <heddle/model.hpp>

namespace heddle::encoders {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "embeddings";

bool stays_inside(const fs::path& name) {
  return !name.empty() && !name.is_absolute() && std::ranges::count(name, fs::path("..")) == 0;
}

// What a folder holds, sorted; nothing where it cannot be read.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error))
    entries.push_back(*it);
  std::ranges::sort(entries);
  return entries;
}

// A place, then the folders below it, sorted. Links are followed, as ComfyUI does; a folder that is
// reached in several ways counts once, so that links to folders above come to an end.
std::vector<fs::path> folders_of(const fs::path& place) {
  std::vector<fs::path> folders{place};
  std::error_code ignored;
  std::set<fs::path> seen{fs::weakly_canonical(place, ignored)};
  for (std::size_t i = 0; i < folders.size(); ++i)
    for (const fs::directory_entry& entry : entries_of(folders[i])) {
      if (!entry.is_directory(ignored)) continue;
      const fs::path real = fs::canonical(entry.path(), ignored);
      if (!real.empty() && seen.insert(real).second) folders.push_back(entry.path());
    }
  std::sort(folders.begin() + 1, folders.end());
  return folders;
}

std::optional<fs::path> file_named(const std::vector<std::string>& places, std::string_view name) {
  const fs::path relative(name);
  if (!stays_inside(relative)) return std::nullopt;
  std::error_code ignored;
  for (const std::string& place : places)
    for (const fs::path& folder : folders_of(place))
      for (const char* ending : {"", ".safetensors", ".pt", ".bin"}) {
        fs::path path = folder / relative;
        path += ending;
        if (fs::is_regular_file(path, ignored)) return path;
      }
  return std::nullopt;
}

// Rows of a tensor of vectors so wide; 0: it is none.
std::int64_t vectors_of(const heddle_tensor_info& info, std::int64_t width) {
  if (info.rank < 1 || info.rank > 2 || info.shape[info.rank - 1] != width) return 0;
  return info.rank == 1 ? 1 : info.shape[0];
}

int rank_of(const std::string& tensor, const std::string& encoder) {
  if (tensor.starts_with("string_to_param.")) return 0;
  return tensor == encoder ? 1 : 2;
}

std::vector<std::string> texts_of(const Value& list) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < list.count(); ++i) texts.push_back(list.item(i).as<std::string>());
  return texts;
}

}  // namespace

text::EmbeddingIds PromptEmbeddings::find(std::string_view name) {
  const auto known = found_.find(name);
  if (known != found_.end()) return known->second ? known->second->ids : text::EmbeddingIds();
  std::optional<Found>& found = found_[std::string(name)];
  if (reader_.width > 0)
    if (const auto path = file_named(places_, name)) found = read(*path);
  return found ? found->ids : text::EmbeddingIds();
}

bool PromptEmbeddings::has(const std::string& name) const {
  const auto found = found_.find(name);
  return found != found_.end() && found->second;
}

std::optional<PromptEmbeddings::Found> PromptEmbeddings::read(const fs::path& path) {
  constexpr std::int64_t kMostVectors = 1 << 16;
  std::string reason;
  try {
    const Checkpoint file = Checkpoint::open(path.string());
    std::optional<std::string> best;
    for (std::uint32_t i = 0; i < file.size(); ++i) {
      const std::string tensor = file.name(i);
      const std::int64_t vectors = vectors_of(file.info(tensor), reader_.width);
      if (vectors < 1 || vectors > kMostVectors) continue;
      if (!best || rank_of(tensor, reader_.encoder) < rank_of(*best, reader_.encoder))
        best = tensor;
    }
    if (best) {
      const auto count = std::uint32_t(vectors_of(file.info(*best), reader_.width));
      const text::EmbeddingIds ids{std::int32_t(reader_.vocabulary) + next_, count};
      next_ += std::int32_t(count);
      return Found{path.string(), *best, ids};
    }
    reason = "it has no vectors of " + std::to_string(reader_.width) + " numbers, as " +
             reader_.encoder + " reads; it was made for another model";
  } catch (const Failed& failed) {
    reason = services.host->status_message(failed.status);
    services.host->status_free(failed.status);
  } catch (const Error& error) {
    reason = error.what();
  }
  unfit_.push_back(path.string() + ": " + reason);
  return std::nullopt;
}

void PromptEmbeddings::write(std::int32_t* ids, std::int64_t count, float* vectors,
                             float* is_word) const {
  const std::int64_t width = reader_.width;
  std::fill_n(vectors, count * width, 0.0f);
  std::fill_n(is_word, count, 1.0f);
  for (const auto& [name, found] : found_) {
    if (!found) continue;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = std::int64_t(ids[i]) - found->ids.first;
      if (row < 0 || row >= std::int64_t(found->ids.count)) continue;
      if (numbers.empty()) {
        numbers.resize(std::size_t(width) * found->ids.count);
        const Checkpoint file = Checkpoint::open(found->path);
        check(service<heddle_checkpoint_service>().numbers(
            file.raw(), found->tensor.c_str(), std::uint32_t(numbers.size()), numbers.data()));
      }
      std::transform(numbers.begin() + row * width, numbers.begin() + (row + 1) * width,
                     vectors + i * width, [](double number) { return float(number); });
      is_word[i] = 0;
    }
  }
  for (std::int64_t i = 0; i < count; ++i)
    if (is_word[i] == 0) ids[i] = 0;
}

std::uint64_t embeddings_fingerprint(Context& ctx,
                                     const std::vector<const Input<std::string>*>& prompts) {
  std::vector<std::string> names;
  bool is_any_linked = false;
  for (const Input<std::string>* prompt : prompts) {
    if (!ctx.has(*prompt)) {
      is_any_linked = true;
      continue;
    }
    text::Work work;
    text::named_embeddings(ctx[*prompt], text::WeightSyntax::kParsed, work,
                           [&](std::string_view name) { names.emplace_back(name); });
  }
  if (names.empty() && !is_any_linked) return 0;
  heddle_value* list = nullptr;
  check(service<heddle_folders_service>().places(ctx.raw(), kFolder, &list));
  const std::vector<std::string> places = texts_of(Value::adopt(list));
  std::vector<fs::path> files;
  for (const std::string& name : names)
    if (const auto path = file_named(places, name)) files.push_back(*path);
  for (const std::string& place : is_any_linked ? places : std::vector<std::string>()) {
    std::error_code ignored;
    for (const fs::path& folder : folders_of(place))
      for (const fs::directory_entry& entry : entries_of(folder))
        if (entry.is_regular_file(ignored)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  // FNV-1a, 64 bits: enough to notice a change, stable over runs.
  std::uint64_t hash = files.empty() ? 0 : 0xcbf29ce484222325ULL;
  const auto mix = [&](std::uint64_t part) { hash = (hash ^ part) * 0x100000001b3ULL; };
  for (const fs::path& file : files) {
    std::uint64_t identity = 0;
    check(service<heddle_folders_service>().identify(ctx.raw(), file.c_str(), &identity));
    for (const char c : file.filename().string()) mix(static_cast<unsigned char>(c));
    mix(identity);
  }
  return hash;
}

}  // namespace heddle::encoders
