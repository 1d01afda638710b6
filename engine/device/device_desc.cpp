#include "engine/device/device_desc.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/device/sharing.h"

namespace heddle::engine {

namespace {

// Of the first revision: a smaller desc was built against nothing that was ever released.
constexpr std::size_t kFirstDevice = 176;
static_assert(sizeof(heddle_device_desc) == kFirstDevice);

// The first required function that is not there; "" where all are.
std::string_view missing_function(const heddle_device_desc& d) {
  const std::pair<std::string_view, bool> functions[] = {
      {"count", d.count != nullptr},
      {"open", d.open != nullptr},
      {"close", d.close != nullptr},
      {"info", d.info != nullptr},
      {"alloc", d.alloc != nullptr},
      {"free", d.free != nullptr},
      {"stream_make", d.stream_make != nullptr},
      {"stream_free", d.stream_free != nullptr},
      {"event_make", d.event_make != nullptr},
      {"event_free", d.event_free != nullptr},
      {"record", d.record != nullptr},
      {"wait_on_stream", d.wait_on_stream != nullptr},
      {"wait", d.wait != nullptr},
      {"done", d.done != nullptr},
      {"can_copy", d.can_copy != nullptr},
      {"copy", d.copy != nullptr},
      {"weight_layout", d.weight_layout != nullptr},
      {"make_weight", d.make_weight != nullptr},
  };
  for (const auto& [name, is_there] : functions)
    if (!is_there) return name;
  return "";
}

// An extension that is there without one of its functions, and which; empty where none is.
std::pair<std::string_view, std::string_view> missing_function(const DeviceExtensions& e) {
  const std::tuple<std::string_view, std::string_view, bool> functions[] = {
      {HEDDLE_DEVICE_PINNED, "alloc", e.pinned == nullptr || e.pinned->alloc != nullptr},
      {HEDDLE_DEVICE_PINNED, "free", e.pinned == nullptr || e.pinned->free != nullptr},
      {HEDDLE_DEVICE_NATIVE, "stream", e.native == nullptr || e.native->stream != nullptr},
      {HEDDLE_DEVICE_CAPTURE, "begin", e.capture == nullptr || e.capture->begin != nullptr},
      {HEDDLE_DEVICE_CAPTURE, "end", e.capture == nullptr || e.capture->end != nullptr},
      {HEDDLE_DEVICE_CAPTURE, "replay", e.capture == nullptr || e.capture->replay != nullptr},
      {HEDDLE_DEVICE_CAPTURE, "free", e.capture == nullptr || e.capture->free != nullptr},
      {HEDDLE_DEVICE_CAPTURE, "bytes", e.capture == nullptr || e.capture->bytes != nullptr},
      {HEDDLE_DEVICE_LINKS, "link", e.links == nullptr || e.links->link != nullptr},
      {HEDDLE_DEVICE_TIMING, "elapsed", e.timing == nullptr || e.timing->elapsed != nullptr},
      {HEDDLE_DEVICE_CANCEL, "set", e.cancel == nullptr || e.cancel->set != nullptr},
      {HEDDLE_DEVICE_IDENTITY, "identify",
       e.identity == nullptr || e.identity->identify != nullptr},
      {HEDDLE_DEVICE_CONTEXT, "is_made", e.context == nullptr || e.context->is_made != nullptr},
      {HEDDLE_DEVICE_CONTEXT, "release", e.context == nullptr || e.context->release != nullptr},
  };
  for (const auto& [extension, function, is_there] : functions)
    if (!is_there) return {extension, function};
  return {};
}

// The same of the extension that is looked up where it is needed.
std::pair<std::string_view, std::string_view> missing_function_to_share(
    const heddle_device_desc& desc) {
  const heddle_device_sharing* const sharing = sharing_of(desc);
  if (sharing == nullptr) return {};
  const std::pair<std::string_view, bool> functions[] = {
      {"is_possible", sharing->is_possible != nullptr},
      {"alloc", sharing->alloc != nullptr},
      {"share", sharing->share != nullptr},
      {"map", sharing->map != nullptr},
      {"unmap", sharing->unmap != nullptr},
      {"taken", sharing->taken != nullptr},
  };
  for (const auto& [function, is_there] : functions)
    if (!is_there) return {HEDDLE_DEVICE_SHARING, function};
  return {};
}

}  // namespace

heddle_device_desc whole_desc(const heddle_device_desc& given) {
  heddle_device_desc desc{};
  std::memcpy(&desc, &given, std::min<std::size_t>(given.size, sizeof desc));
  return desc;
}

DeviceExtensions extensions_of(const heddle_device_desc& desc) {
  if (desc.extension == nullptr) return {};
  const auto find = [&]<class Table>(const Table*& table, const char* name) {
    table = static_cast<const Table*>(desc.extension(name));
  };
  DeviceExtensions found;
  find(found.pinned, HEDDLE_DEVICE_PINNED);
  find(found.native, HEDDLE_DEVICE_NATIVE);
  find(found.capture, HEDDLE_DEVICE_CAPTURE);
  find(found.links, HEDDLE_DEVICE_LINKS);
  find(found.timing, HEDDLE_DEVICE_TIMING);
  find(found.cancel, HEDDLE_DEVICE_CANCEL);
  find(found.identity, HEDDLE_DEVICE_IDENTITY);
  find(found.context, HEDDLE_DEVICE_CONTEXT);
  find(found.uses, HEDDLE_DEVICE_USES);
  return found;
}

heddle_use told_use(const DeviceExtensions& extensions, heddle_use use) {
  const heddle_device_uses* const uses = extensions.uses;
  const bool is_known = use <= HEDDLE_USE_LINEAR_FP8 || (uses != nullptr && use <= uses->last);
  return is_known ? use : heddle_use{HEDDLE_USE_VECTOR};
}

void check_device_desc(const heddle_device_desc& given, std::string_view plugin) {
  const auto fail = [&](const std::string& fault) {
    throw Error(Code::invalid_argument, cat("plugin ", quote(plugin), ": ", fault,
                                            ". Build the plugin again with this engine's SDK"));
  };
  if (given.size < kFirstDevice)
    fail(cat("the desc of a device kind has ", given.size, " bytes, the first revision has ",
             kFirstDevice));
  if (given.kind == nullptr || *given.kind == '\0') fail("a device kind has no name");
  const heddle_device_desc desc = whole_desc(given);
  const std::string kind = cat("the device kind ", quote(desc.kind));
  if (const std::string_view function = missing_function(desc); !function.empty())
    fail(cat(kind, " lacks the function ", quote(function), ", which every device needs"));
  auto [extension, function] = missing_function(extensions_of(desc));
  if (function.empty()) std::tie(extension, function) = missing_function_to_share(desc);
  if (!function.empty())
    fail(cat(kind, " has the extension ", quote(extension), " without its function ",
             quote(function)));
}

}  // namespace heddle::engine
