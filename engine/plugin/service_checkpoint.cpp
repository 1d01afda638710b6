// heddle.checkpoint/0: names, shapes and types of a checkpoint's tensors.
#include <algorithm>
#include <iterator>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/files/checkpoint_cache.h"
#include "engine/plugin/host.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/numbers.h"
#include "engine/tensor/shape.h"

heddle_checkpoint::heddle_checkpoint(heddle::engine::Checkpoint c)
    : checkpoint(std::move(c)), path(checkpoint.path().string()) {
  // What packed rows are widened to is what a plugin deals with.
  using namespace heddle::engine;
  for (const TensorView& t : checkpoint.tensors()) {
    try {
      infos.push_back(make_info(t.packed == nullptr ? heddle_dtype(t.dtype) : HEDDLE_F32, t.shape));
    } catch (const Error& error) {
      throw Error(error.code(), cat(path, ": tensor ", quote(t.name), ": ", error.what()));
    }
  }
}

namespace heddle::engine {

namespace {

// One for the process, like the plugins: a file is mapped once however many engines use it.
CheckpointCache& cache() {
  static CheckpointCache files;
  return files;
}

// A folder stands for the one model file in it. Of several formats, as downloads have them beside
// each other, the first of these counts: safetensors before PyTorch's, an index of shards before
// single files.
std::filesystem::path model_file(const std::filesystem::path& path) {
  static const std::vector<std::string_view> kFormats[] = {{".safetensors.index.json"},
                                                           {".safetensors", ".gguf"},
                                                           {".bin.index.json"},
                                                           {".bin", ".pt", ".pth", ".ckpt"}};
  if (!std::filesystem::is_directory(path)) return path;
  std::vector<std::string> all;
  for (const FolderEntry& entry : entries_of(path)) all.push_back(entry.name());
  std::ranges::sort(all);
  for (const auto& endings : kFormats) {
    std::vector<std::string> names;
    std::ranges::copy_if(all, std::back_inserter(names), [&](const std::string& name) {
      return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
    });
    if (names.size() == 1) return path / names[0];
    if (!names.empty())
      throw Error(Code::invalid_argument, cat(path.string(), " holds more than one model: ",
                                              join(names, ", "), ". Name one of them"));
  }
  throw Error(Code::not_found,
              cat(path.string(),
                  " holds no .safetensors, .gguf, .bin, .pt, .pth or .ckpt file: the download is "
                  "probably incomplete"));
}

const heddle_tensor_info* find(const heddle_checkpoint* c, const char* name) {
  const TensorView* tensor = c->checkpoint.find(name);
  return tensor == nullptr ? nullptr
                           : &c->infos[std::size_t(tensor - c->checkpoint.tensors().data())];
}

heddle_status* numbers(const heddle_checkpoint* c, const char* name, std::uint32_t count,
                       double* out) {
  return to_status([&] {
    const TensorView& tensor = c->checkpoint.at(name);
    if (tensor.packed != nullptr)
      throw Error(Code::unsupported, cat(c->path, ": ", quote(name), " (", join(tensor.shape, ", "),
                                         ") is packed: only weights are widened"));
    const std::size_t elements = tensor.data.size() / dtype_size(tensor.dtype);
    if (elements != count)
      throw Error(Code::invalid_argument,
                  cat(c->path, ": ", quote(name), " (", join(tensor.shape, ", "), ") has ",
                      elements, " elements, not ", count));
    std::ranges::copy(to_doubles(tensor.dtype, tensor.data), out);
    tensor.file->mapping->check();
  });
}

void release(heddle_checkpoint* c) {
  if (c != nullptr && c->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete c;
}

}  // namespace

const heddle_checkpoint_service* checkpoint_service() {
  static const heddle_checkpoint_service table{
      [](const heddle_host*, const char* path, heddle_checkpoint** out) {
        return to_status([&] { *out = new heddle_checkpoint(cache().open(model_file(path))); });
      },
      [](const heddle_checkpoint* c, const char* prefix, heddle_checkpoint** out) {
        return to_status([&] { *out = new heddle_checkpoint(c->checkpoint.strip_prefix(prefix)); });
      },
      [](heddle_checkpoint* c) { c->refs.fetch_add(1, std::memory_order_relaxed); },
      &release,
      [](const heddle_checkpoint* c) { return std::uint32_t(c->infos.size()); },
      [](const heddle_checkpoint* c, std::uint32_t i) -> const char* {
        return i < c->infos.size() ? c->checkpoint.tensors()[i].name.c_str() : nullptr;
      },
      &find,
      [](const heddle_checkpoint* c, const char* key) -> const char* {
        const auto text = c->checkpoint.metadata(key);
        return text ? text->data()
                    : nullptr;  // a view of a std::string of the file's metadata: NUL-terminated
      },
      [](const heddle_checkpoint* c) { return c->path.c_str(); },
      &numbers,
      [](const heddle_checkpoint* c, heddle_dtype dtype, heddle_checkpoint** out) {
        return to_status([&] {
          if (!is_dtype(dtype))
            throw Error(Code::invalid_argument, cat(c->path, ": there is no element type ", dtype));
          *out = new heddle_checkpoint(c->checkpoint.cast(DType(dtype)));
        });
      },
      [](const heddle_checkpoint* c, heddle_checkpoint** out) {
        return to_status([&] { *out = new heddle_checkpoint(c->checkpoint.scale_to_fp8()); });
      }};
  return &table;
}

}  // namespace heddle::engine
