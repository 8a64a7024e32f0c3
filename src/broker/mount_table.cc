#include "broker/mount_table.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "base/format.h"
#include "base/read_file.h"
#include "kernel/small_file.h"

namespace belljar::broker {
namespace {

std::string_view take_field(std::string_view& line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  const std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(field.size());
  return field;
}

bool has_option(std::string_view options, std::string_view wanted) {
  while (!options.empty()) {
    const std::string_view one = options.substr(0, options.find(','));
    if (one == wanted) return true;
    options.remove_prefix(std::min(options.size(), one.size() + 1));
  }
  return false;
}

struct Line {
  std::string_view id, parent;
  MountTable::Entry entry;
};

// "36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue", proc_pid_mountinfo(5).
bool parse_line(std::string_view text, Line& line) {
  line.id = take_field(text);
  line.parent = take_field(text);
  take_field(text);
  take_field(text);
  line.entry.point = kernel::unescape_octal(take_field(text));
  const std::string_view options = take_field(text);
  std::string_view field;
  while (!(field = take_field(text)).empty() && field != "-") {
  }
  const std::string_view type = take_field(text);
  take_field(text);
  const std::string_view super = take_field(text);
  line.entry.proc = type == "proc";
  line.entry.writable = has_option(options, "rw") && has_option(super, "rw");
  return line.entry.point.starts_with('/') && !super.empty();
}

// "/a/b" to "/a" to "/" to "".
std::string_view step_up(std::string_view path) {
  if (path.size() <= 1) return {};
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? std::string_view("/") : path.substr(0, slash);
}

// The first with the longest point at or above `path`; end() when there is none. Sorted by point.
template <class Sorted, class Point>
auto find_above(const Sorted& sorted, std::string_view path, Point point) {
  for (; !path.empty(); path = step_up(path)) {
    const auto found = std::ranges::lower_bound(sorted, path, {}, point);
    if (found != sorted.end() && point(*found) == path) return found;
  }
  return sorted.end();
}

std::string_view point_of(const MountTable::Entry& entry) { return entry.point; }
std::string_view point_of_line(const Line& line) { return line.entry.point; }

// Of the mounts on one point, the one that is seen there: the first stands on the mount that `above` is, each other one on the one
// before. Null: none does, a mount on a shorter point hides them all.
const Line* top_of(std::span<const Line> on_one_point, std::string_view above) {
  const Line* top = nullptr;
  for (std::size_t steps = 0; steps < on_one_point.size(); ++steps) {
    const auto next = std::ranges::find(on_one_point, top == nullptr ? above : top->id, &Line::parent);
    if (next == on_one_point.end()) break;
    top = &*next;
  }
  return top;
}

// What the first mount on "/" stands on is not in the table.
std::string_view below_root(std::span<const Line> lines) {
  for (const Line& line : lines) {
    if (line.entry.point != "/") break;
    if (std::ranges::find(lines, line.parent, &Line::id) == lines.end()) return line.parent;
  }
  return {};
}

// Sorted by point, those that are seen.
std::vector<Line> visible(std::span<const Line> lines) {
  std::vector<Line> seen;
  for (std::size_t first = 0, end = 0; first < lines.size(); first = end) {
    const std::string& point = lines[first].entry.point;
    while (end < lines.size() && lines[end].entry.point == point) ++end;
    const auto above = find_above(seen, step_up(point), point_of_line);
    const Line* const top = top_of(lines.subspan(first, end - first), above != seen.end() ? above->id : below_root(lines));
    if (top != nullptr) seen.push_back(*top);
  }
  return seen;
}

}  // namespace

std::vector<MountTable::Entry> MountTable::parse(std::string_view mountinfo) {
  std::vector<Line> lines;
  while (!mountinfo.empty()) {
    const std::string_view text = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), text.size() + 1));
    Line line;
    if (text.empty()) continue;
    if (!parse_line(text, line)) return {};
    lines.push_back(std::move(line));
  }
  std::ranges::sort(lines, {}, point_of_line);
  std::vector<Entry> entries;
  for (Line& line : visible(lines)) entries.push_back(std::move(line.entry));
  return entries;
}

// Under mutex_. What cannot be read makes everything unknown.
void MountTable::read(const Caller& caller) {
  read_ = asked_ = Clock::now();
  entries_ = std::make_shared<const Entries>();
  mountinfo_ = UniqueFd(::open(format("/proc/{}/mountinfo", caller.tid()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!mountinfo_.valid()) return;
  // First what is polled for from now on, then what is read.
  pollfd changed{mountinfo_.get(), POLLPRI, 0};
  (void)::poll(&changed, 1, 0);
  if (const auto text = read_at_most(mountinfo_.get(), SIZE_MAX)) entries_ = std::make_shared<const Entries>(parse(*text));
}

std::shared_ptr<const MountTable::Entries> MountTable::entries(const Caller& caller) {
  const std::scoped_lock lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (entries_ == nullptr || now - read_ > kKept) {
    read(caller);
  } else if (now - asked_ > kAsked) {
    asked_ = now;
    pollfd changed{mountinfo_.get(), POLLPRI, 0};
    if (::poll(&changed, 1, 0) > 0) read(caller);
  }
  return entries_;
}

MountTable::Facts MountTable::at(const Caller& caller, std::string_view path) {
  const std::shared_ptr<const Entries> table = entries(caller);
  const auto found = find_above(*table, path, point_of);
  if (found == table->end()) return {};
  return {.known = true, .proc = found->proc, .writable = found->writable};
}

}  // namespace belljar::broker
