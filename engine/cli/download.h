// One file from its address into its place: what is there of an earlier attempt is kept and gone on
// with, and the file gets its name when it is whole and its hash is right. Any thread, any number
// of processes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace heddle::cli {

struct DownloadRequest {
  std::string url;
  std::filesystem::path path;  // of the file; folders are made
  std::string sha256;          // in hexadecimal; empty: not checked
  std::string token;           // for servers that want one; empty: none
};

// `done` bytes of `total` are there; total 0: unknown.
using DownloadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Until it is whole the file is called PATH.part, and PATH.part.from says where it comes from; both
// stay when the transfer breaks, which is tried again a few times first. Bytes are appended only
// where the server says that the content is still the same. Gives the bytes of the file. Throws
// Error with address and path.
std::uint64_t download(const DownloadRequest& request, const DownloadProgress& progress);

}  // namespace heddle::cli
