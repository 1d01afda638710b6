// The state of a call that goes on later (heddle_resume_service).
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/run/node_call.h"
#include "engine/run/saved_run.h"

namespace heddle::engine {

void NodeCall::save_state(Value state) {
  if (shared_.states == nullptr) return;
  if (!state || !may_be_kept(*state))
    throw Error(Code::invalid_argument,
                cat("the state that ", node_->type->name(), " saves is ",
                    state ? describe(*state) : "nothing",
                    "; it has to be made of numbers, texts, lists, records and tensors"));
  // Also what is in host memory already: the next step may write over it.
  const auto copied = [this](const Tensor& tensor) {
    const heddle_tensor_info& info = tensor->info;
    const Tensor copy = make_host(make_info(info.dtype, std::span(info.shape, info.rank)));
    if (const std::uint64_t bytes = dense_bytes(info); bytes > 0)
      read(tensor.get(), copy->data(), bytes);
    return copy;
  };
  Value copy;
  try {
    copy = map_tensors(state, copied);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_memory) throw;
    return warn(cat("its state is not kept, so it goes on: ", error.full()));
  }
  if (!shared_.states->save(index_, element_, std::move(copy))) suspend();
}

void NodeCall::suspend() {
  is_suspended_ = true;
  throw Error(Code::cancelled, "the run gives back what it holds, and goes on later");
}

}  // namespace heddle::engine
