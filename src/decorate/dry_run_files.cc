// An overlay in memory. nodes_ holds what was pretended (a file, a directory, or "gone") under
// resolved paths; everything else is asked of the inner sandbox. A node hides all that the inner
// sandbox has below it: a directory that was removed and made again is empty, as it would be.
//
// Paths are resolved here, component by component, and not by the inner sandbox: a link may lead
// into a directory that only this overlay knows, and `..` behind a link means the parent of what
// the link leads to, path_resolution(7). A link that leads out of the workspace and its roots is
// refused, as inside. At most kMostLinks are followed, as the kernel does, so a loop of links ends.
//
// A rename cannot be a note "this is now there", since later writes below both names would have to
// be followed through it. It copies instead: each name below gets a node, and a file's node names
// its source in the inner sandbox, so no content is read. Where that does not work, it says so
// (kUnimplemented): a link would mean something else from another directory, and a very large tree
// would fill memory.
#include "decorate/dry_run_files.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/error.h"
#include "policy/paths.h"

namespace belljar::decorate {
namespace {

constexpr std::size_t kMostMoved = 10'000;  // names of a directory that is renamed
constexpr int kMostLinks = 40;              // as path_resolution(7)

Error missing(std::string_view doing, const std::string& path) {
  return Error(Code::kNotFound, format("cannot {} {}", doing, quoted(path))).reason("No such file or directory");
}
Error wrong_type(std::string_view doing, const std::string& path) {
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path))).reason("it is of another type");
}
Error not_empty(std::string_view doing, const std::string& path) {
  return Error(Code::kFailedPrecondition, format("cannot {} {}", doing, quoted(path))).reason("Directory not empty");
}
Error exists_already(const std::string& path) {
  return Error(Code::kAlreadyExists, format("cannot make directory {}", quoted(path))).reason("File exists");
}
Error escapes(const std::string& path) {
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .next("name a path inside of the workspace; links that lead out are not followed");
}
Error too_long(const std::string& path) {
  return Error(Code::kInvalidArgument, format("cannot use the path {}", quoted(path.substr(0, 80) + "...")))
      .reason("File name too long");
}

Result<void> check_mode(std::string_view doing, const std::string& path, std::optional<unsigned> mode) {
  if (!mode || *mode <= 0777) return {};
  return Error(Code::kInvalidArgument, format("cannot {} {}", doing, quoted(path))).reason("the mode is not 0000 to 0777");
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}
std::string joined(const std::string& directory, const std::string& name) {
  return directory == "." ? name : directory + "/" + name;
}
bool is_below(const std::string& path, const std::string& directory) {
  return (directory == "." && !path.starts_with('/')) ||
         (path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/');
}

// The part below `top`, as it was written; none: it is elsewhere.
std::optional<std::string> below(const std::string& path, const std::string& top) {
  const std::string full = policy::is_within(path, top) ? path : policy::normal(path);
  if (top.empty() || !policy::is_within(full, top)) return {};
  std::string rest = full.substr(top == "/" ? 0 : top.size());
  rest.erase(0, rest.find_first_not_of('/'));
  return rest.empty() ? "." : rest;
}

}  // namespace

// --- paths

// The path below the workspace, as it was written; "." for the workspace itself.
Result<std::string> DryRunFiles::relative(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use the path {}", quoted(path))).reason("it holds a NUL byte");
  if (path.size() > policy::kMaxPath) return too_long(path);
  if (path.empty()) return std::string(".");
  if (path[0] != '/') return path;
  if (auto rest = inside(path)) return *std::move(rest);
  if (other_name_.empty()) other_name_ = BELLJAR_TRY(find_other_name(path));
  if (auto rest = below(path, other_name_)) return *std::move(rest);
  return escapes(path);
}

// The same of a path under a known name; absolute in a root.
std::optional<std::string> DryRunFiles::inside(const std::string& path) const {
  if (auto rest = below(path, inner_.workspace())) return rest;
  for (const std::string& root : inner_.roots()) {
    if (const auto rest = below(path, root)) return *rest == "." ? root : root + "/" + *rest;
  }
  return {};
}

