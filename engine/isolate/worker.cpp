#include "engine/isolate/worker.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iostream>
#include <set>
#include <thread>

#include "engine/base/log.h"
#include "engine/base/read_file.h"
#include "engine/base/text.h"
#include "engine/device/status.h"
#include "engine/isolate/description.h"
#include "engine/isolate/worker_call.h"
#include "engine/isolate/worker_limits.h"
#include "engine/isolate/worker_questions.h"
#include "engine/plugin/host.h"
#include "engine/plugin/loader.h"

namespace heddle::engine {

namespace {

[[noreturn]] void refuse(const Plugin& plugin, std::string_view why) {
  throw Error(Code::unsupported,
              cat(plugin.path().string(), ": the plugin ", quote(plugin.id()),
                  " cannot run in a worker: ", why, ". Leave it out of --isolate"));
}

// Of a result, what is not its outputs: a failure, and what has been let go.
constexpr std::uint64_t kMostResultHead = 16 << 20;

// The kinds that a plugin knows ("heddle.nodes/0"): nobody lists them, but whoever answers to one
// has its name in its file.
std::set<std::string> known_kinds(const std::filesystem::path& file) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;
  const std::string bytes = read_file(file.string(), {"a plugin", kMostBytes});
  const auto is_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::set<std::string> kinds;
  for (std::size_t slash = bytes.find('/'); slash != std::string::npos;
       slash = bytes.find('/', slash + 1)) {
    std::size_t begin = slash, end = slash + 1;
    while (begin > 0 && is_of_name(bytes[begin - 1])) --begin;
    while (end < bytes.size() && is_digit(bytes[end])) ++end;
    const bool is_whole = end > slash + 1 && end < bytes.size() && bytes[end] == '\0';
    if (begin < slash && is_whole) kinds.insert(bytes.substr(begin, end - begin));
  }
  return kinds;
}

// What a plugin brings besides nodes others would call in their own process.
void check_nodes_alone(const Plugin& plugin) {
  for (const auto& [kind, what] : {std::pair(HEDDLE_MODELS, "models"),
                                   {HEDDLE_DEVICES, "devices"},
                                   {HEDDLE_KERNELS, "kernels"}})
    if (const std::size_t count = plugin.provide(kind).size(); count > 0)
      refuse(plugin, cat("it brings ", count, " ", what, ", and only nodes can"));
  for (const std::string& kind : known_kinds(plugin.path()))
    if (const std::size_t count = plugin.provide(kind.c_str()).size();
        count > 0 && kind != HEDDLE_NODES)
      refuse(plugin, cat("it brings ", count, " of ", quote(kind), ", and only nodes can"));
}

// Over the plugin's end: all of it is as long as the process.
class Worker {
 public:
  explicit Worker(const WorkerSettings& settings)
      : settings_(settings), control_(kControlDescriptor, Channel::Descriptors::taken) {}
  int run();

 private:
  struct LaneMembers {
    std::vector<WorkerLane*> calling;  // with a call under way
  };
  struct Instance {
    std::uint32_t type = 0;
    void* self = nullptr;
  };

  void describe();
  void open_lane(int socket);
  void serve(WorkerLane& lane);
  void call(WorkerLane& lane, BytesReader from);
  void call_node(WorkerLane& lane, CallKind kind, const heddle_node_desc& desc, void* self,
                 BytesReader from, BytesWriter& to);
  void ask_node(WorkerLane& lane, CallKind kind, const heddle_node_desc& desc, BytesWriter& to);
  void* instance(std::uint64_t id, std::uint32_t type);
  void drop(BytesReader from);
  void log_message(Level level, std::string_view message);

