// Writes the model of graphs/low_memory.json below a models folder:
//   ninja -C build low_memory_model && build/tests/low_memory_model graphs/models
#include "tests/e2e/low_memory_model.h"

#include <filesystem>
#include <fstream>
#include <iostream>

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: low_memory_model MODELS_FOLDER\n";
    return 2;
  }
  const auto path = std::filesystem::path(arguments[1]) / heddle::test::kLowMemoryFile;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << heddle::test::safetensors_bytes(heddle::test::low_memory_model());
  file.close();
  if (!file) {
    std::cerr << path.string() << ": cannot be written\n";
    return 1;
  }
  std::cout << path.string() << ": " << std::filesystem::file_size(path) << " bytes\n";
}
