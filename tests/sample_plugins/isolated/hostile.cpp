// A node that speaks to the engine past the worker that it runs in: what a plugin may do that has
// overwritten its process, or means harm. The tests of engine/isolate ask what the engine makes of
// it.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <heddle/node.hpp>
#include <thread>

#include "engine/isolate/channel.h"
#include "engine/isolate/protocol.h"

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Value;
using namespace heddle::engine;

constexpr std::uint8_t kAbsent = 255;

// The call's lane: the only socket above the control channel's.
int lane() {
  for (int number = 4; number < 256; ++number) {
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &size) == 0) return number;
  }
  std::abort();
}

std::string message(LaneMessage kind, const BytesWriter& body, std::uint64_t bytes) {
  BytesWriter whole;
  whole.number(std::uint32_t(kind));
  whole.number(std::uint32_t{0});
  whole.number(bytes);
  whole.append(body);
  return whole.bytes();
}
std::string message(LaneMessage kind, const BytesWriter& body) {
  return message(kind, body, body.bytes().size());
}

void send(const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(lane(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) std::_Exit(0);  // the engine has ended it
    at += std::size_t(sent);
  }
}

[[noreturn]] void wait_for_the_end() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

void send_descriptors() {
  const int file = ::open("/dev/null", O_RDONLY);
  for (int i = 0; i < 200; ++i) {
    BytesWriter body;
    body.number(0.5);
    body.text("with a descriptor");
    std::string bytes = message(LaneMessage::progress, body);
    bytes[4] = 1;  // it says so, too
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const head = CMSG_FIRSTHDR(&header);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &file, sizeof file);
    if (::sendmsg(lane(), &header, MSG_NOSIGNAL) != ssize_t(bytes.size())) std::abort();
  }
  ::close(file);
}

// The id of memory that the engine gives, 0 where it refuses.
std::uint64_t ask_for_memory(std::uint64_t bytes) {
  BytesWriter body;
  body.number(bytes);
  body.text("much");
  send(message(LaneMessage::make_host, body));
  std::uint64_t size = 0;
  char answer[4096];
  if (::recv(lane(), answer, 16, MSG_WAITALL) != 16) std::_Exit(0);
  std::memcpy(&size, answer + 8, sizeof size);
  if (size > sizeof answer || ::recv(lane(), answer, size, MSG_WAITALL) != ssize_t(size))
    std::_Exit(0);
  std::uint64_t id = 0;
  if (answer[0] == 0) std::memcpy(&id, answer + 1, sizeof id);
  return id;
}

std::string result(const BytesWriter& outputs) {
  BytesWriter body;
  body.flag(false);  // no failure
  body.text(outputs.bytes());
  body.number(std::uint32_t{0});
  body.number(std::uint32_t{0});
  return message(LaneMessage::result, body);
}
void begin_outputs(BytesWriter& to, std::uint8_t kind) {
  to.number(std::uint32_t{1});
  to.number(kind);
}
void write_f32(BytesWriter& to, TensorPlace place, std::int64_t elements) {
  begin_outputs(to, HEDDLE_KIND_TENSOR);
  to.number(std::uint8_t(place));
  to.number(heddle_dtype(HEDDLE_F32));
  to.number(std::uint32_t{1});
  to.number(heddle_layout{0});
  to.number(elements);
  to.number(std::int64_t{1});
}

