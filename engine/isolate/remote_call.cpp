#include "engine/isolate/remote_call.h"

#include <memory>

#include "engine/base/text.h"
#include "engine/base/thread.h"
#include "engine/device/device.h"
#include "engine/device/status.h"
#include "engine/isolate/worker_call.h"
#include "engine/plugin/host.h"

namespace heddle::engine {

namespace {

struct TimeIsUp {};

}  // namespace

RemoteCall::RemoteCall(std::shared_ptr<WorkerProcess> worker, Of of, heddle_ctx* ctx)
    : worker_(std::move(worker)),
      of_(std::move(of)),
      ctx_(ctx),
      node_call_(dynamic_cast<NodeCall*>(ctx)),
      end_(worker_, of_.plugin, ctx) {
  try {
    number_ = worker_->begin_call();
  } catch (...) {
    --worker_->calls;
    throw;
  }
}

// The worker's count went up when it was chosen.
RemoteCall::~RemoteCall() {
  worker_->end_call(number_);
  --worker_->calls;
}

void RemoteCall::write_inputs(CallKind kind, BytesWriter& to) {
  to.text(ctx_->node());
  to.number(ctx_->compute());
  to.number(ctx_->preview_method());
  to.number(std::uint64_t(ctx_->element()));
  DeviceState* const device = kind == CallKind::execute ? device_of_call() : nullptr;
  end_.use_device(device, device == nullptr ? nullptr : node_call_->device_claim());
  to.text(device == nullptr ? "" : describe_for_worker(device->device()));
  const heddle_node_desc& desc = of_.node->desc;
  to.number(desc.input_count);
  for (std::uint32_t i = 0; i < desc.input_count; ++i) {
    end_.keep_tensors((desc.inputs[i]->flags & HEDDLE_PORT_PASS) != 0);
    write_value(to, ctx_->input(i), end_);
  }
  end_.keep_tensors((desc.flags & HEDDLE_NODE_PASS_EXTRA) != 0);
  const auto extras = ctx_->extras();
  to.number(std::uint32_t(extras.size()));
  for (const auto& [name, value] : extras) {
    to.text(name);
    write_value(to, value.get(), end_);
  }
  end_.keep_tensors(false);
  end_.finish_device_work();
}

// The device that the worker works on, too; nullptr: values cross by host memory.
DeviceState* RemoteCall::device_of_call() const {
  if (!of_.may_use_devices || node_call_ == nullptr) return nullptr;
  DeviceState* const device = node_call_->placed_on();
  return device != nullptr && can_share(device->device()) ? device : nullptr;
}

void RemoteCall::begin(CallKind kind) {
  BytesWriter body;
  body.number(std::uint8_t(kind));
  body.number(of_.type);
  body.number(of_.instance);
  try {
    if (ctx_ != nullptr) write_inputs(kind, body);
    if (body.bytes().size() > kMostMessageBytes)
      throw Error(Code::unsupported,
                  cat("the inputs have ", body.bytes().size(),
                      " bytes of texts, lists and small tensors; at most ", kMostMessageBytes,
                      " bytes cross to a worker. Leave the plugin out of --isolate"));
    lane_ = worker_->take_lane();
  } catch (...) {
    end_.take_back();
    throw;
  }
  begun_ = Clock::now();
  end_.has_sent();
  try {
    lane_->flags().is_cancelled = 0;
    lane_->channel.while_waiting([this] { check_while_waiting(); });
    lane_->channel.send(std::uint32_t(LaneMessage::call), body.bytes());
  } catch (const ChannelClosed&) {
    lost(false);
  } catch (const TimeIsUp&) {
    lost(true);
  }
}

void RemoteCall::check_time() {
  if (node_call_ != nullptr && node_call_->is_run_cancelled()) lane_->flags().is_cancelled = 1;
  const std::chrono::duration<double> worked = Clock::now() - begun_ - served_;
  if (of_.most_seconds > 0 && worked.count() > of_.most_seconds) throw TimeIsUp();
}

// Another process may hold the worker's sockets open. What it said before its end is heard: it may
// have come since the wait began.
void RemoteCall::check_while_waiting() {
  check_time();
  const bool has_ended = !worker_->is_alive() || worker_->has_ended_unseen();
  if (has_ended && std::exchange(knows_end_, true)) throw ChannelClosed();
}

std::string RemoteCall::whose() const {
  return cat("the node type ", quote(of_.node->desc.type), " of the plugin ", quote(of_.plugin),
             ", which runs isolated, ");
}

void RemoteCall::gone_wild(const Error& what) {
  const Error error(Code::internal,
                    cat(whose(), "is broken, so its worker was ended: ", what.what()));
  const WorkerProcess::Ending ending =
      worker_->end(true, WorkerProcess::Failure{error.code(), error.what()});
  // What the worker had was taken from it as another call failed: then this is no fault of its own.
  if (ending.because && ending.because->message != error.what()) lost(false);
  throw error;
}

void RemoteCall::lost(bool hangs) {
  if (hangs) {
    const Error error(Code::internal,
                      cat(whose(), "has not ended within ", of_.most_seconds,
                          " s (--isolate-timeout), so its worker was ended. Other runs go on"));
    worker_->end(true, WorkerProcess::Failure{error.code(), error.what()});
    throw error;
  }
  const WorkerProcess::Ending ending = worker_->end(false);
  // Whichever of the calls the run hears of first: it is told what has failed, in the same code.
  if (ending.because)
    throw Error(
        ending.because->code,
        cat(whose(), "lost its worker, as another call there failed: ", ending.because->message));
  throw Error(Code::internal, cat(whose(), "crashed: its worker ", ending.how,
                                  ". Other runs go on, and the next call starts another worker"));
}

bool RemoteCall::serve_until_result(std::string& result) {
  try {
    for (;;) {
      Message message = lane_->channel.receive();
      const auto kind = LaneMessage(message.kind);
      if (kind == LaneMessage::result) {
        result = std::move(message.body);
        return true;
      }
      if (kind == LaneMessage::deferred) return false;
      BytesReader from(message.body);
      const Clock::time_point begin = Clock::now();
      const bool is_heard = hear(kind, from);
      if (is_heard) served_ += Clock::now() - begin;
      if (!is_heard) answer(kind, from);
      check_time();
    }
  } catch (const ChannelClosed&) {
    lost(false);
  } catch (const TimeIsUp&) {
    lost(true);
  } catch (const Error& error) {  // nobody knows what comes next
    gone_wild(error);
  } catch (...) {
    worker_->end(true);
    throw;
  }
}

template <class F>
void RemoteCall::finish(const std::string& result, F&& take) {
  // What is no result at all ends the worker; what the engine refuses of one fails the call alone.
  std::unique_ptr<heddle_status, decltype(&free_status)> failure(nullptr, &free_status);
  try {
    BytesReader from(result);
    failure.reset(read_status(from));
    BytesReader body(from.text());
    const bool is_taken = failure == nullptr;
    if (is_taken) failure.reset(to_status([&] { take(body); }));
    if (is_taken && failure != nullptr && failure->error.code() == Code::internal)
      throw failure->error;
    worker_->release(from);
    if (lane_->channel.has_unread())
      throw Error(Code::internal, "it says something behind the result of a call");
  } catch (const Error& error) {
    gone_wild(error);
  }
  // A context does not recover from a fault of its device, and what a worker could not read of a
  // call it holds: the next call gets another worker.
  if (failure != nullptr && end_.uses_device() && failure->error.code() != Code::cancelled)
    (void)worker_->end(
        true, WorkerProcess::Failure{
                  failure->error.code(),
                  cat("the node type ", quote(of_.node->desc.type), ": ", failure->error.what())});
  else
    worker_->give_back(std::move(lane_));
  throw_status(failure.release(), "");
}

template <class F>
heddle_status* RemoteCall::run(CallKind kind, F&& take) {
  return to_status([&] {
    begin(kind);
    std::string result;
    if (!serve_until_result(result))
      gone_wild(Error(Code::internal, "it defers a call that cannot be deferred"));
    finish(result, take);
  });
}

heddle_status* RemoteCall::need() {
  return run(CallKind::need, [&](BytesReader& from) {
    for (std::uint32_t left = from.count(); left > 0; --left) ctx_->want(from.text());
  });
}

heddle_status* RemoteCall::fingerprint(std::uint64_t* hash) {
  return run(CallKind::fingerprint,
             [&](BytesReader& from) { *hash = from.number<std::uint64_t>(); });
}

heddle_status* RemoteCall::infer(heddle_infer* question) {
  infer_ = question;
  return run(CallKind::infer, [](BytesReader&) {});
}

heddle_status* RemoteCall::validate(heddle_validation* question) {
  validation_ = question;
  heddle_status* verdict = nullptr;
  heddle_status* const failure =
      run(CallKind::validate, [&](BytesReader& from) { verdict = read_status(from); });
  if (failure == nullptr) return verdict;
  free_status(verdict);
  return failure;
}

void RemoteCall::take_outputs(BytesReader& from) {
  const std::uint32_t count = from.count();
  if (count > of_.node->desc.output_count)
    throw Error(Code::internal, cat("it gives ", count, " outputs"));
  for (std::uint32_t i = 0; i < count; ++i)
    if (Value output = read_value(from, end_)) ctx_->set_output(i, std::move(output));
  if (from.flag()) ctx_->new_nodes() = read_new_nodes(from, end_);
  // What is in the worker goes with it: later runs make it anew.
  if (end_.has_read_objects()) ctx_->do_not_cache();
}

heddle_status* RemoteCall::execute(std::unique_ptr<RemoteCall> call) {
  return to_status([&] {
    call->begin(CallKind::execute);
    std::string result;
    if (!call->serve_until_result(result)) return go_on_later(std::move(call));
    call->finish(result, [&](BytesReader& from) { call->take_outputs(from); });
  });
}

void RemoteCall::go_on_later(std::unique_ptr<RemoteCall> call) {
  heddle_completion* const completion = completion_service()->defer(call->ctx_);
  if (completion == nullptr) throw Error(Code::out_of_memory, "a call cannot be deferred");
  const auto go_on = [](RemoteCall* raw, heddle_completion* done) {
    std::unique_ptr<RemoteCall> rest(raw);
    heddle_status* const status = to_status([&] {
      std::string result;
      if (!rest->serve_until_result(result))
        rest->gone_wild(Error(Code::internal, "it defers a call twice"));
      rest->finish(result, [&](BytesReader& from) { rest->take_outputs(from); });
    });
    rest.reset();
    completion_service()->complete(done, status);
  };
  try {
    start_thread<std::thread>("the thread of a call that goes on in a worker", go_on, call.get(),
                              completion)
        .detach();          // it is over with complete(), which the run waits for
    (void)call.release();   // the thread's
  } catch (const Error&) {  // no thread is left: this one waits for the result
    go_on(call.release(), completion);
  }
}

}  // namespace heddle::engine
