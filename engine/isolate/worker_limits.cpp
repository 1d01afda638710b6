#include "engine/isolate/worker_limits.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/folder.h"
#include "engine/base/text.h"

namespace heddle::engine {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

// Loads a word of what a filter looks at.
sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, std::uint32_t(offset));
}
sock_filter give_back(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// Goes on with the next one where the word is `value`, else leaves out so many.
sock_filter unless(std::uint32_t value, std::uint8_t left_out) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, left_out);
}

// No other program, and no socket but those between processes of this machine. io_uring would do
// both unseen, and the numbers of another architecture mean other calls.
void forbid_network_and_programs() {
  constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> filter{load(offsetof(seccomp_data, arch)), unless(kArchitecture, 1),
                                  BPF_STMT(BPF_JMP | BPF_JA, 1), give_back(kRefused),
                                  load(offsetof(seccomp_data, nr))};
#if defined(__x86_64__)
  // Numbers with this bit are those of the x32 interface.
  filter.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  filter.push_back(give_back(kRefused));
#endif
  for (const long call : {SYS_execve, SYS_execveat, SYS_ptrace, SYS_io_uring_setup}) {
    filter.push_back(unless(std::uint32_t(call), 1));
    filter.push_back(give_back(kRefused));
  }
  filter.push_back(unless(SYS_socket, 4));
  filter.push_back(load(offsetof(seccomp_data, args)));  // the family, in the low half
  filter.push_back(unless(AF_UNIX, 1));
  filter.push_back(give_back(SECCOMP_RET_ALLOW));
  filter.push_back(give_back(kRefused));
  filter.push_back(give_back(SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (kArchitecture == 0)
    throw Error(Code::unsupported, "the sandbox of workers knows x86-64 and ARM64 only");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    throw system_error("the sandbox of a worker", errno);
}

void limit_memory(std::uint64_t bytes) {
  std::uint64_t pages = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages))
    throw Error(Code::io,
                "/proc/self/statm does not say how much memory a worker has to begin "
                "with, so --isolate-memory cannot be kept");
  const std::uint64_t now = pages * std::uint64_t(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_max =
      std::min<rlim_t>(limit.rlim_max, bytes > RLIM_INFINITY - now ? RLIM_INFINITY : now + bytes);
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_AS, &limit) != 0)
    throw system_error(cat("the limit of ", bytes, " bytes of a worker's memory"), errno);
}

// What is closed of input, output and errors, so that no socket gets their numbers and lines of the
// log go nowhere else.
void fill_standard_descriptors() {
  for (int number = 0; number <= 2; ++number)
    if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDWR);
}

// What the program of the engine has open and lets others inherit. Older kernels, and some
// containers, do not know the call.
void close_others() {
  if (::syscall(SYS_close_range, unsigned(kControlDescriptor + 1), ~0u, 0u) == 0) return;
  std::vector<int> open;
  std::error_code error;
  for (const FolderEntry& entry : entries_of("/proc/self/fd", error))
    open.push_back(std::atoi(entry.path.filename().c_str()));
  for (const int number : open)
    if (number > kControlDescriptor) ::close(number);
}

}  // namespace

void limit_worker(const WorkerSettings& settings) {
  if (settings.sandbox) forbid_network_and_programs();
  if (settings.memory_bytes > 0) limit_memory(settings.memory_bytes);
}

void enter_worker(const WorkerSettings& settings) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It has gone meanwhile. In a container it may be process 1 itself.
  if (::getppid() != settings.engine) ::_exit(0);
  fill_standard_descriptors();
  close_others();
  ::signal(SIGPIPE, SIG_IGN);  // whoever reads the log may go: an error of write(), as in heddle
  // One byte, which is less than any dump. With 0 the kernel would still start the program that
  // core_pattern may name (core(5)).
  const rlimit none{1, 1};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace heddle::engine