  const WorkerSettings settings_;
  Channel control_;
  WorkerMemory memory_;
  std::shared_ptr<const Plugin> plugin_;
  std::vector<std::unique_ptr<NodeType>> types_;
  Guarded<std::map<std::uint64_t, Instance>> instances_;
  Guarded<LaneMembers> lanes_;
  int waiting_socket_ = -1;  // of a lane whose flags have not come yet
};

// A call's place in the log: messages of its thread go to its engine's lane.
thread_local WorkerLane* lane_of_thread = nullptr;

void Worker::describe() {
  BytesWriter body;
  heddle_status* const failure = to_status([&] {
    limit_worker(settings_);  // what the system refuses is why the plugin is
    plugin_ = load_plugin(settings_.plugin);
    check_nodes_alone(*plugin_);
    for (const void* desc : plugin_->provide(HEDDLE_NODES))
      types_.push_back(std::make_unique<NodeType>(static_cast<const heddle_node_desc*>(desc),
                                                  plugin_->id(), plugin_));
    for (const auto& type : types_)
      if (type->has(HEDDLE_NODE_BLOCK))
        refuse(*plugin_, cat("its node ", quote(type->name()), " is a block of models"));
  });
  write_status(body, failure);
  if (failure == nullptr) {
    body.text(plugin_->id());
    body.text(plugin_->version());
    body.number(std::uint32_t(types_.size()));
    for (const auto& type : types_) write_node(body, type->desc());
  }
  control_.send(std::uint32_t(ControlMessage::described), body.bytes());
}

int Worker::run() {
  set_log_sink([this](Level level, std::string_view text) { log_message(level, text); });
  set_log_level(Level(settings_.log_level));
  offer_worker_services();
  describe();
  for (;;) {
    Message message = control_.receive();
    BytesReader from(message.body);
    switch (ControlMessage(message.kind)) {
      case ControlMessage::lane:
        waiting_socket_ = message.descriptor;
        break;
      case ControlMessage::flags: {
        const auto flags =
            std::make_shared<SharedMemory>(message.descriptor, sizeof(LaneFlags), false);
        std::thread([this, socket = std::exchange(waiting_socket_, -1), flags] {
          WorkerLane lane(socket, flags, memory_);
          serve(lane);
        }).detach();  // as long as the process, or until the engine closes the lane
        break;
      }
      case ControlMessage::map: {
        const auto id = from.number<std::uint64_t>();
        const auto bytes = from.number<std::uint64_t>();
        memory_.map(id, std::make_shared<SharedMemory>(message.descriptor, bytes, from.flag()));
        break;
      }
      case ControlMessage::map_device: {
        const auto id = from.number<std::uint64_t>();
        heddle_shared_memory told{};
        const std::string_view bytes = from.text();
        std::memcpy(&told, bytes.data(), std::min(bytes.size(), sizeof told));
        memory_.map_device(id, told, message.descriptor);
        break;
      }
      case ControlMessage::forget:
        memory_.forget(from.number<std::uint64_t>());
        break;
      case ControlMessage::drop:
        drop(from);
        break;
      default:
        break;
    }
  }
}

void Worker::drop(BytesReader from) {
  const auto kind = DropKind(from.number<std::uint8_t>());
  const auto id = from.number<std::uint64_t>();
  if (kind == DropKind::object) return memory_.drop_object(id, from.number<std::uint64_t>());
  Instance dropped;
  {
    const auto instances = instances_.lock();
    const auto found = instances->find(id);
    if (found == instances->end()) return;
    dropped = found->second;
    instances->erase(found);
  }
  const heddle_node_desc& desc = types_.at(dropped.type)->desc();
  if (dropped.self != nullptr && desc.destroy != nullptr) desc.destroy(dropped.self);
}

void* Worker::instance(std::uint64_t id, std::uint32_t type) {
  if (id == 0) return nullptr;
  {
    const auto instances = instances_.lock();
    if (const auto found = instances->find(id); found != instances->end())
      return found->second.self;
  }
  void* self = nullptr;  // an instance belongs to one call at a time: nobody else makes this one
  throw_status(types_.at(type)->desc().create(plugin_host(), &self), "");
  instances_.lock()->emplace(id, Instance{type, self});
  return self;
}

void Worker::serve(WorkerLane& lane) {
  lane_of_thread = &lane;
  for (;;) {
    const Message message = lane.receive();
    if (message.body.empty()) return;
    lanes_.lock()->calling.push_back(&lane);
    call(lane, BytesReader(message.body));
    std::erase(lanes_.lock()->calling, &lane);
  }
}

void Worker::call(WorkerLane& lane, BytesReader from) {
  BytesWriter body;
  heddle_status* failure = to_status([&] {
    const auto kind = CallKind(from.number<std::uint8_t>());
    const auto type = from.number<std::uint32_t>();
    const heddle_node_desc& desc = types_.at(type)->desc();
    void* const self = instance(from.number<std::uint64_t>(), type);
    if (kind == CallKind::infer || kind == CallKind::validate)
      ask_node(lane, kind, desc, body);
    else
      call_node(lane, kind, desc, self, from, body);
  });
  if (failure == nullptr && body.bytes().size() > kMostMessageBytes - kMostResultHead) {
    failure = make_status(Error(
        Code::unsupported, cat("the outputs have ", body.bytes().size(),
                               " bytes of texts, lists and tensors that the node has not made by "
                               "its context; at most ",
                               kMostMessageBytes - kMostResultHead, " bytes cross from a worker")));
    body = {};
  }
  BytesWriter result;
  write_status(result, failure);
  free_status(failure);
  result.text(body.bytes());
  memory_.write_released(result);
  lane.tell(LaneMessage::result, result);
}

void Worker::call_node(WorkerLane& lane, CallKind kind, const heddle_node_desc& desc, void* self,
                       BytesReader from, BytesWriter& to) {
  auto call = std::make_unique<WorkerCall>(lane, desc, from);
  if (kind == CallKind::need) {
    throw_status(desc.need(self, call.get()), "");
    return call->write_wanted(to);
  }
  if (kind == CallKind::fingerprint) {
    std::uint64_t hash = 0;
    throw_status(desc.fingerprint(self, call.get(), &hash), "");
    return to.number(hash);
  }
  heddle_status* status = desc.execute(self, call.get());
  if (call->is_deferred()) {
    if (status != nullptr) {
      (void)call.release();  // whoever was to complete it may still do so
      throw_status(status, "");
    }
    lane.tell(LaneMessage::deferred, {});
    status = call->wait_until_complete();
  }
  // What has failed as well: the engine gets back what this work reads and writes.
  heddle_status* const late = call->finish_device_work();
  if (status == nullptr)
    status = late;
  else
    free_status(late);
  throw_status(status, "");
  call->write_outputs(to);
}

void Worker::ask_node(WorkerLane& lane, CallKind kind, const heddle_node_desc& desc,
                      BytesWriter& to) {
  WorkerQuestion question(lane);
  void* const handle = &question;
  if (kind == CallKind::infer)
    throw_status(desc.infer(plugin_host(), static_cast<heddle_infer*>(handle)), "");
  else  // the message of this one may be empty
    write_status(to,
                 desc.validator->validate(plugin_host(), static_cast<heddle_validation*>(handle)));
}

void Worker::log_message(Level level, std::string_view message) {
  BytesWriter body;
  body.number(std::int32_t(level));
  body.text(message);
  if (lane_of_thread != nullptr) return lane_of_thread->tell(LaneMessage::log, body);
  const auto lanes = lanes_.lock();  // none of them ends meanwhile
  if (!lanes->calling.empty()) return lanes->calling.front()->tell(LaneMessage::log, body);
  std::cerr << cat("heddle: ", level_name(level), ": ", message, "\n");
}

}  // namespace

