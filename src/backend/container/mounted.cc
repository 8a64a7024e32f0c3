// Did the engine mount what it was asked to?
//
// The engine is given paths, and resolves them as root when it mounts. Whoever writes to a shared directory
// in between may put a link there. Descriptors cannot be given to an engine, so it is checked afterwards,
// from pid 1, before any command runs.
//
// Two mount tables of one kernel are compared: a bind shows the right thing if, inside, the mount at the
// target has the device and the path in its file system (`root` of mountinfo) that the source has here.
// Targets are followed first, since a link of the image (/var/run) may lead a bind elsewhere
// (MountedTargets).
//
// The rest answers what nobody asked for: mounts of the engine's own, tmpfs that are larger than the policy
// says, and other names of the engine's socket (bind mounts, hard links).
#include "backend/container/mounted.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "backend/container/spec.h"
#include "backend/paths/host.h"
#include "base/format.h"
#include "belljar/error.h"
#include "belljar/result.h"
#include "belljar/units.h"
#include "kernel/small_file.h"
#include "policy/paths.h"

namespace belljar::backend::container {
namespace {

using kernel::next_field;
using kernel::unescape_octal;

// Of the options "rw,size=1024k,mode=700".
std::optional<std::uint64_t> size_of(std::string_view options) {
  while (!options.empty()) {
    std::string_view option = next_field(options, ',');
    if (!option.starts_with("size=")) continue;
    option.remove_prefix(5);
    std::uint64_t size = 0;
    const auto end = std::from_chars(option.data(), option.data() + option.size(), size);
    if (end.ec != std::errc()) return {};
    const std::string_view unit(end.ptr, static_cast<std::size_t>(option.data() + option.size() - end.ptr));
    const unsigned shift = unit == "k" ? 10 : unit == "m" ? 20 : unit == "g" ? 30 : 0;
    return size << shift;
  }
  return {};
}

// "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue"
Mount parse_line(std::string_view line) {
  Mount mount;
  mount.id = next_field(line, ' ');
  mount.parent = next_field(line, ' ');
  mount.device = next_field(line, ' ');
  mount.root = unescape_octal(next_field(line, ' '));
  mount.point = unescape_octal(next_field(line, ' '));
  const std::string_view options = next_field(line, ' ');
  mount.readonly = options == "ro" || options.starts_with("ro,");
  while (!line.empty() && next_field(line, ' ') != "-") {
  }
  mount.type = next_field(line, ' ');
  next_field(line, ' ');  // what was mounted
  if (mount.type == "tmpfs") mount.size = size_of(line);
  return mount;
}

// What `rest` of a path is below `folder`, with its slash; "" for the folder itself.
std::string_view below(std::string_view path, std::string_view folder) { return path.substr(folder == "/" ? 0 : folder.size()); }

std::string join(const std::string& folder, std::string_view rest) {
  if (rest.empty() || rest == "/") return folder;
  return (folder == "/" ? std::string() : folder) + std::string(rest);
}

// The mounts that a path without links leads over, the one it lies on last: as the kernel walks it, a mount stands on another, and
// the shallower one hides what was mounted below it before.
std::vector<const Mount*> walk(const std::vector<Mount>& mounts, const std::string& path) {
  std::vector<const Mount*> way;
  const auto is_lowest = [&](const Mount& mount) {
    // The root of an initramfs is its own parent.
    const bool has_parent = mount.parent != mount.id && std::ranges::find(mounts, mount.parent, &Mount::id) != mounts.end();
    return is_under(path, mount.point) && !has_parent;
  };
  const auto lowest = std::ranges::find_if(mounts, is_lowest);
  const Mount* at = lowest == mounts.end() ? nullptr : &*lowest;
  while (at != nullptr && way.size() < mounts.size()) {
    way.push_back(at);
    const Mount* next = nullptr;
    for (const Mount& mount : mounts) {
      if (mount.parent != at->id || &mount == at || !is_under(path, mount.point)) continue;
      if (next == nullptr || mount.point.size() < next->point.size()) next = &mount;
    }
    at = next;
  }
  return way;
}

const Mount* mount_at(const std::vector<Mount>& mounts, const std::string& path) {
  const std::vector<const Mount*> way = walk(mounts, path);
  return way.empty() ? nullptr : way.back();
}

// Of a file that was replaced on this machine after it was mounted the kernel says `//deleted` behind its path.
bool shows(const Mount& mount, const Mount& source, const Bind& bind) {
  constexpr std::string_view kDeleted = "//deleted";
  std::string_view shown = mount.root;
  if (shown.ends_with(kDeleted)) shown.remove_suffix(kDeleted.size());
  return mount.device == source.device && shown == join(source.root, below(bind.source, source.point)) &&
         (mount.readonly || !bind.readonly);
}

// Where targets really are: a link of the image may lead elsewhere (/var/run), and what is mounted below comes along.
class MountedTargets {
 public:
  // As far as an earlier bind says; empty: nothing is known of it.
  std::string of(const std::string& target) const {
    const std::pair<std::string, std::string>* nearest = nullptr;
    for (const auto& place : places_) {
      if (is_under(target, place.first) && (nearest == nullptr || place.first.size() > nearest->first.size())) nearest = &place;
    }
    return nearest == nullptr ? std::string() : join(nearest->second, below(target, nearest->first));
  }
  void add(const std::string& target, const std::string& actual) { places_.emplace_back(target, actual); }
  std::vector<std::string> all() const {
    std::vector<std::string> actual;
    for (const auto& place : places_) actual.push_back(place.second);
    return actual;
  }

