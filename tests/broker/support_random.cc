#include "broker/support_random.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

#include "base/format.h"
#include "broker/support_inside.h"

namespace belljar::test {
namespace {

struct Player {
  std::string dir;
  std::mt19937 random;
  std::vector<int> files = {-1, -1, -1, -1, -1, -1};
  std::vector<int> dirs;
  std::string log;

  unsigned below(unsigned limit) { return static_cast<unsigned>(random() % limit); }
  template <class T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<unsigned>(list.size())));
  }

  std::string plain_name() { return one_of<const char*>({"a", "b", "c", "d", "e", "dir", "dir2", "link", "fifo", "new", "x"}); }
  std::string directory() {
    return one_of<const char*>({"dir",  "dir/sub", "dir2", "sticky",  "setgid", "acl", "ro", "closed", "link",       "up",
                                "loop", "missing", "a",    "foreign", "self",   ".",   "..", "dir/..", "dir//sub/.", "fds"});
  }
  std::string path() {
    switch (below(16)) {
      case 0:
        return "";
      case 1:
        return plain_name() + "/";
      case 2:
        return directory();
      case 3:
        return dir + "/" + plain_name();
      case 4:
        return dir + "/" + directory() + "/" + plain_name();
      case 5:
        return "/proc/self/cwd/" + plain_name();
      case 6:
        return format("/proc/self/fd/{}/{}", dirs.empty() ? 99 : dirs[below(static_cast<unsigned>(dirs.size()))], plain_name());
      case 7:
        return std::string(one_of({3U, 255U, 256U, 5000U}), 'n');
      case 8:
        return one_of<const char*>({"/", "//", ".", "./", "..", "dir/.", "dir/..", "/proc/thread-self/cwd/a", "/dev/null",
                                    "/dev/tty", "/nowhere/x", "/proc/self/oom_score_adj", "/proc/self/comm", "/proc/1/comm",
                                    "/proc/self", "/proc/mounts", "/dev/fd/77"});
      case 9:
        return format("/proc/self/fd/{}", files[below(6)]);
      case 10:
      case 11:
        return directory() + "/" + plain_name();
      default:
        return plain_name();
    }
  }
  // For calls that make or remove names: those in /proc/self/fd answer EPERM to their owner and EACCES to others, the broker.
  std::string name_path() {
    std::string where = path();
    if (where.rfind("/proc/self/fd/", 0) == 0 && std::ranges::count(where, '/') == 4) where = plain_name();
    return where == "fds" || where.rfind("fds/", 0) == 0 ? plain_name() : where;
  }
  int dirfd() {
    if (below(3) != 0 || dirs.empty()) return below(40) == 0 ? one_of({-1, 99, files[0]}) : AT_FDCWD;
    return dirs[below(static_cast<unsigned>(dirs.size()))];
  }
  mode_t mode() { return one_of<mode_t>({0644, 0600, 0755, 0777, 0, 0444, 0666}); }

  void note(const std::string& what, const std::string& answer) { log += what + " -> " + answer + "\n"; }
  // The twin has another name of the same length.
  std::string shown(std::string text) const {
    for (std::size_t at = 0; (at = text.find(dir, at)) != std::string::npos;) text.replace(at, dir.size(), "DIR");
    return text;
  }

  void open_something();
  void make_something();
  void remove_something();
  void move_something();
  void link_something();
  void change_something();
  void other();
  void step();
  std::string tree() const;
};

void Player::open_something() {
  const unsigned choice = below(8);
  int flags = one_of({O_RDONLY, O_WRONLY, O_RDWR, O_RDWR});
  if (choice < 5) flags |= O_CREAT;
  for (const int flag : {O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_CLOEXEC, O_DIRECTORY, O_NOATIME, O_SYNC}) {
    if (below(6) == 0) flags |= flag;
  }
  if (choice == 7) flags = O_TMPFILE | one_of({O_WRONLY, O_RDWR, O_RDONLY}) | (below(3) == 0 ? O_EXCL : 0);
  if (choice == 6 && below(2) == 0) flags |= O_PATH;
  if ((flags & O_ACCMODE) != O_RDWR) flags |= O_NONBLOCK;  // a FIFO would wait
  const std::string where = (flags & (O_TMPFILE | O_CREAT)) != 0 ? name_path() : path();
  const int at = dirfd();
  const mode_t bits = mode();
  struct stat before{};
  const bool waits = stat(where.c_str(), &before) == 0 && S_ISFIFO(before.st_mode);  // creat has no O_NONBLOCK
  const bool creat_it = below(8) == 0 && !waits && (flags & O_PATH) == 0;
  const int fd = creat_it ? static_cast<int>(syscall(SYS_creat, where.c_str(), bits)) : openat(at, where.c_str(), flags, bits);
  std::string answer = named(fd);
  if (fd >= 0) {
    struct stat now{};
    fstat(fd, &now);
    answer += format(" flags {:o} fd {:o} mode {:o} links {}", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD), now.st_mode, now.st_nlink);
    if (S_ISREG(now.st_mode) && where.find("/proc") == std::string::npos) {
      answer += " write " + named(write(fd, "0123456789", 1 + below(10)));
    }
    const unsigned slot = below(6);
    if (files[slot] >= 0) close(files[slot]);
    files[slot] = fd;
    answer += format(" number {}", fd);
  }
  note(format("open {} {} {:o} {:o}", at, shown(where).substr(0, 80), flags, bits), answer);
}

