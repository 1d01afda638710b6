// What control groups leave a process, read from trees of files as kernels show them.
#include "heddle/control_groups.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/support/temporary_folder.h"

using namespace heddle;

namespace {

// A machine of 64 GiB, 60 of them available.
struct GroupsFixture {
  static constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  static constexpr std::uint64_t kNone = 9223372036854771712u;  // of version 1: pages below 2^63
  static constexpr const char* kUnified =
      "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  test::TemporaryFolder folder;
  GroupsFixture() {
    write("proc/meminfo",
          "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   62914560 kB\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void write_number(const std::string& path, std::uint64_t number) const {
    write(path, std::to_string(number) + "\n");
  }
  // A group of version 2, or of version 1's memory controller.
  void group(const std::string& path, const std::string& limit, std::uint64_t used,
             std::uint64_t files) const {
    write(path + "/memory.max", limit + "\n");
    write_number(path + "/memory.current", used);
    write(path + "/memory.stat", "anon 5\ninactive_file " + std::to_string(files) + "\n");
  }
  void old_group(const std::string& path, std::uint64_t limit, std::uint64_t used,
                 std::uint64_t files) const {
    write_number(path + "/memory.limit_in_bytes", limit);
    write_number(path + "/memory.usage_in_bytes", used);
    // What the group has itself stands there beside what it has with all groups inside.
    write(path + "/memory.stat",
          "inactive_file 7\ntotal_inactive_file " + std::to_string(files) + "\n");
  }
  void check(std::uint64_t total, std::uint64_t free) const {
    const machine::Memory memory = machine::memory(folder.path());
    BOOST_TEST(memory.total == total);
    BOOST_TEST(memory.free == free);
  }
  double processors() const { return machine::paid_processors(folder.path()); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(control_groups, GroupsFixture)

BOOST_AUTO_TEST_CASE(without_groups_all_of_the_machine_may_be_used) {
  check(64 * kGiB, 60 * kGiB);
  BOOST_TEST(processors() == std::numeric_limits<double>::infinity());
}

BOOST_AUTO_TEST_CASE(the_groups_around_ours_count_too) {
  write("proc/self/mountinfo", kUnified);
  write("proc/self/cgroup", "0::/user.slice/job/step\n");
  group("sys/fs/cgroup/user.slice/job/step", "max", 3 * kGiB, 0);
  group("sys/fs/cgroup/user.slice/job", std::to_string(16 * kGiB), 4 * kGiB, 1 * kGiB);
  group("sys/fs/cgroup/user.slice", std::to_string(32 * kGiB), 25 * kGiB, 1 * kGiB);
  // The least limit is the job's, the least that is free is the slice's.
  check(16 * kGiB, 8 * kGiB);
  write("sys/fs/cgroup/user.slice/job/step/memory.high", std::to_string(10 * kGiB));
  check(10 * kGiB, 7 * kGiB);
  write("sys/fs/cgroup/user.slice/job/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/user.slice/job/step/cpu.max", "max 100000\n");
  BOOST_TEST(processors() == 2.5);
}

BOOST_AUTO_TEST_CASE(version_1_has_a_hierarchy_for_each_controller) {
  write("proc/self/mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/batch/job\n3:cpuset:/other\n1:cpu,cpuacct:/batch\n");
  const std::string memory = "sys/fs/cgroup/memory";
  old_group(memory, kNone, 40 * kGiB, 0);
  old_group(memory + "/batch", 8 * kGiB, 5 * kGiB, 1 * kGiB);
  old_group(memory + "/batch/job", kNone, 2 * kGiB, 0);
  check(8 * kGiB, 4 * kGiB);
  old_group(memory + "/batch/job", 6 * kGiB, 2 * kGiB, 1 * kGiB);
  check(6 * kGiB, 4 * kGiB);
  write(memory + "/batch/memory.use_hierarchy", "0\n");  // its limit is for its own processes only
  check(6 * kGiB, 5 * kGiB);
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/batch/cpu.cfs_period_us", "100000\n");
  BOOST_TEST(processors() == 0.5);
}

BOOST_AUTO_TEST_CASE(both_versions_at_once) {
  write("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "4:memory:/job\n0::/elsewhere\n");
  old_group("sys/fs/cgroup/memory/job", 4 * kGiB, 1 * kGiB, 0);
  check(4 * kGiB, 3 * kGiB);
  group("sys/fs/cgroup/unified/elsewhere", std::to_string(2 * kGiB), kGiB / 2, 0);
  check(2 * kGiB, 3 * kGiB / 2);
}

BOOST_AUTO_TEST_CASE(a_container_has_its_own_group_mounted) {
  // Named from outside, and mounted as the root: by a container without a namespace of its own.
  write("proc/self/mountinfo",
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "4:memory:/docker/abc/inner\n");
  old_group("sys/fs/cgroup/memory", 4 * kGiB, 1 * kGiB, 0);
  check(4 * kGiB, 3 * kGiB);
  old_group("sys/fs/cgroup/memory/inner", 3 * kGiB, 1 * kGiB, 0);
  check(3 * kGiB, 2 * kGiB);
  // With a namespace both are the root; a process that was put in from outside sees a way up.
  for (const char* own : {"0::/\n", "0::/../other\n", "0::/docker/of/the/host\n"}) {
    write("proc/self/mountinfo", kUnified);
    write("proc/self/cgroup", own);
    group("sys/fs/cgroup", std::to_string(5 * kGiB), 1 * kGiB, 0);
    check(5 * kGiB, 4 * kGiB);
  }
}

BOOST_AUTO_TEST_CASE(of_several_mounts_the_one_that_shows_most_counts) {
  write("proc/self/mountinfo",
        "35 31 0:32 /a/b /mnt/b rw - cgroup2 none rw\n"
        "36 31 0:32 / /mnt/all\\040of\\040it rw - cgroup2 none rw\n"
        "37 31 0:32 /a/bc /mnt/c rw - cgroup2 none rw\n");
  write("proc/self/cgroup", "0::/a/b/c\n");
  group("mnt/all of it/a", std::to_string(7 * kGiB), 0, 0);
  group("mnt/c", std::to_string(1 * kGiB), 0, 0);
  check(7 * kGiB, 7 * kGiB);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_limits_nothing) {
  write("proc/self/cgroup", "nonsense\n4\n:\n0::/job\n5:memory:/job\n");
  write("proc/self/mountinfo", "nonsense - \n - cgroup2\n35 31 0:32\n");
  check(64 * kGiB, 60 * kGiB);
  // Where they are everywhere, as no mount is told.
  group("sys/fs/cgroup/job", std::to_string(2 * kGiB), 0, 0);
  check(2 * kGiB, 2 * kGiB);
  write("sys/fs/cgroup/job/memory.max", "-\n");
  check(64 * kGiB, 60 * kGiB);
  old_group("sys/fs/cgroup/memory/job", 3 * kGiB, 4 * kGiB,
            0);  // more than it may: files of others
  check(3 * kGiB, 0);
}

BOOST_AUTO_TEST_SUITE_END()
