// The functions of libtiff that are used here, under their own names in this namespace: libtiff is
// opened when the first picture of its format is read. Debian's takes a library under the GPL
// (JBIG-KIT), so that it is not linked, and in no bundle. Included by tiff.cpp, after tiffio.h.
#pragma once

#include "plugins/blocks/late_library.h"

namespace heddle::image {

// Of libtiff 4.5 and later, which TIFFClientOpenExt takes.
inline constexpr blocks::LateLibrary kTiff{"libtiff.so.6"};

#define HEDDLE_TIFF_FUNCTION(name) \
  inline constinit blocks::LateFunction<decltype(::name)> name { kTiff, #name }

HEDDLE_TIFF_FUNCTION(TIFFClientOpenExt);
HEDDLE_TIFF_FUNCTION(TIFFClose);
HEDDLE_TIFF_FUNCTION(TIFFComputeStrip);
HEDDLE_TIFF_FUNCTION(TIFFComputeTile);
HEDDLE_TIFF_FUNCTION(TIFFIsTiled);
HEDDLE_TIFF_FUNCTION(TIFFOpenOptionsAlloc);
HEDDLE_TIFF_FUNCTION(TIFFOpenOptionsFree);
HEDDLE_TIFF_FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR);
HEDDLE_TIFF_FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc);
HEDDLE_TIFF_FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR);
HEDDLE_TIFF_FUNCTION(TIFFReadDirectory);
HEDDLE_TIFF_FUNCTION(TIFFReadEncodedStrip);
HEDDLE_TIFF_FUNCTION(TIFFReadEncodedTile);
HEDDLE_TIFF_FUNCTION(TIFFReadRGBAImageOriented);
HEDDLE_TIFF_FUNCTION(TIFFScanlineSize);
HEDDLE_TIFF_FUNCTION(TIFFTileRowSize);

#undef HEDDLE_TIFF_FUNCTION

// A field's values come behind its tag, of types that the tag says.
class TiffFieldFunction {
 public:
  constexpr explicit TiffFieldFunction(const char* name) : name_(name) {}

  template <class... Values>
  int operator()(TIFF* tiff, std::uint32_t tag, Values... values) const {
    using Function = int(TIFF*, std::uint32_t, ...);
    auto* function = reinterpret_cast<Function*>(blocks::late_function(kTiff, name_));
    return function(tiff, tag, values...);
  }

 private:
  const char* const name_;
};

inline constexpr TiffFieldFunction TIFFGetField{"TIFFGetField"};
inline constexpr TiffFieldFunction TIFFGetFieldDefaulted{"TIFFGetFieldDefaulted"};
inline constexpr TiffFieldFunction TIFFSetField{"TIFFSetField"};

}  // namespace heddle::image
