#include "engine/serve/converted_picture.h"

#include <memory>
#include <semaphore>

#include "engine/base/error.h"
#include "engine/serve/router.h"

namespace heddle::engine {
namespace {

constexpr int kPicturesAtOnce = 2;

}  // namespace

std::string converted_picture(const heddle::Engine& engine,
                              const std::function<std::string()>& file,
                              const heddle::PictureConversion& conversion) {
  static std::counting_semaphore<> free(kPicturesAtOnce);
  free.acquire();
  const std::shared_ptr<void> release(&free, [](void*) { free.release(); });
  try {
    return engine.convert_picture(file(), conversion);
  } catch (const EngineError& error) {
    // What is wrong with a file is for who sent it, or named it; all else is ours.
    if (error.code() != int(Code::invalid_argument) && error.code() != int(Code::unsupported))
      throw;
    throw Refused{text_response(error.what(), 400)};
  }
}

}  // namespace heddle::engine
