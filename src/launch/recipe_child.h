// What runs between clone3 and execve for a recipe: noexcept, allocates nothing, formats nothing, ends in execve or _exit.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "launch/recipe.h"

namespace belljar::launch {

// What the child tells when it cannot go on; one write(2), at most PIPE_BUF.
struct RecipeReport {
  std::int32_t at = 0, op = -1, errnum = 0, detail_size = 0;
  char detail[3072];
};

// What pid 1 tells when the command has ended.
struct RecipeStatus {
  std::int32_t status = 0;  // as waitpid(2) tells
  std::int32_t alone = 0;   // 1: nothing else lives in its pid namespace
};

// The child's whole knowledge; made by the parent before clone3. All descriptors are close-on-exec.
struct RecipeContext {
  const Recipe* recipe = nullptr;
  int go = -1;                       // one byte when the parent has done its part; -1: nothing to wait for
  int report = -1;                   // a RecipeReport, or the end of file at execve
  int status = -1;                   // a RecipeStatus of the command, by pid 1; -1: we are the command
  int stubs = -1;                    // to the keeper of stubs, recipe_stubs.h; while the tree is built
  int fronts[4] = {-1, -1, -1, -1};  // the parent's ends of those four, which tell of its end once they are its alone
  bool own_proc = false;
  bool own_users = false;         // the user namespace is made by clone3
  bool nested_users = false;      // the command gets one below ours, which owns none of the other namespaces
  bool late_network = false;      // the network namespace is made beside the tree
  bool ends_with_mounts = false;  // no process is the last one of the sandbox
  char* const* argv = nullptr;
  char** envp = nullptr;
  int* captured = nullptr;  // for each operation, what is to be attached; -1: nothing
  int pwd = 0;              // index of PWD in `envp`
  char *pwd_chdir = nullptr, *pwd_cwd = nullptr, *pwd_home = nullptr, *pwd_root = nullptr;  // "PWD=..."
  // while it runs
  int proc = -1;               // the host's /proc
  int cwd = -1;                // the caller's directory
  int root = -1;               // the topmost mount of the new root
  int base = -1;               // a tmpfs that the command never sees, for what is copied
  dev_t own_devices[32] = {};  // file systems that were made for this recipe: what is missing there is no stub
  int own_device_count = 0;
  bool stubs_watched = false;
  dev_t held_device = 0;  // of the stub that was held last
  ino_t held_inode = 0;
  RecipeFailure::FailedStep at{};
  int op = -1;
  char detail[3072];
  int detail_size = 0;
};

inline int failed(RecipeContext& context, RecipeFailure::FailedStep at, int status) noexcept {
  context.at = at;
  return status;
}

// 0 or -errno; then context.at, op and detail say where.
int build_recipe_tree(RecipeContext& context) noexcept;  // recipe_tree.cc
[[noreturn]] void enter_recipe(RecipeContext& context) noexcept;

// "/proc/self/fd/N", for calls that want a path.
class DescriptorPath {
 public:
  explicit DescriptorPath(int fd) noexcept;
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[32];
};

}  // namespace belljar::launch