 private:
  std::vector<std::pair<std::string, std::string>> places_;
};

Error other(const Bind& bind, std::string reason) {
  return Error(Code::kAborted, format("the container shows something else than {}", belljar::quoted(bind.source)))
      .reason(std::move(reason))
      .next("see what writes there meanwhile, and whether the engine knows what was mounted since it began; then start again");
}

bool is_of_every_container(const std::string& point) {
  // Of passwd and group Podman shows copies with a line for the user.
  constexpr std::array<std::string_view, 7> kFiles = {"/",           "/etc/resolv.conf", "/etc/hostname",     "/etc/hosts",
                                                      "/etc/passwd", "/etc/group",       "/run/.containerenv"};
  constexpr std::array<std::string_view, 4> kWhole = {"/proc", "/sys", "/dev", "/.belljar"};
  return std::ranges::find(kFiles, point) != kFiles.end() ||
         std::ranges::any_of(kWhole, [&](std::string_view whole) { return is_under(point, whole); });
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  while (!mountinfo.empty()) {
    Mount mount = parse_line(next_field(mountinfo, '\n'));
    if (!mount.type.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

InsideStatus parse_status(std::string_view text) {
  InsideStatus status;
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    const std::string_view key = next_field(line, ':');
    while (line.starts_with('\t') || line.starts_with(' ')) line.remove_prefix(1);
    const bool capability = key == "CapInh" || key == "CapPrm" || key == "CapEff" || key == "CapBnd" || key == "CapAmb";
    std::uint64_t number = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), number, capability ? 16 : 10).ec != std::errc()) continue;
    if (capability) status.capabilities = status.capabilities.value_or(0) | number;
    else if (key == "Pid") status.pid = number;
    else if (key == "Uid") status.uid = number;
    else if (key == "Gid") status.gid = number;
    else if (key == "NoNewPrivs") status.no_new_privs = number;
  }
  return status;
}

bool has_own_terminals(const std::vector<Mount>& here, const std::vector<Mount>& inside) {
  return std::ranges::none_of(inside, [&](const Mount& mount) {
    return mount.type == "devpts" && std::ranges::find(here, mount.device, &Mount::device) != here.end();
  });
}

Result<std::vector<std::string>> check_mounted(const std::vector<Bind>& binds, const std::vector<Mount>& here,
                                               const std::vector<Mount>& inside) {
  MountedTargets places;
  for (const Bind& bind : binds) {
    std::vector<const Mount*> sources = walk(here, bind.source);
    if (sources.empty()) return other(bind, "no mount of this process holds it");
    if (!bind.below) sources.erase(sources.begin(), sources.end() - 1);
    const auto right = [&](const Mount& mount) {
      return std::ranges::any_of(sources, [&](const Mount* source) { return shows(mount, *source, bind); });
    };
    const auto seen = [&](const Mount& mount) { return right(mount) && mount_at(inside, mount.point) == &mount; };
    const std::string known = places.of(bind.target);
    const std::string& expected = known.empty() ? bind.target : known;
    const Mount* const found = mount_at(inside, expected);
    const bool there = found != nullptr && found->point == expected;
    if (there && right(*found)) {
      places.add(bind.target, expected);
      continue;
    }
    if (there)
      return other(bind, format("at {} it has {} of device {}{}", belljar::quoted(expected), belljar::quoted(found->root),
                                found->device, found->readonly ? "" : ", writable"));
    const auto elsewhere = known.empty() ? std::ranges::find_if(inside, seen) : inside.end();
    if (elsewhere == inside.end()) return other(bind, format("it has nothing of it at {}", belljar::quoted(expected)));
    places.add(bind.target, elsewhere->point);
  }
  return places.all();
}

std::vector<std::string> find_unasked(const std::vector<std::string>& asked, const std::vector<Mount>& inside) {
  std::vector<std::string> unasked;
  for (const Mount& mount : inside) {
    // What is mounted below something that was asked for came along with it; a tmpfs of the engine's own is empty.
    const bool known = std::ranges::any_of(asked, [&](const std::string& point) { return is_under(mount.point, point); }) ||
                       (mount.type == "tmpfs" && mount.root == "/") || is_of_every_container(mount.point);
    if (!known) unasked.push_back(mount.point);
  }
  return unasked;
}

std::vector<std::string> find_larger(const Spec& spec, const std::vector<Mount>& inside) {
  constexpr std::uint64_t kOfDevices = 64ULL << 20;
  std::vector<std::string> larger;
  for (const Mount& mount : inside) {
    if (mount.type != "tmpfs" || mount.root != "/" || mount.readonly || mount_at(inside, mount.point) != &mount) continue;
    const bool chosen = std::ranges::any_of(spec.tmpfs, [&](const auto& asked) {
      return policy::normal(asked.first) == mount.point && asked.second != private_tmpfs(Bytes{spec.tmp_size});
    });
    const std::uint64_t most = is_under(mount.point, "/dev") ? std::max(spec.tmp_size, kOfDevices) : spec.tmp_size;
    if (!mount.size || (!chosen && *mount.size > most)) larger.push_back(mount.point);
  }
  return larger;
}

std::vector<std::string> names_of(const std::string& path, const std::vector<Mount>& here) {
  std::vector<std::string> names = {path};
  const Mount* const holder = mount_at(here, path);
  if (holder == nullptr) return names;
  const std::string inner = join(holder->root, below(path, holder->point));
  for (const Mount& mount : here) {
    if (mount.device != holder->device || !is_under(inner, mount.root)) continue;
    std::string name = join(mount.point, below(inner, mount.root));
    if (mount_at(here, name) == &mount && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

Result<void> check_single_link(const std::string& path, std::uint64_t links, const std::vector<Bind>& binds,
                               const std::vector<Mount>& here) {
  const Mount* const holder = mount_at(here, path);
  if (links < 2 || holder == nullptr) return {};
  for (const Bind& bind : binds) {
    const std::vector<const Mount*> sources = walk(here, bind.source);
    const auto shares = [&](const Mount& mount) {
      return mount.device == holder->device &&
             (is_under(mount.point, bind.source) || (!sources.empty() && sources.back() == &mount));
    };
    if (std::ranges::none_of(here, shares)) continue;
    return Error(Code::kFailedPrecondition, format("cannot show {} in a container", belljar::quoted(bind.source)))
        .reason(format("{} has {} hard links, one of which may be there, and whoever opens it commands the container engine",
                       belljar::quoted(path), links))
        .next(format("remove the other names: find them with `find DIR -samefile {}`", belljar::quoted(path)));
  }
  return {};
}

}  // namespace belljar::backend::container
