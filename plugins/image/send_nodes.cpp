#include "plugins/image/send_nodes.h"

#include <heddle/host_memory.hpp>
#include <heddle/send.hpp>

#include "plugins/image/picture_batch.h"
#include "plugins/image/png.h"
#include "plugins/image/png_files.h"

namespace heddle::image {

void SaveImageWebsocket::execute(Context& ctx) {
  const Tensor all = ctx[images];
  check_images(all);
  const std::int64_t count = all.size(0);
  HostMemory memory(ctx);
  for (std::int64_t i = 0; i < count; ++i) {
    const Bytes file = write_png(picture_of(ctx, all, i, memory), {}, kPreviewLevel,
                                 [&] { return ctx.cancelled(); });
    ctx.progress(static_cast<double>(i) / static_cast<double>(count));
    send_picture(ctx, std::as_bytes(std::span(file.data(), file.size())));
  }
}

}  // namespace heddle::image