// The root that a path of relative() lies in; "." for the workspace.
std::string DryRunFiles::top_of(const std::string& rest) const {
  const std::vector<std::string> roots = rest.starts_with('/') ? inner_.roots() : std::vector<std::string>();
  const auto found = std::ranges::find_if(roots, [&](const std::string& root) { return policy::is_within(rest, root); });
  return found == roots.end() ? "." : *found;
}

// Whoever made the inner sandbox may have named its workspace through a link, and it takes paths under that name. Above that name
// every path leads out; the first beginning that does not is the name. Empty: there is none.
Result<std::string> DryRunFiles::find_other_name(const std::string& path) {
  const std::string full = policy::normal(path);
  for (std::size_t end = 0; end != std::string::npos;) {
    end = full.find('/', end + 1);
    const auto info = inner_.stat(full.substr(0, end), call_);
    if (info) return full.substr(0, end);
    if (info.error().code() != Code::kInvalidArgument) break;
  }
  return std::string();
}

Result<std::string> DryRunFiles::walk(const std::string& asked, const std::string& rest, bool follow) {
  std::string top, at;  // "." or a root; where in it
  std::deque<std::string> todo;
  const auto prepend = [&](std::string_view path) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= path.size();) {
      const std::size_t end = std::min(path.find('/', from), path.size());
      parts.emplace_back(path.substr(from, end - from));
      from = end + 1;
    }
    todo.insert(todo.begin(), parts.begin(), parts.end());
  };
  const auto enter = [&](const std::string& path) {
    top = at = top_of(path);
    prepend(std::string_view(path).substr(top == "." ? 0 : top.size()));
  };
  enter(rest);
  int links = 0;
  while (!todo.empty()) {
    const std::string part = todo.front();
    todo.pop_front();
    if (part.size() > NAME_MAX) return too_long(asked);
    // Behind a slash is a directory, or nothing.
    const FileInfo here = at == "." ? FileInfo{.type = FileType::kDirectory} : BELLJAR_TRY(look(at));
    if (here.type != FileType::kDirectory) return wrong_type("use", asked);
    if (part == ".." && at == top) return escapes(asked);
    if (part == "..") at = parent_of(at);
    if (part.empty() || part == "." || part == "..") continue;
    const std::string next = joined(at, part);
    const auto info = todo.empty() && !follow ? Result<FileInfo>(FileInfo()) : look(next);
    if (!info || info->type != FileType::kSymlink) {
      at = next;
      continue;
    }
    if (++links > kMostLinks) return Error(Code::kInvalidArgument, format("too many links in {}", quoted(asked)));
    if (!info->target.starts_with('/')) {
      prepend(info->target);
      continue;
    }
    const auto led = inside(info->target);
    if (!led) return escapes(asked);
    enter(*led);
  }
  return at;
}

Result<std::string> DryRunFiles::resolve(const std::string& path, bool follow) {
  const std::string rest = BELLJAR_TRY(relative(path));
  return walk(path, rest, follow);
}

// A name itself, not what it leads to; not the workspace. Its directory is there.
Result<std::string> DryRunFiles::find_site(const std::string& asked, std::string rest) {
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  const std::size_t slash = rest.rfind('/');
  const std::string name = slash == std::string::npos ? rest : rest.substr(slash + 1);
  if (name == "..") BELLJAR_TRY(walk(asked, rest, true));  // out of the workspace, or nowhere
  if (name == "." || name == ".." || (rest.starts_with('/') && top_of(rest) == rest))
    return Error(Code::kInvalidArgument, format("cannot use {} here", quoted(asked)))
        .reason("it is a directory on the way, or the whole of a place such as the workspace itself")
        .next("name what is in it");
  if (name.size() > NAME_MAX) return too_long(asked);
  return joined(slash == std::string::npos ? "." : BELLJAR_TRY(walk(asked, rest.substr(0, slash + 1), true)), name);
}

