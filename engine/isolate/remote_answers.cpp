// What a node in a worker asks of the engine, and tells it, while it is called.
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/device/device.h"
#include "engine/device/status.h"
#include "engine/isolate/remote_call.h"
#include "engine/plugin/host.h"

namespace heddle::engine {

bool RemoteCall::hear(LaneMessage kind, BytesReader& from) {
  if (kind == LaneMessage::log) {
    const auto level = from.number<std::int32_t>();
    log(Level(std::clamp(level, std::int32_t(HEDDLE_DEBUG), std::int32_t(HEDDLE_ERROR))),
        from.text());
    return true;
  }
  if (kind == LaneMessage::add_cost || kind == LaneMessage::host_scratch) {
    if (infer_ == nullptr) return true;
    if (kind == LaneMessage::host_scratch) {
      cost_service()->host_scratch(infer_, from.number<std::uint64_t>());
      return true;
    }
    const auto flops = from.number<double>(), bytes = from.number<double>();
    cost_service()->add(infer_, flops, bytes, from.number<std::uint64_t>());
    return true;
  }
  if (kind < LaneMessage::progress || kind > LaneMessage::do_not_cache) return false;
  if (ctx_ == nullptr) return true;
  switch (kind) {
    case LaneMessage::progress: {
      const auto fraction = from.number<double>();
      ctx_->progress(fraction, from.text());
      break;
    }
    case LaneMessage::warn:
      ctx_->warn(from.text());
      break;
    case LaneMessage::wrote: {
      const std::string_view path = from.text();
      ctx_->wrote(path, from.text());
      break;
    }
    case LaneMessage::preview: {
      heddle_preview picture{sizeof(heddle_preview), 0, 0, 0, 0, nullptr};
      for (std::uint32_t* member :
           {&picture.width, &picture.height, &picture.step, &picture.step_count})
        *member = from.number<std::uint32_t>();
      const std::string_view pixels = from.text();
      // Two numbers of 32 bits: their product fits, three times it does not.
      if (std::uint64_t{picture.width} * picture.height > kMostMessageBytes ||
          pixels.size() != std::size_t{3} * picture.width * picture.height)
        throw Error(Code::internal,
                    cat("a preview of ", picture.width, " by ", picture.height, " pixels has ",
                        pixels.size(), " bytes; it is to have three for each pixel"));
      picture.pixels = reinterpret_cast<const std::uint8_t*>(pixels.data());
      ctx_->preview(picture);
      break;
    }
    case LaneMessage::picture:
      ctx_->send_picture(from.text());
      break;
    case LaneMessage::heard_cancelled:
      (void)ctx_->cancelled();
      break;
    default:
      ctx_->do_not_cache();
  }
  return true;
}

void RemoteCall::answer(LaneMessage kind, BytesReader& from) {
  if (kind < LaneMessage::make_host || kind > LaneMessage::validation_has_file)
    throw Error(Code::internal,
                cat("it sends a message of the unknown kind ", std::uint32_t(kind)));
  const Clock::time_point begin = Clock::now();
  BytesWriter content;
  heddle_status* failure = to_status([&] {
    if (kind >= LaneMessage::infer_part)
      answer_question(kind, from, content);
    else if (ctx_ == nullptr)
      throw Error(Code::unsupported, "a node may ask that while it runs, and not before");
    else
      answer_call(kind, from, content);
    end_.finish_device_work();
    if (content.bytes().size() >= kMostMessageBytes)
      throw Error(Code::unsupported, cat("an answer of ", content.bytes().size(),
                                         " bytes is too long for a worker; at most ",
                                         kMostMessageBytes, " bytes cross"));
  });
  if (failure != nullptr)
    end_.take_back();
  else
    end_.has_sent();
  BytesWriter body;
  write_status(body, failure);
  if (failure == nullptr) body.append(content);
  free_status(failure);
  served_ += Clock::now() - begin;  // and not how long the worker takes to listen
  lane_->channel.send(std::uint32_t(LaneMessage::answer), body.bytes());
}

void RemoteCall::answer_call(LaneMessage kind, BytesReader& from, BytesWriter& to) {
  switch (kind) {
    case LaneMessage::make_host: {
      const auto bytes = from.number<std::uint64_t>();
      return to.number(worker_->make_shared_memory(bytes, end_.counter(std::string(from.text())))
                           ->buffer()
                           .id());
    }
    case LaneMessage::make_device: {
      const auto bytes = from.number<std::uint64_t>();
      return to.number(end_.make_device_memory(bytes, from.text()));
    }
    case LaneMessage::find_file: {
      const std::string_view folder = from.text();
      return to.text(ctx_->find_file(folder, from.text()));
    }
    case LaneMessage::folder_places: {
      const std::vector<std::string> places = ctx_->folder_places(from.text());
      to.number(std::uint32_t(places.size()));
      for (const std::string& place : places) to.text(place);
      return;
    }
    case LaneMessage::output_folder:
      return to.text(ctx_->output_folder(from.text()));
    case LaneMessage::identify_file:
      return to.number(ctx_->identify_file(from.text()));
    case LaneMessage::look_up:
      return write_value(to, ctx_->look_up(from.text()).get(), end_);
    default:
      return answer_state(kind, from, to);
  }
}

void RemoteCall::answer_state(LaneMessage kind, BytesReader& from, BytesWriter& to) {
  switch (kind) {
    case LaneMessage::saved_state:
      return write_value(to, ctx_->saved_state(), end_);
    case LaneMessage::at_boundary:
      return to.flag(ctx_->at_boundary());
    case LaneMessage::save_state:
      return ctx_->save_state(read_value(from, end_));
    default:
      throw Error(Code::internal,
                  cat("a worker sends a message of the unknown kind ", std::uint32_t(kind)));
  }
}

void RemoteCall::answer_question(LaneMessage kind, BytesReader& from, BytesWriter& to) {
  const auto port = from.number<heddle_port_index>();
  const std::string path(from.text());
  const bool is_infer = kind <= LaneMessage::infer_shares;
  if (is_infer ? infer_ == nullptr : validation_ == nullptr)
    throw Error(Code::unsupported, "a node may ask that before it runs, and not while it does");
  switch (kind) {
    case LaneMessage::infer_part:
      return write_value(to, infer_service()->part(infer_, port, path.c_str()), end_);
    case LaneMessage::infer_in: {
      heddle_tensor_info info{};
      info.size = sizeof info;
      const bool is_known = infer_service()->in(infer_, port, path.c_str(), &info) != 0;
      to.flag(is_known);
      if (is_known) write_info(to, info);
      return;
    }
    case LaneMessage::infer_out: {
      const heddle_tensor_info info = read_info(from);
      return throw_status(infer_service()->out(infer_, port, path.c_str(), &info), "");
    }
    case LaneMessage::infer_known: {
      const Value value = read_value(from, end_);
      return throw_status(infer_service()->known(infer_, port, path.c_str(), value.get()), "");
    }
    case LaneMessage::infer_shares:
      return throw_status(infer_service()->shares(infer_, port), "");
    case LaneMessage::validation_value:
      return write_value(to, validation_service()->value(validation_, port), end_);
    case LaneMessage::validation_received: {
      const char* const type = validation_service()->received(validation_, port);
      to.flag(type != nullptr);
      if (type != nullptr) to.text(type);
      return;
    }
    case LaneMessage::validation_has_file:
      return to.flag(validation_service()->has_file(validation_, port, path.c_str()) != 0);
    default:
      return answer_state(kind, from, to);
  }
}

}  // namespace heddle::engine
