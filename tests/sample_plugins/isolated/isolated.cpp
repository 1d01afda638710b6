// Nodes for tests of isolated plugins: one that ends its process in any way that it is asked for,
// and some whose values show what crosses to a worker and back.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <heddle/node.hpp>
#include <numeric>
#include <thread>

namespace {

using heddle::Context;
using heddle::Input;
using heddle::Output;
using heddle::Tensor;
using heddle::Value;

// Calls itself until its stack is used up.
[[gnu::noinline]] std::int64_t deeper(volatile const std::int64_t* above) {
  if (*above < 0) return 0;  // never: it counts up
  volatile std::int64_t room[512] = {*above + 1};
  return deeper(room) + room[0];
}

[[gnu::noinline]] void take_a_gibibyte() {
  std::vector<std::unique_ptr<char[]>> taken;
  while (taken.size() < 128) taken.push_back(std::make_unique_for_overwrite<char[]>(8 << 20));
}

// Writes to whom nobody listens: an error, and not the end of the process.
void write_to_nobody() {
  int ends[2];
  if (::pipe(ends) != 0 || ::close(ends[0]) != 0) std::abort();
  if (::write(ends[1], "x", 1) >= 0 || errno != EPIPE) std::abort();
  ::close(ends[1]);
}

void end_by(const std::string& how, Context& ctx) {
  if (how == "null") *static_cast<volatile int*>(nullptr) = 1;
  if (how == "abort") std::abort();
  if (how == "stack") {
    volatile std::int64_t begin = 0;
    (void)deeper(&begin);
  }
  if (how == "kill") ::kill(::getpid(), SIGKILL);  // as the system does where memory is out
  if (how == "exit") std::exit(3);
  if (how == "hang")
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (how == "throw") throw heddle::Error(HEDDLE_INVALID_ARGUMENT, "it was asked to fail");
  if (how == "until cancelled")
    while (!ctx.cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (how == "memory") take_a_gibibyte();
  if (how == "pipe") write_to_nobody();
}

struct End {
  static constexpr heddle::Info info{"test.isolated.end", 1, "End", "test", "", HEDDLE_NODE_IMPURE};
  static constexpr Input<std::string> how{"how", {.text = ""}};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<std::int64_t> out{"out"};
  static constexpr auto ports = heddle::ports(how, value, out);
  void execute(Context& ctx) {
    ctx.progress(0.5, "working");
    end_by(ctx[how], ctx);
    ctx[out] = ctx[value] + 1;
  }
};

struct Echo {
  static constexpr heddle::Info info{"test.isolated.echo", 1, "Echo", "test"};
  static constexpr Input<Value> in{"in", 0, "", "*"};
  static constexpr Input<std::int64_t> number{"number", {.number = 0}};  // another call
  static constexpr Output<Value> out{"out", 0, "", "*"};
  static constexpr auto ports = heddle::ports(in, number, out);
  void execute(Context& ctx) { ctx[out] = ctx[in]; }
};

// The same without a look at tensors.
struct Pass {
  static constexpr heddle::Info info{"test.isolated.pass", 1, "Pass", "test"};
  static constexpr Input<Value> in{"in", HEDDLE_PORT_PASS, "", "*"};
  static constexpr Output<Value> out{"out", 0, "", "*"};
  static constexpr auto ports = heddle::ports(in, out);
  void execute(Context& ctx) { ctx[out] = ctx[in]; }
};

// 0, 1, 2, ... as f32, columns first where it is asked for.
struct Count {
  static constexpr heddle::Info info{"test.isolated.count", 1, "Count", "test"};
  static constexpr Input<std::int64_t> rows{"rows", {.number = 2, .min = 0, .max = 1 << 20}};
  static constexpr Input<bool> turned{"turned", {.number = 0}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(rows, turned, out);
  void execute(Context& ctx) {
    const Tensor tensor = ctx.make_host({ctx[rows], 4}, HEDDLE_F32);
    std::iota(tensor.data<float>(), tensor.data<float>() + tensor.count(), 0.f);
    ctx[out] = ctx[turned] ? tensor.permute({1, 0}) : tensor;
  }
  static void infer(heddle::Infer& q) {
    const auto n = q[rows];
    const auto is_turned = q[turned];
    if (!n || !is_turned) return;
    q.out(out, "", HEDDLE_F32, *is_turned ? heddle::Shape{4, *n} : heddle::Shape{*n, 4});
  }
};

// Adds a number to each element.
struct Shift {
  static constexpr heddle::Info info{"test.isolated.shift", 1, "Shift", "test"};
  static constexpr Input<Tensor> in{"in"};
  static constexpr Input<double> by{"by", {.number = 1}};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(in, by, out);
  void execute(Context& ctx) {
    const Tensor from = ctx[in];
    const std::vector<float> elements = ctx.read<float>(from);
    const Tensor to = ctx.make(from.shape(), HEDDLE_F32);
    const auto step = float(ctx[by]);
    std::ranges::transform(elements, to.data<float>(), [step](float x) { return x + step; });
    ctx[out] = to;
  }
};

// Writes to its input, which is others' as well.
struct Scribble {
  static constexpr heddle::Info info{"test.isolated.scribble", 1, "Scribble", "test"};
  static constexpr Input<Tensor> in{"in"};
  static constexpr Output<Tensor> out{"out"};
  static constexpr auto ports = heddle::ports(in, out);
  void execute(Context& ctx) {
    const Tensor tensor = ctx[in];
    tensor.data<volatile float>()[0] = -1;
    ctx[out] = tensor;
  }
};

constexpr const char* kBox = "test.isolated.box/0";
std::atomic<std::int64_t> boxes{0}, made_boxes{0};  // in this process

struct MakeBox {
  static constexpr heddle::Info info{"test.isolated.make_box", 1, "Make a box", "test"};
  static constexpr Input<std::int64_t> value{"value", {.number = 0}};
  static constexpr Output<Value> box{"box", 0, "", "TEST_BOX"};
  static constexpr auto ports = heddle::ports(value, box);
  void execute(Context& ctx) {
    ++boxes;
    ++made_boxes;
    ctx[box] = Value::adopt(heddle::services.value->make_object(
        kBox, &kBox, new std::int64_t(ctx[value]), [](void* self) {
          delete static_cast<std::int64_t*>(self);
          --boxes;
        }));
  }
};

struct OpenBox {
  static constexpr heddle::Info info{"test.isolated.open_box", 1, "Open a box", "test"};
  static constexpr Input<Value> box{"box", 0, "", "TEST_BOX"};
  static constexpr Input<Value> other{"other", HEDDLE_PORT_OPTIONAL, "", "TEST_BOX"};
  static constexpr Output<std::int64_t> value{"value"};
  static constexpr auto ports = heddle::ports(box, other, value);
  static std::int64_t inside(const Value& object) {
    return *static_cast<std::int64_t*>(object.object<void>(kBox).second);
  }
  void execute(Context& ctx) {
    ctx[value] = inside(ctx[box]) + (ctx.has(other) ? inside(ctx[other]) : 0);
  }
};

// The process, how many boxes there are in it, and how many there ever were.
struct Process {
  static constexpr heddle::Info info{"test.isolated.process", 1, "Process", "test", "",
                                     HEDDLE_NODE_IMPURE};
  static constexpr Output<std::int64_t> id{"id"};
  static constexpr Output<std::int64_t> count{"count"};
  static constexpr Output<std::int64_t> made{"made"};
  static constexpr auto ports = heddle::ports(id, count, made);
  void execute(Context& ctx) {
    ctx[id] = std::int64_t(::getpid());
    ctx[count] = boxes.load();
    ctx[made] = made_boxes.load();
  }
};

// What the sandbox refuses: "network", "program" or nothing.
struct Reach {
  static constexpr heddle::Info info{"test.isolated.reach", 1, "Reach", "test", "",
                                     HEDDLE_NODE_IMPURE};
  static constexpr Output<std::string> refused{"refused"};
  static constexpr auto ports = heddle::ports(refused);
  void execute(Context& ctx) {
    std::string text;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (socket < 0 && errno == EPERM) text += "network ";
    if (socket >= 0) ::close(socket);
    const int local = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (local < 0) text += "local ";
    if (local >= 0) ::close(local);
    const char* const nothing[] = {nullptr};
    ::execve("/nowhere/at/all", const_cast<char* const*>(nothing),
             const_cast<char* const*>(nothing));
    if (errno == EPERM) text += "program ";
    ctx[refused] = text;
  }
};

// All that a node tells people, and what it asks of the engine.
struct Tell {
  static constexpr heddle::Info info{
      "test.isolated.tell", 1, "Tell", "test", "", HEDDLE_NODE_SINK | HEDDLE_NODE_IMPURE};
  static constexpr Input<std::string> warning{"warning", {.text = "take care"}};
  static constexpr auto ports = heddle::ports(warning);
  void execute(Context& ctx) {
    heddle::services.host->log(heddle::services.host, HEDDLE_WARN, "a line of the log");
    ctx.warn(ctx[warning]);
    ctx.progress(0.25, ctx.node().c_str());
    const std::uint8_t pixels[] = {1, 2, 3, 4, 5, 6};
    ctx.preview({sizeof(heddle_preview), 2, 1, 3, 4, pixels});
    const auto& folders = heddle::service<heddle_folders_service>();
    heddle_value *folder = nullptr, *file = nullptr;
    heddle::check(folders.output(ctx.raw(), "output", &folder));
    const std::string path = Value::adopt(folder).as<std::string>() + "/told";
    (void)heddle::create_file(path, "told");
    std::uint64_t hash = 0;
    heddle::check(folders.identify(ctx.raw(), path.c_str(), &hash));
    heddle::service<heddle_report_service>().wrote(ctx.raw(), path.c_str(),
                                                   R"({"text": ["it is told"]})");
    heddle_status* const missing = folders.find(ctx.raw(), "loras", "none at all", &file);
    ctx.warn(heddle::services.host->status_message(missing));
    heddle::services.host->status_free(missing);
  }
};

}  // namespace

HEDDLE_PLUGIN("org.heddle.tests.isolated", "1.0.0", End, Echo, Pass, Count, Shift, Scribble,
              MakeBox, OpenBox, Process, Reach, Tell)