// As find_site(), and through the links at its end.
Result<std::string> DryRunFiles::find_target(const std::string& asked, std::string rest) {
  for (int links = 0; links <= kMostLinks; ++links) {
    std::string path = BELLJAR_TRY(find_site(asked, rest));
    const auto info = look(path);
    if (!info || info->type != FileType::kSymlink) return path;
    if (!info->target.starts_with('/')) {
      rest = joined(parent_of(path), info->target);
      continue;
    }
    const auto led = inside(info->target);
    if (!led) return escapes(asked);
    rest = *led;
  }
  return Error(Code::kInvalidArgument, format("too many links in {}", quoted(asked)));
}

// A directory above was removed, replaced or made anew: nothing inside shows through it.
bool DryRunFiles::hidden_by_parent(const std::string& path) const {
  for (std::string above = parent_of(path); above != "."; above = parent_of(above)) {
    if (nodes_.contains(above)) return true;
  }
  return false;
}

// --- what is read

Result<FileInfo> DryRunFiles::look(const std::string& path) {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) {
    if (hidden_by_parent(path)) return missing("stat", path);
    return inner_.stat(path, call_);
  }
  if (node->second.kind == Node::Kind::kGone) return missing("stat", path);
  FileInfo info{.path = path, .mode = node->second.mode, .modified = node->second.modified};
  info.type = node->second.kind == Node::Kind::kDirectory ? FileType::kDirectory : FileType::kFile;
  info.size = node->second.bytes.size();
  if (node->second.source.empty()) return info;
  FileInfo moved = BELLJAR_TRY(inner_.stat(node->second.source, call_));
  moved.path = path;
  return moved;
}

ReadOptions DryRunFiles::in_time(ReadOptions options) const {
  options.call = call_;
  return options;
}

Result<std::string> DryRunFiles::read(const std::string& path, const ReadOptions& options) {
  const auto node = nodes_.find(path);
  if (node == nodes_.end()) {
    if (hidden_by_parent(path)) return missing("read", path);
    return inner_.read_file(path, in_time(options));
  }
  if (node->second.kind == Node::Kind::kGone) return missing("read", path);
  if (node->second.kind == Node::Kind::kDirectory) return wrong_type("read", path);
  if (!node->second.source.empty()) return inner_.read_file(node->second.source, in_time(options));
  if ((node->second.mode & 0444U) == 0)
    return Error(Code::kPermissionDenied, format("cannot read {}", quoted(path))).reason("its mode lets nobody read");
  const std::string& bytes = node->second.bytes;
  const std::size_t from = std::min<std::uint64_t>(options.offset, bytes.size());
  return bytes.substr(from, options.limit ? *options.limit : std::string::npos);
}