std::vector<std::string> WorkerSettings::arguments() const {
  std::vector<std::string> all = before;
  for (std::string& text :
       std::vector<std::string>{plugin, std::to_string(log_level), std::to_string(memory_bytes),
                                sandbox ? "1" : "0", std::to_string(engine)})
    all.push_back(std::move(text));
  all.insert(all.end(), behind.begin(), behind.end());
  return all;
}

WorkerSettings WorkerSettings::read(const std::vector<std::string>& arguments) {
  WorkerSettings settings;
  const auto number = [](const std::string& text, auto& into) {
    return std::from_chars(text.data(), text.data() + text.size(), into).ec == std::errc();
  };
  if (arguments.size() != 5 || !number(arguments[4], settings.engine) ||
      !number(arguments[1], settings.log_level) || !number(arguments[2], settings.memory_bytes))
    throw Error(Code::invalid_argument,
                "heddle_worker is started by heddle itself, to run nodes of a plugin");
  settings.plugin = arguments[0];
  settings.sandbox = arguments[3] == "1";
  return settings;
}

int run_worker(const WorkerSettings& settings) {
  try {
    enter_worker(settings);
    auto& worker = *new Worker(settings);  // threads of the plugin may use it to the very end
    return worker.run();
  } catch (const ChannelClosed&) {
    end_without_engine();
  } catch (const std::exception& error) {
    std::cerr << cat("heddle_worker: ", error.what(), "\n");
    ::_exit(1);  // threads of the plugin may run: nothing may end under them
  }
}

}  // namespace heddle::engine
