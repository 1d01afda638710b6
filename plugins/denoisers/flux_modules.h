// plugins/denoisers/flux_modules.h - the modules of a FLUX file as dual_stream.h asks for them. The
// names outlive what is made of them. Pure; any thread.
#pragma once

#include "dual_stream.h"
#include "flux_names.h"

namespace heddle::denoisers {

inline FindModule modules_of(const FluxNames& names) {
  return {[&names](std::string_view module, const char* kind) { return names.top(module, kind); }};
}
inline FindModule modules_of_double(const FluxNames& names, int index) {
  return {[&names, index](std::string_view module, const char* kind) {
    return names.in_double(index, module, kind);
  }};
}
inline FindModule modules_of_single(const FluxNames& names, int index) {
  return {[&names, index](std::string_view module, const char* kind) {
    return names.in_single(index, module, kind);
  }};
}

}  // namespace heddle::denoisers
