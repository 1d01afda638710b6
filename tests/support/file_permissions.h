// What file permissions forbid, forbidden to root as well.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace heddle::test {

// While it lives, the calling thread has to keep to the permissions of files, whoever it is. An
// ordinary user had to before.
class FilePermissions {
 public:
  FilePermissions() {
    if (::syscall(SYS_capget, &header_, before_.data()) != 0)
      throw std::runtime_error("capget failed");
    std::array now = before_;
    now[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER);
    set(now);
  }
  ~FilePermissions() { ::syscall(SYS_capset, &header_, before_.data()); }
  FilePermissions(const FilePermissions&) = delete;
  FilePermissions& operator=(const FilePermissions&) = delete;

 private:
  void set(const std::array<__user_cap_data_struct, 2>& data) {
    if (::syscall(SYS_capset, &header_, data.data()) != 0)
      throw std::runtime_error("capset failed");
  }

  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
};

}  // namespace heddle::test