// A result by the name of what is wrong with it; it is over with it.
BytesWriter wrong_outputs(const std::string& how) {
  BytesWriter to;
  if (how == "absent item" || how == "many items") {
    begin_outputs(to, HEDDLE_KIND_LIST);
    to.flag(false);
    const std::uint32_t items = how == "many items" ? 5'000'000 : 1;
    to.number(items);
    const std::uint8_t item = how == "many items" ? std::uint8_t(HEDDLE_KIND_NONE) : kAbsent;
    std::memset(to.room(items), item, items);
  } else if (how == "absent field") {
    begin_outputs(to, HEDDLE_KIND_RECORD);
    to.number(std::uint32_t{1});
    to.text("field");
    to.number(kAbsent);
  } else if (how == "absent input") {
    begin_outputs(to, kAbsent);
    to.flag(true);
    to.number(std::uint32_t{0});
    to.number(std::uint32_t{1});
    for (const char* text : {"new", "test.keep", ""}) to.text(text);
    to.number(std::uint32_t{1});
    to.text("value");
    to.flag(false);
    to.number(kAbsent);
    to.number(std::uint32_t{0});
  } else if (how == "elements missing") {
    write_f32(to, TensorPlace::message, std::int64_t{1} << 28);
    to.text("");
  } else if (how == "outside of memory") {
    const std::uint64_t id = ask_for_memory(32 << 10);
    write_f32(to, TensorPlace::shared, 8 << 10);
    to.number(id);
    to.number(std::uint64_t{4096});
  } else if (how == "foreign memory") {
    write_f32(to, TensorPlace::shared, 8 << 10);
    to.number(std::uint64_t{123'456});
    to.number(std::uint64_t{0});
  } else if (how == "memory of a device" || how == "host memory as a device's") {
    const bool is_foreign = how == "memory of a device";
    const std::uint64_t id = is_foreign ? 123'456 : ask_for_memory(32 << 10);
    write_f32(to, TensorPlace::device, 8 << 10);
    to.number(id);
    to.number(std::uint64_t{0});
  } else if (how == "many outputs") {
    to.number(std::uint32_t{3});
    for (int i = 0; i < 3; ++i) to.number(kAbsent);
  } else {
    to.number(std::uint16_t{7});  // cut off
  }
  if (how != "absent input") to.flag(false);
  return to;
}

void tell_wrong(const std::string& how) {
  BytesWriter body;
  if (how == "preview") {  // three times the product wraps around to the bytes that there are
    for (const std::uint32_t number : {4293443238u, 1432163965u, 1u, 1u}) body.number(number);
    body.text(std::string(4394, 'x'));
    return send(message(LaneMessage::preview, body));
  }
  if (how == "long header")
    return send(message(LaneMessage::progress, body, std::uint64_t{1} << 40));
  if (how == "unknown kind") return send(message(LaneMessage(999), body));
  if (how == "a call back") return send(message(LaneMessage::call, body));
  if (how == "defers twice") {
    const std::string deferred = message(LaneMessage::deferred, body);
    return send(deferred + deferred);
  }
  if (how == "two results") {
    BytesWriter outputs;
    begin_outputs(outputs, HEDDLE_KIND_INT);
    outputs.number(std::int64_t{1});
    outputs.flag(false);
    return send(result(outputs) + message(LaneMessage::progress, body));
  }
  send(result(wrong_outputs(how)));
}

void hang_by(const std::string& how) {
  if (how == "promise") send(message(LaneMessage::progress, {}, 200 << 20));
  if (how == "drop by drop") {
    send(message(LaneMessage::progress, {}, 1 << 20));
    for (;;) {
      send("x");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  if (how == "asks on and on")
    for (;;) (void)ask_for_memory(1);
  wait_for_the_end();
}

struct Hostile {
  static constexpr heddle::Info info{"test.hostile", 1,  "Hostile",
                                     "test",         "", HEDDLE_NODE_IMPURE | HEDDLE_NODE_EXPANDS};
  static constexpr Input<std::string> how{"how", {.text = ""}};
  static constexpr Output<Value> out{"out", 0, "", "*"};
  static constexpr auto ports = heddle::ports(how, out);
  void execute(Context& ctx) {
    const std::string way = ctx[how];
    ctx[out] = Value::adopt(heddle::services.value->make_float(1.5));
    if (way.empty()) return;
    if (way == "descriptors") return send_descriptors();
    if (way == "memory") {
      for (const int exponent : {63, 62, 47, 44})
        if (ask_for_memory((std::uint64_t{1} << exponent) - 1) != 0) std::abort();
      return;
    }
    if (way == "long text") {
      const std::string text(std::size_t(kMostMessageBytes) + 1, 'x');
      ctx[out] = Value::adopt(heddle::services.value->make_str({text.data(), text.size()}));
      return;
    }
    if (way == "child") {  // it keeps the sockets open
      const pid_t child = ::fork();
      if (child == 0) wait_for_the_end();
      ctx.warn(std::to_string(child));
      std::abort();
    }
    if (way == "promise" || way == "drop by drop" || way == "asks on and on") hang_by(way);
    tell_wrong(way);
    wait_for_the_end();
  }
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.hostile", "1.0.0", Hostile)
