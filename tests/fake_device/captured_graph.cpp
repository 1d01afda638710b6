#include "captured_graph.h"

#include "device.h"
#include "heddle/device.hpp"
#include "stream.h"

namespace heddle::fake {

void CapturedGraph::add(const heddle_op_call& call, void* workspace) {
  Call kept{.op = call.op, .in = {}, .out = {}, .attrs = {}, .workspace = workspace};
  const auto keep = [](std::uint32_t count, const heddle_view* const* views,
                       std::vector<std::optional<heddle_view>>& to) {
    for (std::uint32_t i = 0; i < count; ++i)
      to.push_back(views[i] == nullptr ? std::nullopt : std::optional(*views[i]));
  };
  keep(call.in_count, call.in, kept.in);
  keep(call.out_count, call.out, kept.out);
  const auto* attrs = static_cast<const std::byte*>(call.attrs);
  if (attrs != nullptr) kept.attrs.assign(attrs, attrs + call.attrs_size);
  calls_.push_back(std::move(kept));
}

void CapturedGraph::replay(Stream& stream) const {
  for (const Call& call : calls_) {
    std::vector<const heddle_view*> in, out;
    for (const auto& view : call.in) in.push_back(view ? &*view : nullptr);
    for (const auto& view : call.out) out.push_back(view ? &*view : nullptr);
    const heddle_op_call again{.size = sizeof(heddle_op_call),
                               .op = call.op.c_str(),
                               .in_count = static_cast<std::uint32_t>(in.size()),
                               .out_count = static_cast<std::uint32_t>(out.size()),
                               .in = in.data(),
                               .out = out.data(),
                               .attrs = call.attrs.data(),
                               .attrs_size = static_cast<std::uint32_t>(call.attrs.size())};
    device_.launch(stream, again, call.workspace);
  }
}

}  // namespace heddle::fake
