// What an engine reads of a worker, changed at random, always in the same way: it is read as
// something else or refused, and nothing else happens. And what a worker has of the engine's, when
// it is over.
#include <boost/test/unit_test.hpp>
#include <random>

#include "engine/device/status.h"
#include "engine/graph/node_type.h"
#include "engine/isolate/remote_call.h"
#include "engine/isolate/worker_call.h"
#include "engine/tensor/shape.h"
#include "tests/engine/isolate/isolated_fixture.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(isolated_mutated)

namespace {

struct OwnWorker {
  OwnWorker() {
    WorkerSettings settings;
    settings.plugin = HEDDLE_SAMPLE_PLUGINS_DIR "/isolated/sample_isolated.so";
    settings.memory_bytes = std::uint64_t{1} << 30;
    settings.engine = ::getpid();
    worker =
        std::make_shared<WorkerProcess>(std::make_shared<Spawner>(), worker_program(), settings);
  }
  std::shared_ptr<WorkerProcess> worker;
  EngineEnd end() const { return {worker, "plugin", nullptr}; }
};

Tensor numbers(std::int64_t rows) {
  const std::int64_t shape[] = {rows, 3};
  return make_host_tensor(make_info(HEDDLE_F32, shape));
}

// As a worker writes it, with memory that it has and some that it has not.
void write_mixed_value(BytesWriter& to, std::uint64_t memory) {
  to.number(std::uint8_t(HEDDLE_KIND_RECORD));
  to.number(std::uint32_t{6});
  WorkerMemory of_worker;
  WorkerEnd end(of_worker);
  const auto field = [&](const char* key, const Value& value) {
    to.text(key);
    write_value(to, value.get(), end);
  };
  field("text", make_value("some text"));
  field("list", make_value(List{{make_value(1.5), make_value(List{}), make_value(None{})}}));
  field("blocker", make_value(Blocker{"why"}));
  field("tensor", make_value(numbers(2)));
  to.text("shared");
  to.number(std::uint8_t(HEDDLE_KIND_TENSOR));
  to.number(std::uint8_t(TensorPlace::shared));
  write_info(to, numbers(2000)->info);
  to.number(memory);
  to.number(std::uint64_t{16});
  to.text("object");
  to.number(std::uint8_t(HEDDLE_KIND_OBJECT));
  to.number(std::uint8_t(HandleOwner::worker));
  to.number(std::uint64_t{1});
  to.text("an interface");
}

std::string mutated(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::size_t(random()) % n; };
  for (std::size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = char(random());
        break;
      case 1:
        bytes[at] = char(bytes[at] ^ (1 << below(8)));
        break;
      case 2:
        bytes.erase(at, 1 + below(9));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), below(40)));
        break;
      default:  // a number at the edge of its type
        for (std::size_t i = at; i < std::min(bytes.size(), at + 8); ++i)
          bytes[i] = char(below(2) == 0 ? 0xff : 0x7f);
    }
  }
  return bytes;
}

// Reads the message changed so often; anything but an Error ends the test.
template <class Read>
void check_mutated(const std::string& message, int times, Read&& read) {
  std::mt19937 random(24);
  int taken = 0, refused = 0;
  for (int i = 0; i < times; ++i) {
    const std::string bytes = mutated(message, random);
    BytesReader from(bytes);
    try {
      read(from);
      ++taken;
    } catch (const Error&) {
      ++refused;
    }
  }
  BOOST_TEST(refused > times / 10);
  BOOST_TEST(taken + refused == times);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(values, OwnWorker) {
  EngineEnd end = this->end();
  const auto shared = worker->make_shared_memory(32 << 10, nullptr);
  BytesWriter to;
  write_mixed_value(to, shared->buffer().id());
  BytesReader whole(to.bytes());
  BOOST_TEST(bool(read_value(whole, end)));
  check_mutated(to.bytes(), 20'000, [&](BytesReader& from) {
    const Value value = read_value(from, end);
    if (value) (void)describe(*value);
  });
  BOOST_TEST(worker->objects == 0);  // each was let go
}

BOOST_FIXTURE_TEST_CASE(new_nodes, OwnWorker) {
  NewNodes nodes;
  nodes.nodes.push_back({"id", "test.keep", "", {{"value", make_value(2.0)}}});
  nodes.nodes.push_back({"other", "test.keep", "shown", {{"value", NewLink{"id", 0}}}});
  nodes.outputs.emplace_back(0, NewLink{"other", 0});
  EngineEnd end = this->end();
  BytesWriter to;
  write_new_nodes(to, nodes, end);
  check_mutated(to.bytes(), 20'000, [&](BytesReader& from) {
    for (const NewNode& node : read_new_nodes(from, end).nodes)
      for (const auto& [name, given] : node.inputs)
        if (const auto* value = std::get_if<Value>(&given)) BOOST_REQUIRE(bool(*value));
  });
}

