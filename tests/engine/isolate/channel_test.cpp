#include "engine/isolate/channel.h"

#include <fcntl.h>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "engine/base/error.h"
#include "engine/isolate/shared_memory.h"

using namespace heddle::engine;

BOOST_AUTO_TEST_SUITE(isolated_channel)

namespace {

struct Ends {
  Ends() : Ends(socket_pair()) {}
  explicit Ends(std::pair<int, int> sockets)
      : a(sockets.first), b(sockets.second, Channel::Descriptors::taken) {}
  Channel a, b;
};

}  // namespace

BOOST_AUTO_TEST_CASE(messages_come_whole_and_in_order) {
  Ends ends;
  std::jthread sender([&] {
    for (const std::size_t size : {0, 1, 65535, 65536, 65537, 5'000'000, 3})
      ends.a.send(std::uint32_t(size % 7), std::string(size, char('a' + size % 26)));
  });
  for (const std::size_t size : {0, 1, 65535, 65536, 65537, 5'000'000, 3}) {
    const Message message = ends.b.receive();
    BOOST_TEST(message.kind == size % 7);
    BOOST_TEST((message.body == std::string(size, char('a' + size % 26))));
    BOOST_TEST(message.descriptor == -1);
  }
}

BOOST_AUTO_TEST_CASE(memory_comes_with_its_message) {
  Ends ends;
  SharedMemory ours(10'000, SharedMemory::Writers::others);
  ours.data()[9'999] = std::byte(7);
  ends.a.send(1, "before");
  ends.a.send(2, "memory", ours.descriptor());
  ends.a.send(3, "behind");
  BOOST_TEST(ends.b.receive().descriptor == -1);
  const Message message = ends.b.receive();
  BOOST_TEST_REQUIRE(message.descriptor >= 0);
  BOOST_TEST(ends.b.receive().descriptor == -1);
  const SharedMemory theirs(message.descriptor, 10'000, true);
  BOOST_TEST((theirs.data()[9'999] == std::byte(7)));
  theirs.data()[0] = std::byte(8);
  BOOST_TEST((ours.data()[0] == std::byte(8)));
}

BOOST_AUTO_TEST_CASE(nobody_writes_by_a_descriptor_to_read) {
  const SharedMemory memory(4096, SharedMemory::Writers::owner);
  const FileDescriptor descriptor(memory.read_only_descriptor());
  BOOST_CHECK_THROW(SharedMemory(::dup(descriptor.number()), 4096, true), Error);
  const std::string again = "/proc/self/fd/" + std::to_string(descriptor.number());
  BOOST_CHECK_THROW(SharedMemory(::open(again.c_str(), O_RDWR), 4096, true), Error);
  BOOST_TEST((::ftruncate(memory.descriptor(), 0) != 0));  // the size is sealed
}

BOOST_AUTO_TEST_CASE(an_end_that_goes_is_noticed) {
  auto ends = std::make_unique<Ends>();
  const auto [waiting, other] = socket_pair();
  Channel left(waiting);
  const FileDescriptor open(other);
  int ticks = 0;
  left.while_waiting([&] {
    if (++ticks == 3) throw ChannelClosed();
  });
  BOOST_CHECK_THROW(left.receive(), ChannelClosed);
  ends->a.shut_down();
  BOOST_CHECK_THROW(ends->b.receive(), ChannelClosed);
  BOOST_CHECK_THROW(for (int i = 0; i < 3; ++i) ends->b.send(1, "to nobody"), ChannelClosed);
}

BOOST_AUTO_TEST_SUITE_END()
