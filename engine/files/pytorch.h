// The files that torch.save writes (.pt, .pth, .ckpt, .bin), of both formats:
//
//   1. since PyTorch 1.6 a zip file of stored entries: "NAME/data.pkl", a pickle; "NAME/data/KEY",
//      the bytes of a storage each; "NAME/byteorder"
//   2. before: five pickles (a magic number, the version, facts about the machine, the values, the
//      keys of storages), then for each key the number of elements (i64) and their bytes
//
// The pickle of the values is read by pickle.h: nothing is called. Tensors are views of the file,
// as those of other formats are; several may share bytes. A file is believed nothing: every
// storage has to lie in the file, every tensor in its storage. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "engine/files/tensor_file.h"

namespace heddle::engine {

struct PytorchContent {
  std::vector<TensorEntry> tensors;  // sorted by name
  Metadata metadata;                 // texts and booleans ("true", "false") of the file's dict
  Hash128 hash = {};                 // of what describes them
};

// Whether a file begins as one of torch.save, or as a pickle of any kind.
bool is_pytorch(std::span<const std::byte> file);

// Reads the values of a file whose whole content is `file`; touches no byte of a storage. The
// tensors of a dict are named by its keys, those of dicts in it by all keys with "." between them;
// those of a list or tuple of dicts under a number, as hypernetworks have them, by their places in
// it, too. Where the file's dict holds the model's under a well-known name ("state_dict",
// "params_ema", "params", "model", ...), or holds nothing but one dict, that one is the file. What
// is no tensor is left out. Throws what read_zip_directory() and read_pickle() throw;
// Error(unsupported) for a tensor that is not contiguous or of an element type unknown here, for
// big-endian and TorchScript files; Error(invalid_argument) for a file that is damaged, cut off or
// not of torch.save. Messages start with `file_name`.
PytorchContent parse_pytorch(std::span<const std::byte> file, std::string_view file_name);

}  // namespace heddle::engine