BOOST_FIXTURE_TEST_CASE(descriptions_and_failures, OwnWorker) {
  BytesReader from(worker->described());
  read_failure(from);
  (void)from.text(), (void)from.text(), (void)from.count();
  check_mutated(std::string(from.rest()).substr(0, 1500), 20'000, [](BytesReader& changed) {
    const DescribedNode node(changed);
    (void)NodeType(&node.desc, "plugin", nullptr);
  });
  Error error(Code::io, "a file is not there");
  error.at("frame one").at("frame two");
  heddle_status* const status = make_status(error);
  BytesWriter to;
  write_status(to, status);
  free_status(status);
  check_mutated(to.bytes(), 20'000,
                [](BytesReader& changed) { free_status(read_status(changed)); });
}

// Each thing that a worker is lent, by its number: it is gone when what was written is not sent,
// and when the worker has ended.
BOOST_FIXTURE_TEST_CASE(what_is_lent_comes_back, OwnWorker) {
  EngineEnd end = this->end();
  const auto lend = [&](std::uint64_t& memory, std::uint64_t& value) {
    BytesWriter tensor, list;
    end.write_tensor(tensor, numbers(5000));
    end.keep_tensors(true);
    end.write_tensor(list, numbers(1));
    end.keep_tensors(false);
    const auto number_at = [](const std::string& bytes, std::size_t from_end) {
      return BytesReader(std::string_view(bytes).substr(bytes.size() - from_end))
          .number<std::uint64_t>();
    };
    memory = number_at(tensor.bytes(), 16);
    value = number_at(list.bytes(), 8);
    BOOST_TEST(worker->lent_memory(memory) != nullptr);
    BOOST_TEST(bool(worker->lent_value(value)));
  };
  const auto check_gone = [&](std::uint64_t memory, std::uint64_t value) {
    BOOST_CHECK_THROW(worker->lent_memory(memory), Error);
    BOOST_CHECK_THROW(worker->lent_value(value), Error);
  };
  std::uint64_t memory = 0, value = 0;
  lend(memory, value);
  end.take_back();
  check_gone(memory, value);
  lend(memory, value);
  end.has_sent();
  end.take_back();  // nothing that was sent
  BOOST_TEST(worker->lent_memory(memory) != nullptr);
  worker->end(true);
  check_gone(memory, value);
}

// All of a worker's memory counts, also what is kept for its next call, and it has an end.
BOOST_FIXTURE_TEST_CASE(memory_is_counted, OwnWorker) {
  struct Counted {
    Counted(std::uint64_t& all, std::uint64_t bytes) : all(all), bytes(bytes) { all += bytes; }
    ~Counted() { all -= bytes; }
    std::uint64_t &all, bytes;
  };
  std::uint64_t counted = 0, most = std::uint64_t{1} << 30;
  const CountBytes count = [&](std::uint64_t bytes) {
    if (counted + bytes > most) throw Error(Code::out_of_memory, "no room");
    return std::make_shared<Counted>(counted, bytes);
  };
  const auto buffers = std::make_shared<SharedBuffers>(SharedMemory::Writers::owner);
  { const SharedStorage storage(buffers->take(70'000, count), buffers); }
  BOOST_TEST(counted >= 70'000u);  // it is kept
  const std::uint64_t kept = counted;
  { const SharedStorage storage(buffers->take(70'000, count), buffers); }
  BOOST_TEST(counted == kept);  // the same
  most = 2 << 20;
  { const SharedStorage storage(buffers->take(2 << 20, count), buffers); }  // the kept one goes
  BOOST_TEST(counted == most);
  BOOST_CHECK_THROW(buffers->take(4 << 20, count), Error);
  for (const int exponent : {49, 62, 63})
    BOOST_CHECK_THROW(buffers->take((std::uint64_t{1} << exponent) + 1, nullptr), Error);
  BOOST_CHECK_THROW(buffers->take(~std::uint64_t{0}, nullptr), Error);
  buffers->close();
  BOOST_TEST(counted == 0u);
  BOOST_CHECK_THROW(worker->make_shared_memory((std::uint64_t{1} << 30) + 1, nullptr), Error);
}

BOOST_AUTO_TEST_SUITE_END()
