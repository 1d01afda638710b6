// NVIDIA's libraries are opened when a device is, not linked: a machine without them still loads
// this plugin, and pip's copies are found where pip puts them. Thread-safe.
#pragma once

namespace heddle::cuda {

// The library of this name ("libcublasLt.so.13"): in the folders named by HEDDLE_CUDA_LIBRARIES
// (separated by ':'), as the loader finds it, in the toolkit's folder (CUDA_HOME, CUDA_PATH,
// /usr/local/cuda), or in NVIDIA's packages of the Python that stands on PATH, of a virtual or
// conda environment, of the user or of the system. nullptr: not there. Stays open until the process
// ends.
void* open_library(const char* name);

}  // namespace heddle::cuda
