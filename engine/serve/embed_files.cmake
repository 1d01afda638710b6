# Files become a .cpp that gives them to the program: cmake -DOUTPUT=... -DHEADER=... -DFUNCTION=... [-DBASE=...] -P embed_files.cmake -- FILES
# A file's name is without a folder, or what stands behind BASE/.
# HEADER declares FUNCTION(), which gives all of them (engine/serve/embedded_file.h). An ETag is the hash of what it stands for.
cmake_minimum_required(VERSION 3.22)

set(files)
set(is_file FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE 0 ${last})
  if(is_file)
    list(APPEND files "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(is_file TRUE)
  endif()
endforeach()

set(arrays)
set(rows)
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  if(DEFINED BASE)
    file(RELATIVE_PATH name "${BASE}" "${file}")
  endif()
  file(READ "${file}" hex HEX)
  file(SHA256 "${file}" hash)
  string(SUBSTRING ${hash} 0 32 tag)
  string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "constexpr unsigned char kBytes${number}[] = {\n${bytes}0};\n")
  string(APPEND rows "    {\"${name}\", \"\\\"${tag}\\\"\", text_of(kBytes${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Made by engine/serve/embed_files.cmake.
#include <cstddef>

#include \"${HEADER}\"

namespace heddle::engine {
namespace {

${arrays}
// Without the zero at its end.
template <std::size_t n>
std::string_view text_of(const unsigned char (&bytes)[n]) {
  return {reinterpret_cast<const char*>(bytes), n - 1};
}

const EmbeddedFile kFiles[] = {
${rows}};

}  // namespace

std::span<const EmbeddedFile> ${FUNCTION}() { return kFiles; }

}  // namespace heddle::engine
")
