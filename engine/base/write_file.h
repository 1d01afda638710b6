// Files that are there whole or not at all: written beside their place under a hidden name that
// nobody can guess, then put there in one step. What a killed process leaves of these goes when
// the next one writes into the same folder, an hour later at the earliest. Any thread, any number
// of processes.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace heddle::engine {

// Whether a file outlives a power cut: yes for what took work to make, and for what the user asked
// for by name; no for what is found out again.
enum class Lasting { no, yes };

// Writes `content` to `path`. A regular file is replaced, its permissions kept as far as this user
// may, and its owner; through a symbolic link, which stays. What is no file is written through:
// devices, pipes, and the program's own descriptors (/dev/stdout, /dev/fd/3), be they files. A pipe
// is waited for until somebody reads. The folder has to be there. Throws Error with the path, the
// system's reason and what to do; then a file is as it was.
void write_file(const std::filesystem::path& path, std::string_view content, Lasting lasting);

// A new file, which lasts; false, and nothing done, where something has this name.
bool create_file(const std::filesystem::path& path, std::string_view content);
// The same piece by piece: `content` is called once, with what appends to the file. Where it
// throws, there is no file.
using Append = std::function<void(std::string_view)>;
bool create_file(const std::filesystem::path& path,
                 const std::function<void(const Append&)>& content);

// Whether write_file() writes into what is there instead of making a file.
bool is_written_through(const std::filesystem::path& path);

}  // namespace heddle::engine