Result<std::vector<FileInfo>> DryRunFiles::list(const std::string& path) {
  const FileInfo info = path == "." ? FileInfo{.type = FileType::kDirectory} : BELLJAR_TRY(look(path));
  if (info.type != FileType::kDirectory) return wrong_type("list", path);
  std::vector<FileInfo> files;
  if (!nodes_.contains(path) && !hidden_by_parent(path)) files = BELLJAR_TRY(inner_.list(path, call_));
  std::erase_if(files, [&](const FileInfo& file) { return nodes_.contains(joined(path, file.path)); });
  for (const auto& [name, node] : nodes_) {
    if (node.kind == Node::Kind::kGone || parent_of(name) != path || name == ".") continue;
    FileInfo file = BELLJAR_TRY(look(name));
    file.path = file_name(name);
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

std::vector<std::string> DryRunFiles::written(const std::string& pattern) {
  // Learns the name under which the workspace was asked for, if it has to.
  if (pattern.starts_with('/')) (void)relative(pattern.substr(0, pattern.find_first_of("*?[")));
  std::string top = ".";
  auto wanted = policy::glob_below(pattern, inner_.workspace(), other_name_);
  for (const std::string& root : inner_.roots()) {
    if (wanted) break;
    wanted = policy::glob_below(pattern, root);
    if (wanted) top = root;
  }
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (!wanted || node.kind == Node::Kind::kGone || top_of(name) != top) continue;
    if (policy::glob_match(*wanted, std::string_view(name).substr(top == "." ? 0 : top.size() + 1))) names.push_back(name);
  }
  return names;
}

// --- what is pretended

Result<void> DryRunFiles::may_change(std::string_view doing, const std::string& path) {
  const std::string parent = parent_of(path);
  const FileInfo info = BELLJAR_TRY(look(parent));
  if ((info.mode & 0222U) != 0) return {};
  return Error(Code::kPermissionDenied, format("cannot {} {}", doing, quoted(path))).reason("its directory lets nobody write");
}

// Each directory on the way that is not there.
Result<void> DryRunFiles::make_parents(const std::string& asked, const std::string& rest, unsigned mode, Undo& undo) {
  for (std::size_t end = top_of(rest).size() - 1; end != std::string::npos;) {
    end = rest.find('/', end + 1);
    const std::string prefix = rest.substr(0, end);
    const std::string there = BELLJAR_TRY(walk(asked, prefix, true));
    const auto info = look(there);
    if (info && info->type != FileType::kDirectory) return wrong_type("make directory", asked);
    if (info) continue;
    if (info.error().code() != Code::kNotFound) return info.error();
    const std::string path = BELLJAR_TRY(find_site(asked, prefix));
    if (look(path)) return exists_already(asked);  // a link that leads nowhere
    BELLJAR_CHECK(may_change("make directory", path));
    const auto before = nodes_.find(path);
    undo.emplace_back(path, before == nodes_.end() ? std::nullopt : std::optional(before->second));
    nodes_[path] = Node{.kind = Node::Kind::kDirectory, .mode = mode};
  }
  return {};
}

Result<void> DryRunFiles::write(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  BELLJAR_CHECK(check_mode("write", path, options.mode));
  const std::string rest = BELLJAR_TRY(relative(path));
  if (rest.ends_with('/')) return wrong_type("write", path);
  const std::size_t slash = rest.rfind('/');
  Undo undo;
  Result<void> done;
  if (slash != std::string::npos && options.parents == Parents::kCreate)
    done = make_parents(path, rest.substr(0, slash), 0755, undo);
  if (done) done = write_there(path, rest, bytes, options);
  // A write that is refused leaves nothing.
  for (auto made = undo.rbegin(); !done && made != undo.rend(); ++made) {
    if (made->second) nodes_[made->first] = *made->second;
    else nodes_.erase(made->first);
  }
  return done;
}

Result<void> DryRunFiles::write_there(const std::string& asked, const std::string& rest, std::string_view bytes,
                                      const WriteOptions& options) {
  const bool replaces = options.how == WriteMode::kAtomic;  // then a link is replaced, else followed
  const std::string path = BELLJAR_TRY(replaces ? find_site(asked, rest) : find_target(asked, rest));
  const auto info = look(path);
  if (!info && info.error().code() != Code::kNotFound) return info.error();
  const bool is_file = info && info->type == FileType::kFile;
  if (info && !is_file && !(replaces && info->type == FileType::kSymlink)) return wrong_type("write", asked);
  if (is_file && !replaces && (info->mode & 0222U) == 0)
    return Error(Code::kPermissionDenied, format("cannot write {}", quoted(asked))).reason("its mode lets nobody write");
  if (!info || replaces) BELLJAR_CHECK(may_change("write", path));
  Node node{.mode = options.mode.value_or(is_file ? info->mode : 0644)};
  const auto own = nodes_.find(path);
  if (options.how == WriteMode::kAppend && own != nodes_.end() && own->second.source.empty()) node.bytes = own->second.bytes;
  else if (options.how == WriteMode::kAppend && info) node.bytes = BELLJAR_TRY(read(path, {}));
  node.bytes += bytes;
  nodes_[path] = std::move(node);
  return {};
}

Result<void> DryRunFiles::make_dir(const std::string& path, const MakeDirOptions& options) {
  BELLJAR_CHECK(check_mode("make directory", path, options.mode));
  std::string rest = BELLJAR_TRY(relative(path));
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  Undo undo;
  if (options.parents == Parents::kCreate) return make_parents(path, rest, options.mode.value_or(0755), undo);
  const std::string made = BELLJAR_TRY(find_site(path, rest));
  if (look(made)) return exists_already(path);
  BELLJAR_CHECK(may_change("make directory", made));
  nodes_[made] = Node{.kind = Node::Kind::kDirectory, .mode = options.mode.value_or(0755)};
  return {};
}

Result<void> DryRunFiles::remove(const std::string& path, Depth depth) {
  const std::string rest = BELLJAR_TRY(relative(path));
  const std::string gone = BELLJAR_TRY(find_site(path, rest));
  const FileInfo info = BELLJAR_TRY(look(gone));
  BELLJAR_CHECK(may_change("remove", gone));
  if (info.type == FileType::kDirectory && depth == Depth::kOne && !BELLJAR_TRY(list(gone)).empty())
    return not_empty("remove", path);
  take_away(gone);
  return {};
}

Result<void> DryRunFiles::rename(const std::string& from, const std::string& to) {
  const std::string from_rest = BELLJAR_TRY(relative(from)), to_rest = BELLJAR_TRY(relative(to));
  const std::string source = BELLJAR_TRY(find_site(from, from_rest)), target = BELLJAR_TRY(find_site(to, to_rest));
  const FileInfo info = BELLJAR_TRY(look(source));
  if (source == target) return {};
  BELLJAR_CHECK(may_change("rename", source));
  BELLJAR_CHECK(may_change("rename", target));
  if (is_below(target, source))
    return Error(Code::kInvalidArgument, format("cannot rename {} to {}", quoted(from), quoted(to))).reason("Invalid argument");
  if (const auto there = look(target)) {
    if ((there->type == FileType::kDirectory) != (info.type == FileType::kDirectory)) return wrong_type("rename over", to);
    if (there->type == FileType::kDirectory && !BELLJAR_TRY(list(target)).empty()) return not_empty("rename over", to);
  }
  std::map<std::string, Node> moved;
  BELLJAR_CHECK(collect(source, target, info, moved));
  take_away(target);
  take_away(source);
  for (auto& [name, node] : moved) nodes_[name] = std::move(node);
  return {};
}

void DryRunFiles::take_away(const std::string& path) {
  std::erase_if(nodes_, [&](const auto& node) { return is_below(node.first, path); });
  nodes_[path] = Node{.kind = Node::Kind::kGone};
}

Result<void> DryRunFiles::collect(const std::string& from, const std::string& to, const FileInfo& info,
                                  std::map<std::string, Node>& moved) {
  if (moved.size() >= kMostMoved)
    return Error(Code::kUnimplemented, format("cannot pretend to rename {}", quoted(from)))
        .reason(format("the directory holds more than {} names", kMostMoved));
  if (info.type == FileType::kSymlink || info.type == FileType::kOther)
    return Error(Code::kUnimplemented, format("cannot pretend to rename {}", quoted(from)))
        .reason("it is, or holds, a link or a special file");
  const auto node = nodes_.find(from);
  if (info.type == FileType::kFile) {
    moved[to] = node != nodes_.end() ? node->second : Node{.source = from, .mode = info.mode};
    return {};
  }
  moved[to] = Node{.kind = Node::Kind::kDirectory, .mode = info.mode};
  for (const FileInfo& file : BELLJAR_TRY(list(from)))
    BELLJAR_CHECK(collect(joined(from, file.path), joined(to, file.path), file, moved));
  return {};
}

}  // namespace belljar::decorate