void Player::make_something() {
  const std::string where = name_path();
  const int at = dirfd();
  const mode_t bits = mode();
  switch (below(4)) {
    case 0:
      return note("mkdir " + shown(where).substr(0, 80), named(mkdirat(at, where.c_str(), bits)));
    case 1: {
      const mode_t type = one_of<mode_t>({S_IFREG, S_IFIFO, S_IFSOCK, 0, S_IFDIR, S_IFLNK, S_IFIFO});
      return note(format("mknod {:o} {}", type, shown(where).substr(0, 80)), named(mknodat(at, where.c_str(), type | bits, 0)));
    }
    case 2:
      return note("mkdir- " + shown(where).substr(0, 80), named(static_cast<long>(syscall(SYS_mkdir, where.c_str(), bits))));
    default: {
      const std::string text =
          one_of<const char*>({"a", "dir", "../a", "missing", "link", "/proc/self/fd", "dir/sub", "", "./x", "/dev/null"});
      return note(format("symlink {} {}", text, shown(where).substr(0, 80)), named(symlinkat(text.c_str(), at, where.c_str())));
    }
  }
}

void Player::remove_something() {
  const std::string where = name_path();
  const int at = dirfd();
  if (where.find("/dev/") == 0 || where.find("/proc/self/fd/") == 0) return;
  const int flags = one_of({0, 0, AT_REMOVEDIR, AT_REMOVEDIR, 4});
  note(format("unlink {} {}", flags, shown(where).substr(0, 80)), named(unlinkat(at, where.c_str(), flags)));
}

void Player::move_something() {
  const std::string from = name_path(), to = name_path();
  const int at = dirfd(), there = dirfd();
  const unsigned flags = one_of<unsigned>({0, 0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, 64});
  const long status = syscall(SYS_renameat2, at, from.c_str(), there, to.c_str(), flags);
  note(format("rename {} {} {} {} {}", at, shown(from).substr(0, 80), there, shown(to).substr(0, 80), flags), named(status));
}

void Player::link_something() {
  const std::string from = path(), to = name_path();
  const int at = below(5) == 0 ? files[below(6)] : dirfd();
  const int flags = one_of({0, 0, AT_SYMLINK_FOLLOW, 0x8000});
  const int status = linkat(at, from.c_str(), AT_FDCWD, to.c_str(), flags);
  note(format("link {} {} {} {:x}", at, shown(from).substr(0, 80), shown(to).substr(0, 80), flags), named(status));
}

void Player::change_something() {
  const std::string where = path();
  const int at = dirfd();
  if (where.find("/dev/") == 0 || where == "/" || where == "//" || where == "..") return;
  switch (below(3)) {
    case 0: {
      const long length = one_of<long>({0, 5, 100, -1});
      return note(format("truncate {} {}", shown(where).substr(0, 80), length), named(truncate(where.c_str(), length)));
    }
    case 1: {
      if (where.find("..") != std::string::npos) return;
      const mode_t bits = one_of<mode_t>({0644, 0755, 0700, 0777});
      return note(format("chmod {} {:o}", shown(where).substr(0, 80), bits),
                  named(static_cast<long>(syscall(SYS_fchmodat, at, where.c_str(), bits))));
    }
    default: {
      if (where.find("..") != std::string::npos) return;
      const int flags = one_of({0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, 1});
      return note(format("fchmodat2 {} {} {:x}", at, shown(where).substr(0, 80), flags),
                  named(static_cast<long>(syscall(452, at, where.c_str(), 0755, flags))));
    }
  }
}

