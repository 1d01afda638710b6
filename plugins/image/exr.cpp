#include "plugins/image/exr.h"

#include <OpenEXR/ImfChannelList.h>
#include <OpenEXR/ImfChromaticities.h>
#include <OpenEXR/ImfFrameBuffer.h>
#include <OpenEXR/ImfHeader.h>
#include <OpenEXR/ImfIO.h>
#include <OpenEXR/ImfOutputFile.h>
#include <OpenEXR/ImfStandardAttributes.h>
#include <OpenEXR/ImfStringAttribute.h>

#include <cstring>
#include <heddle/plugin.hpp>

namespace heddle::image {
namespace {

class Written final : public Imf::OStream {
 public:
  Written() : OStream("picture.exr") {}
  void write(const char* from, int size) override {
    const std::size_t end = place_ + std::size_t(size);
    if (bytes.size() < end) bytes.resize(end);
    std::memcpy(bytes.data() + place_, from, std::size_t(size));
    place_ = end;
  }
  std::uint64_t tellp() override { return place_; }
  void seekp(std::uint64_t place) override { place_ = std::size_t(place); }

  std::string bytes;

 private:
  std::size_t place_ = 0;
};

// Red, green, blue and white of BT.709 and BT.2020.
Imf::Chromaticities chromaticities(bool is_wide) {
  const Imath::V2f white(0.3127f, 0.3290f);
  return is_wide ? Imf::Chromaticities({0.708f, 0.292f}, {0.170f, 0.797f}, {0.131f, 0.046f}, white)
                 : Imf::Chromaticities({0.640f, 0.330f}, {0.300f, 0.600f}, {0.150f, 0.060f}, white);
}

}  // namespace

std::string write_exr(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                      std::span<const float> values, const ExrSettings& settings) {
  try {
    Imf::Header header(static_cast<int>(width), static_cast<int>(height));
    header.compression() = Imf::NO_COMPRESSION;
    Imf::addChromaticities(header, chromaticities(settings.is_wide));
    for (const auto& [key, text] : settings.notes) header.insert(key, Imf::StringAttribute(text));
    Imf::FrameBuffer pixels;
    const std::size_t pixel = channels * sizeof(float);
    for (std::uint32_t c = 0; c < channels; ++c) {
      const std::string name = channels == 1 ? "Y" : std::string(1, "RGBA"[c]);
      header.channels().insert(name, Imf::Channel(Imf::FLOAT));
      char* first = reinterpret_cast<char*>(const_cast<float*>(values.data() + c));
      pixels.insert(name, Imf::Slice(Imf::FLOAT, first, pixel, pixel * width));
    }
    Written written;
    {
      Imf::OutputFile file(written, header);
      file.setFrameBuffer(pixels);
      file.writePixels(int(height));
    }
    return std::move(written.bytes);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(HEDDLE_INVALID_ARGUMENT,
                std::string("the picture cannot be written as EXR: ") + error.what());
  }
}

}  // namespace heddle::image
