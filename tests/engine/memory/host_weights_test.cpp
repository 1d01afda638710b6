// What host memory holds, for whom, and what is read from files for it.
#include "engine/memory/host_weights.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "tests/engine/memory/host_fixture.h"

using namespace heddle;
using Names = std::vector<std::string>;

namespace {

// How many pages of these bytes this process has mapped.
std::size_t mapped_pages(const std::byte* data, std::uint64_t bytes) {
  const std::uint64_t page = engine::page_bytes(),
                      first = reinterpret_cast<std::uintptr_t>(data) / page;
  std::vector<std::uint64_t> entries(bytes / page);
  const int file = ::open("/proc/self/pagemap", O_RDONLY);
  const ssize_t got = ::pread(file, entries.data(), entries.size() * 8, off_t(first * 8));
  ::close(file);
  BOOST_REQUIRE(got == ssize_t(entries.size() * 8));
  return std::size_t(std::ranges::count_if(entries, [](std::uint64_t e) { return e >> 63 == 1; }));
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(host_weights, test::HostFixture)

BOOST_AUTO_TEST_CASE(leases_hold_the_bytes_of_the_file_for_every_kind_of_device) {
  write(3, 40);
  make(1 << 20, 1 << 20);
  for (const auto& reader : {cpu(), fake()})
    for (const auto& [begin, end] : {std::pair{0, 16}, {0, 1}, {3, 11}, {15, 16}, {4, 4}})
      for (std::size_t i = 0; i < 3; ++i) {
        const engine::FilePart rows = part(i, begin, end);
        BOOST_TEST(rows.bytes == std::uint64_t(end - begin) * kPart / 16);
        BOOST_TEST(is_right(*get(rows, reader), rows));
      }
}

BOOST_AUTO_TEST_CASE(several_parts_are_leased_together) {
  write(4);
  make(4 * kPart, 4 * kPart);
  const std::vector<engine::FilePart> parts{part(2), part(0, 1, 3), part(3)};
  for (const auto& reader : {cpu(), fake()}) {
    const auto lease = host->get(parts, reader);
    for (std::size_t i = 0; i < parts.size(); ++i) BOOST_TEST(is_right(*lease, parts[i], i));
  }
}

BOOST_AUTO_TEST_CASE(within_the_limit_no_byte_is_read_twice) {
  write(8);
  make(8 * kPart, 8 * kPart);
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(use(i, fake()));
  const engine::HostReport report = host->report();
  BOOST_TEST(report.read_first == 8 * kPart);
  BOOST_TEST(report.read_again == 0u);
  BOOST_TEST(report.evicted == 0u);
  BOOST_TEST(report.held == 8 * kPart);
  BOOST_TEST(report.pinned == 8 * kPart);
  BOOST_TEST(control->pinned_bytes(0) == 8 * kPart);
}

BOOST_AUTO_TEST_CASE(a_second_device_reads_nothing_and_gets_the_same_copy) {
  write(2);
  make(8 * kPart, 8 * kPart);
  const auto first = get(part(0), fake(0)), second = get(part(0), fake(1)),
             third = get(part(0), cpu());
  BOOST_TEST(first->data(0) == second->data(0));
  BOOST_TEST(first->data(0) == third->data(0));
  BOOST_TEST(host->report().read_first == kPart);
  BOOST_TEST(host->report().held == kPart);
  BOOST_TEST(control->pinned_bytes(1) == 0u);
}

BOOST_AUTO_TEST_CASE(rows_of_a_tensor_that_is_held_are_held) {
  write(1);
  make(8 * kPart, 8 * kPart);
  const auto whole = get(part(0), fake());
  const auto rows = get(part(0, 4, 8), fake(1));
  BOOST_TEST(rows->data(0) == whole->data(0) + kPart / 4);
  BOOST_TEST(host->report().read_first == kPart);
}

BOOST_AUTO_TEST_CASE(
    what_was_mapped_is_copied_and_not_read_again_when_another_device_wants_it_pinned) {
  write(1);
  make(8 * kPart, 8 * kPart);
  const engine::Expectation again = host->expect(all(), engine::UseOrder::cyclic, cpu());
  BOOST_TEST(use(0, cpu()));
  BOOST_TEST(host->report().pinned == 0u);
  BOOST_TEST(use(0, fake()));
  BOOST_TEST(host->report().pinned == kPart);
  BOOST_TEST(host->report().held == kPart);  // one copy: the pages are given back
  BOOST_TEST(host->report().read_first == kPart);
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(pages_count_once_and_stay_as_long_as_one_of_their_neighbours_is_used) {
  write(2, 1000);
  make(1 << 20);
  const std::uint64_t page = engine::page_bytes();
  const std::byte* data = checkpoint->at("0").file->mapping->bytes().data() + 4096;
  auto first = get(part(0), cpu()), second = get(part(1), cpu());
  // 128 KiB that begin 1000 bytes behind a border: 33 pages, one of which both use.
  BOOST_TEST(host->report().held == 2 * kPart + page);
  BOOST_TEST(mapped_pages(data, 2 * kPart) == 2 * kPart / page);
  first.reset();
  BOOST_TEST(host->report().held == kPart + page);
  BOOST_TEST(mapped_pages(data, kPart) == 0u);
  BOOST_TEST(mapped_pages(data + kPart, kPart) == kPart / page);
  BOOST_TEST(is_right(*second, part(1)));
  second.reset();
  BOOST_TEST(host->report().held == 0u);
  BOOST_TEST(mapped_pages(data, 2 * kPart) == 0u);
}

BOOST_AUTO_TEST_CASE(of_what_nobody_expects_the_least_recently_used_goes) {
  write(4);
  make(3 * kPart, 3 * kPart);
  for (const std::size_t i : {0, 1, 2, 0}) BOOST_TEST(use(i, fake()));
  BOOST_TEST(use(3, fake()));  // 1 goes
  BOOST_TEST(host->report().evicted == kPart);
  for (const std::size_t i : {2, 0, 3}) BOOST_TEST(use(i, fake()));
  BOOST_TEST(host->report().read_again == 0u);
  BOOST_TEST(use(1, fake()));  // 2 goes
  BOOST_TEST(host->report().read_again == kPart);
  for (const std::size_t i : {0, 3, 1}) BOOST_TEST(use(i, fake()));
  BOOST_TEST(host->report().read_again == kPart);
  BOOST_TEST(host->report().peak == 3 * kPart);
}

BOOST_AUTO_TEST_CASE(what_is_in_use_never_goes) {
  write(3);
  make(2 * kPart, 2 * kPart);
  const auto held = get(part(0), fake());
  for (const std::size_t i : {1, 2, 1, 2}) BOOST_TEST(use(i, fake()));
  BOOST_TEST(is_right(*held, part(0)));
  BOOST_TEST(host->report().evicted == 3 * kPart);
}

BOOST_AUTO_TEST_CASE(in_a_cycle_what_is_wanted_last_goes) {
  write(5);
  for (const auto& reader : {fake(), cpu()}) {
    make(3 * kPart, 3 * kPart);
    reads.clear();
    watched_bytes = 0;
    engine::Expectation cycle = host->expect(all(), engine::UseOrder::cyclic, reader, note_reads());
    for (int round = 0; round < 3; ++round)
      for (std::size_t i = 0; i < 5; ++i) BOOST_TEST(use(i, reader));
    // 0 1 2 are read; for 3 goes 2, which was used just now, for 4 goes 3. Then 0 and 1 are here,
    // for 2 goes 1, for 3 goes 2, 4 is here; 0 is here, for 1 goes 0, for 2 goes 1, 3 and 4 are
    // here.
    BOOST_TEST(reads == (Names{"0", "1", "2", "3", "4", "2", "3", "1", "2"}),
               boost::test_tools::per_element());
    BOOST_TEST(host->report().read_again == 4 * kPart);
    BOOST_TEST(host->report().evicted == 6 * kPart);
    BOOST_TEST(watched_bytes == 9 * kPart);
    cycle.end();
  }
}

BOOST_AUTO_TEST_CASE(bytes_of_a_file_that_is_larger_than_the_limit_do_not_lie_in_its_mapping) {
  for (const std::size_t behind : {0, 500}) {
    write(6, behind);
    make(3 * (kPart + engine::page_bytes()));
    const std::span<const std::byte> mapping = checkpoint->at("0").file->mapping->bytes();
    for (std::size_t round = 1; round <= 2; ++round) {
      for (std::size_t i = 0; i < 6; ++i) {
        const engine::FilePart rows = part(i, 3, 16);
        const auto lease = get(rows, cpu());
        BOOST_TEST(is_right(*lease, rows));
        BOOST_TEST(
            (lease->data(0) < mapping.data() || lease->data(0) >= mapping.data() + mapping.size()));
        BOOST_TEST(host->report().held <= kPart + engine::page_bytes());
      }
      BOOST_TEST(host->report().held == 0u);
      BOOST_TEST(host->report().read_first == 6 * kPart / 16 * 13);
      BOOST_TEST(host->report().read_again == (round - 1) * 6 * kPart / 16 * 13);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_expected_any_more_goes_before_what_is) {
  write(4);
  make(2 * kPart, 2 * kPart);
  const std::vector<engine::FilePart> order{part(0), part(1), part(2), part(0)};
  engine::Expectation once = host->expect(order, engine::UseOrder::once, fake(), note_reads());
  for (const std::size_t i : {0, 1, 2, 0}) BOOST_TEST(use(i, fake()));
  BOOST_TEST(reads == (Names{"0", "1", "2"}), boost::test_tools::per_element());  // 1 went for 2
  once.end();
  BOOST_TEST(use(3, fake()));  // 2 goes: 0 was used later
  BOOST_TEST(use(0, fake()));
  BOOST_TEST(host->report().read_again == 0u);
}

BOOST_AUTO_TEST_CASE(a_lease_that_ends_with_an_event_makes_room_when_that_has_passed) {
  write(4);
  make(kPart, kPart);
  engine::Stream stream(*fake());
  const test::DeviceBuffer target(*fake(), kPart / 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto lease = get(part(i), fake());
    fake()->copy(stream, fake().get(), target.data(), nullptr, lease->data(0), kPart);
    engine::Event copied(*fake());
    stream.record(copied);
    lease->end_with(
        std::move(copied));  // the next one waits for that, though the lease is still there
    BOOST_TEST(host->report().held == kPart);
  }
  stream.synchronize();
  host->reclaim();
  BOOST_TEST(host->evict(1) == kPart);
  BOOST_TEST(control->pinned_bytes(0) == 0u);
}

BOOST_AUTO_TEST_CASE(letting_go_waits_for_streams_that_still_copy_from_it) {
  write(3);
  make(3 * kPart, 3 * kPart);
  engine::Stream stream(*fake());
  const test::DeviceBuffer target(*fake(), kPart / 4);
  std::vector<std::shared_ptr<engine::HostLease>> leases;
  for (std::size_t i = 0; i < 3; ++i) {
    leases.push_back(get(part(i), fake()));
    fake()->copy(stream, fake().get(), target.data(), nullptr, leases.back()->data(0), kPart);
    if (i == 0) continue;  // held by this thread: for that it would wait for ever
    engine::Event copied(*fake());
    stream.record(copied);
    leases.back()->end_with(std::move(copied));
  }
  BOOST_TEST(host->evict(3 * kPart) == 2 * kPart);
  BOOST_TEST(host->report().held == kPart);
  stream.synchronize();
}

BOOST_AUTO_TEST_CASE(one_that_waits_for_its_own_leases_is_told_the_figures) {
  write(3);
  make(2 * kPart, 2 * kPart);
  const auto held = get(part(0), fake());
  const std::vector<engine::FilePart> two{part(1), part(2)};
  const engine::Error error = test::error_of([&] { host->get(two, fake()); });
  BOOST_TEST((error.code() == engine::Code::out_of_memory));
  BOOST_TEST(error.what() ==
             "out of host memory: wanted 64.0 KiB for the weights '2'; the limit is 128.0 KiB, "
             "held are 128.0 KiB, of which 128.0 KiB "
             "are in use. Raise the host budget.");
  BOOST_TEST(use(1, fake()));  // what it had taken is given back
}

BOOST_AUTO_TEST_CASE(what_alone_is_too_large_is_refused_before_anything_goes) {
  write(3);
  make(2 * kPart, 2 * kPart);
  BOOST_TEST(use(0, fake()));
  const engine::Error error = test::error_of([&] { host->get(all(), cpu()); });
  BOOST_TEST((error.code() == engine::Code::out_of_memory));
  BOOST_TEST(std::string(error.what())
                 .find("wanted 192.0 KiB for the weights '0'; the limit is 128.0 KiB") !=
             std::string::npos);
  BOOST_TEST(host->report().evicted == 0u);
}

BOOST_AUTO_TEST_CASE(a_file_that_became_shorter_is_an_error_with_its_place) {
  write(4);
  make(1 << 20, 1 << 20);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 2 * kPart);
  BOOST_TEST(use(1, fake()));
  for (const auto& reader : {fake(), cpu()}) {
    const engine::Error error = test::error_of([&] { get(part(2), reader); });
    BOOST_TEST((error.code() == engine::Code::io));
    BOOST_TEST(std::string(error.what())
                       .find(path.string() + ": the bytes " + std::to_string(part(2).offset) +
                             " to ") == 0u,
               error.what());
    BOOST_TEST(std::string(error.what()).find("the file has ") != std::string::npos);
  }
  BOOST_TEST(host->report().held == kPart);
  BOOST_TEST(use(1, fake()));
}

BOOST_AUTO_TEST_CASE(letting_go_takes_what_was_used_longest_ago) {
  write(4);
  make(4 * kPart, 4 * kPart);
  for (const std::size_t i : {0, 1, 2, 3}) BOOST_TEST(use(i, fake()));
  const auto held = get(part(1), fake());
  BOOST_TEST(host->evict(kPart + 1) == 2 * kPart);  // 0 and 2
  BOOST_TEST(use(3, fake()));
  BOOST_TEST(host->report().read_again == 0u);
  BOOST_TEST(host->evict(~std::uint64_t{0}) == kPart);
  BOOST_TEST(host->report().held == kPart);
  BOOST_TEST(is_right(*held, part(1)));
}

BOOST_AUTO_TEST_SUITE_END()