void Player::other() {
  switch (below(5)) {
    case 0:
      umask(one_of<mode_t>({022, 077, 0, 027}));
      return;
    case 1:
      if (chdir((dir + one_of<const char*>({"", "/dir", "/sticky"})).c_str()) != 0) (void)!chdir(dir.c_str());
      return;
    case 2: {
      const int fd = open(dir.c_str(), one_of({O_RDONLY, O_PATH}) | O_DIRECTORY | O_CLOEXEC);
      if (dirs.size() < 4) dirs.push_back(fd);
      else close(fd);
      return;
    }
    case 3:
      return note("bad address", named(static_cast<long>(syscall(SYS_mkdir, 8, 0755))) + " " +
                                     named(static_cast<long>(syscall(SYS_openat, AT_FDCWD, -4096L, O_CREAT | O_RDWR, 0644))) + " " +
                                     named(static_cast<long>(syscall(SYS_rename, "a", 16))));
    default: {
      // The way git and others make a file that appears whole.
      const int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
      if (fd < 0) return note("tmpfile", named(fd));
      const std::string from = format("/proc/self/fd/{}", fd);
      const std::string to = plain_name();
      note("tmpfile to " + to, named(linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW)));
      close(fd);
      return;
    }
  }
}

void Player::step() {
  const unsigned choice = below(20);
  if (choice < 7) open_something();
  else if (choice < 10) make_something();
  else if (choice < 12) remove_something();
  else if (choice < 14) move_something();
  else if (choice < 16) link_something();
  else if (choice < 18) change_something();
  else other();
}

std::string Player::tree() const {
  std::vector<std::string> lines;
  std::error_code ignored;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator at(dir, options, ignored), end; at != end; at.increment(ignored)) {
    struct stat now{};
    const std::string name = at->path().string();
    if (lstat(name.c_str(), &now) != 0) continue;
    std::string line = format("{} {:o} {} {} {}", name.substr(dir.size()), now.st_mode, now.st_nlink, now.st_uid, now.st_gid);
    if (S_ISREG(now.st_mode)) line += format(" {}", now.st_size);
    if (S_ISLNK(now.st_mode)) line += " " + std::filesystem::read_symlink(at->path(), ignored).string();
    lines.push_back(line);
  }
  std::ranges::sort(lines);
  std::string text;
  for (const std::string& line : lines) text += shown(line) + "\n";
  return text;
}

}  // namespace

void make_playground(const std::string& dir, unsigned uid, unsigned gid) {
  const auto make_dir = [&](const char* name, mode_t bits) {
    const std::string whole = dir + "/" + name;
    if (mkdir(whole.c_str(), 0755) != 0 || chown(whole.c_str(), uid, gid) != 0 || chmod(whole.c_str(), bits) != 0) perror(name);
  };
  make_dir("dir", 0755);
  make_dir("dir/sub", 0755);
  make_dir("dir2", 0755);
  make_dir("sticky", 01777);
  make_dir("setgid", 02775);
  make_dir("acl", 0755);
  make_dir("ro", 0555);
  make_dir("closed", 0600);
  make_dir("foreign", 0755);
  if (chown((dir + "/foreign").c_str(), 0, 0) != 0 && getuid() == 0) perror("chown");
  const int file = open((dir + "/foreign/a").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  close(file);
  if (mkfifo((dir + "/fifo").c_str(), 0644) != 0 || chown((dir + "/fifo").c_str(), uid, gid) != 0) perror("fifo");
  const auto link_to = [&](const char* text, const char* name) {
    if (symlink(text, (dir + "/" + name).c_str()) != 0) perror(name);
  };
  link_to("dir", "link");
  link_to("..", "dir/up");
  link_to("loop", "loop");
  link_to("/proc/self", "self");
  link_to("/proc/self/fd", "fds");
  link_to("foreign", "sticky/link");
  (void)!lchown((dir + "/sticky/link").c_str(), 0, 0);
  // user::rwx user:1:rwx group::r-x mask::rwx other::--- as system.posix_acl_default, little-endian (linux/posix_acl_xattr.h).
  const unsigned char acl[] = {2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,   7,  0, 1, 0, 0,   0,   4,   0,
                               5, 0, 255, 255, 255, 255, 16, 0, 7,   0,   255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255};
  if (setxattr((dir + "/acl").c_str(), "system.posix_acl_default", acl, sizeof acl, 0) != 0 && errno != EOPNOTSUPP) perror("acl");
}

std::string play(const std::string& dir, unsigned seed, int operations) {
  Player player{.dir = dir, .random = std::mt19937(seed), .files = {-1, -1, -1, -1, -1, -1}, .dirs = {}, .log = {}};
  if (chdir(dir.c_str()) != 0) return "no directory";
  umask(022);
  for (int i = 0; i < operations; ++i) player.step();
  return player.log + "TREE\n" + player.tree();
}

}  // namespace belljar::test
