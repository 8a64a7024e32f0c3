// A file system in a map from normalised paths to nodes. It resolves names like a kernel, component by
// component, so that a test of an agent meets the same errors as on a machine: a component that is missing, is
// a file, or may not be searched ends the walk there.
//
// Whether a path leads out is decided as text in addition, before the first missing component is reported.
// "nope/../../x" is an escape on every backend, whatever is missing on the way.
#include "backend/mock/tree.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/ascii.h"
#include "base/format.h"
#include "belljar/error.h"
#include "policy/check_command.h"
#include "policy/paths.h"

namespace belljar::mock {
namespace {

constexpr std::size_t kLongestName = 255;  // NAME_MAX of the kernel's file systems
constexpr std::size_t kLongestLine = 1000;
constexpr unsigned kMayRead = 0400, kMayWrite = 0200, kMaySearch = 0100;

Error refused(std::string_view doing, const std::string& path, int errnum) {
  const Code code = errnum == ENOENT                                               ? Code::kNotFound
                    : errnum == EACCES                                             ? Code::kPermissionDenied
                    : errnum == EEXIST                                             ? Code::kAlreadyExists
                    : errnum == EISDIR || errnum == ENOTDIR || errnum == ENOTEMPTY ? Code::kFailedPrecondition
                                                                                   : Code::kInvalidArgument;
  const std::string shown = path.size() > 80 ? path.substr(0, 80) + "..." : path;
  return Error(code, format("cannot {} {}", doing, quoted(shown))).sys(errnum, "mock");
}
Error escapes(const std::string& path) {
  return Error(Code::kInvalidArgument, format("path escapes workspace: {}", escaped(path)))
      .next("name a path inside of the workspace");
}
Error no_name(const std::string& path) {
  return Error(Code::kInvalidArgument, format("cannot use {} here", quoted(path)))
      .reason("it is a directory on the way, or the workspace itself")
      .next("name what is in it");
}

Result<void> check_mode(std::optional<unsigned> mode) {
  if (!mode || *mode <= 0777) return {};
  return Error(Code::kInvalidArgument, format("cannot set mode {:o}", *mode))
      .reason("setuid, setgid and sticky bits are never set from here")
      .next("give permission bits between 0000 and 0777");
}

std::string parent_of(const std::string& key) {
  const std::size_t slash = key.rfind('/');
  return slash == std::string::npos ? "" : key.substr(0, slash);
}
std::string child_of(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : format("{}/{}", directory, name);
}
bool is_below(const std::string& key, const std::string& directory) {
  return directory.empty() || policy::is_within("/" + key, "/" + directory);
}

std::string folded(const std::string& text, Case letters) { return letters == Case::kIgnoreAscii ? lower_case(text) : text; }

// The lines of one file that hold the text. False: there are more than wanted.
bool search(const std::string& name, const std::string& bytes, const std::string& wanted, const GrepOptions& options,
            std::vector<GrepMatch>& matches) {
  std::uint64_t number = 1;
  for (std::size_t start = 0; start < bytes.size(); ++number) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    const std::string line = bytes.substr(start, end - start);
    start = end + 1;
    if (folded(line, options.letters).find(wanted) == std::string::npos) continue;
    if (matches.size() >= options.walk.max_results) return false;
    matches.push_back({name, number, line.substr(0, kLongestLine)});
  }
  return true;
}

}  // namespace

Tree::Tree(std::string workspace) : workspace_(std::move(workspace)) { nodes_[""] = {FileType::kDirectory, {}, 0755}; }

FileInfo Tree::info(const std::string& path, const Node& node) {
  FileInfo info;
  info.path = path;
  info.type = node.type;
  info.size = node.bytes.size();
  info.mode = node.mode;
  return info;
}

// --- paths

// The part below the workspace, as it was written; "." for the workspace itself.
Result<std::string> Tree::relative(const std::string& path) const {
  if (path.find('\0') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot use path {}", quoted(path))).reason("it holds a NUL byte");
  if (path.size() > policy::kMaxPath) return refused("use path", path, ENAMETOOLONG);
  if (path.empty()) return std::string(".");
  if (path[0] != '/') return path;
  const std::string full = policy::is_within(path, workspace_) ? path : policy::normal(path);
  if (!policy::is_within(full, workspace_)) return escapes(path);
  std::string rest = full.substr(workspace_ == "/" ? 0 : workspace_.size());
  rest.erase(0, rest.find_first_not_of('/'));
  return rest.empty() ? "." : rest;
}

// The key of what `rest` leads to; its last component need not be there.
Result<std::string> Tree::walk(std::string_view doing, const std::string& path, std::string_view rest) const {
  std::string key;
  // As text it may lead out, whatever is missing on the way.
  const bool out = !policy::is_within(policy::normal(workspace_ + "/" + std::string(rest)), workspace_);
  const auto missing = [&](int errnum) { return out ? escapes(path) : refused(doing, path, errnum); };
  while (!rest.empty()) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, slash);
    rest.remove_prefix(slash);
    const auto here = nodes_.find(key);
    if (here == nodes_.end()) return missing(ENOENT);
    if (here->second.type != FileType::kDirectory) return missing(ENOTDIR);
    if ((here->second.mode & kMaySearch) == 0) return refused(doing, path, EACCES);
    if (name.size() > kLongestName) return refused(doing, path, ENAMETOOLONG);
    if (name == ".." && key.empty()) return escapes(path);
    if (name == "..") key = parent_of(key);
    else if (!name.empty() && name != ".") key = child_of(key, name);
    // "a/" is a directory, or nothing.
    const auto reached = nodes_.find(key);
    if (!rest.empty() && reached == nodes_.end()) return missing(ENOENT);
    if (!rest.empty() && reached->second.type != FileType::kDirectory) return missing(ENOTDIR);
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  }
  return key;
}

Result<const Tree::Node*> Tree::find(std::string_view doing, const std::string& path, std::string* key) const {
  const std::string rest = BELLJAR_TRY(relative(path));
  const std::string reached = BELLJAR_TRY(walk(doing, path, rest));
  const auto node = nodes_.find(reached);
  if (node == nodes_.end()) return refused(doing, path, ENOENT);
  if (key != nullptr) *key = reached;
  return &node->second;
}

// "." and ".." as last names are no names.
Result<Tree::Site> Tree::find_site(std::string_view doing, const std::string& path) const {
  std::string rest = BELLJAR_TRY(relative(path));
  while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
  const std::size_t slash = rest.rfind('/');
  const std::string name = slash == std::string::npos ? rest : rest.substr(slash + 1);
  if (name == "..") BELLJAR_TRY(walk(doing, path, rest));  // out of the workspace, or nowhere
  if (name == "." || name == "..") return no_name(path);
  Site site;
  site.parent = slash == std::string::npos ? "" : BELLJAR_TRY(walk(doing, path, std::string_view(rest).substr(0, slash + 1)));
  site.key = BELLJAR_TRY(walk(doing, path, rest));
  return site;
}

Result<void> Tree::may_change(std::string_view doing, const std::string& path, const std::string& directory) const {
  if ((~nodes_.at(directory).mode & (kMayWrite | kMaySearch)) != 0) return refused(doing, path, EACCES);
  return {};
}

bool Tree::is_full(const std::string& directory) const {
  return std::ranges::any_of(nodes_,
                             [&](const auto& entry) { return entry.first != directory && is_below(entry.first, directory); });
}

// Whether a walk over the tree comes to it.
bool Tree::is_shown(const std::string& key) const {
  for (std::string up = parent_of(key);; up = parent_of(up)) {
    if ((~nodes_.at(up).mode & (kMayRead | kMaySearch)) != 0) return false;
    if (up.empty()) return true;
  }
}

// --- what is read

Result<std::string> Tree::read(const std::string& path, const ReadOptions& options) const {
  const Node* const node = BELLJAR_TRY(find("read", path));
  if (node->type != FileType::kFile) return refused("read", path, EISDIR);
  if ((node->mode & kMayRead) == 0) return refused("read", path, EACCES);
  const auto from = static_cast<std::size_t>(std::min<std::uint64_t>(options.offset, node->bytes.size()));
  return node->bytes.substr(from, static_cast<std::size_t>(options.limit.value_or(node->bytes.size())));
}

Result<std::vector<FileInfo>> Tree::list(const std::string& path) const {
  std::string key;
  const Node* const node = BELLJAR_TRY(find("list", path, &key));
  if (node->type != FileType::kDirectory) return refused("list", path, ENOTDIR);
  if ((node->mode & kMayRead) == 0) return refused("list", path, EACCES);
  std::vector<FileInfo> entries;
  for (const auto& [name, entry] : nodes_) {
    if (!name.empty() && parent_of(name) == key) entries.push_back(info(name.substr(key.empty() ? 0 : key.size() + 1), entry));
  }
  return entries;
}

Result<FileInfo> Tree::stat(const std::string& path) const { return info(path, *BELLJAR_TRY(find("look at", path))); }

Result<void> Tree::check_cwd(const std::string& cwd) const {
  if (cwd.empty()) return {};
  const auto node = find("use as working directory", cwd);
  if (!node && node.error().what().starts_with("path escapes"))
    return Error(Code::kInvalidArgument, format("workdir escapes workspace: {}", escaped(cwd)))
        .next("name a directory inside of the workspace");
  if (!node) return node.error();
  if ((*node)->type != FileType::kDirectory) return refused("use as working directory", cwd, ENOTDIR);
  return {};
}

Result<GlobResult> Tree::glob(const std::string& pattern, const WalkOptions& options) const {
  const std::string wanted = BELLJAR_TRY(policy::glob_below(pattern, workspace_));
  BELLJAR_CHECK(policy::check_timeout(options.timeout));
  GlobResult result;
  result.complete = !options.cancel.cancelled();
  for (auto at = nodes_.begin(); at != nodes_.end() && result.complete; ++at) {
    if (at->first.empty() || !policy::glob_match(wanted, at->first) || !is_shown(at->first)) continue;
    if (result.files.size() >= options.max_results) result.complete = false;
    else result.files.push_back(info(at->first, at->second));
  }
  return result;
}

Result<GrepResult> Tree::grep(const std::string& text, const GrepOptions& options) const {
  if (text.empty() || text.find('\n') != std::string::npos)
    return Error(Code::kInvalidArgument, format("cannot search for {}", quoted(text)))
        .reason("it is empty or more than one line")
        .next("give a part of one line");
  const std::string wanted = BELLJAR_TRY(policy::glob_below(options.files, workspace_));
  BELLJAR_CHECK(policy::check_timeout(options.walk.timeout));
  GrepResult result;
  result.complete = !options.walk.cancel.cancelled();
  for (auto at = nodes_.begin(); at != nodes_.end() && result.complete; ++at) {
    const auto& [name, node] = *at;
    if (node.type != FileType::kFile || !policy::glob_match(wanted, name) || (node.mode & kMayRead) == 0 || !is_shown(name))
      continue;
    result.complete = search(name, node.bytes, folded(text, options.letters), options, result.matches);
  }
  return result;
}

// --- what is changed

// Each directory on the way that is not there. `made`: their keys, a parent before what is in it.
Result<void> Tree::make_parents(const std::string& path, std::string_view rest, std::optional<unsigned> mode,
                                std::vector<std::string>& made) {
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = rest.find('/', end + 1);
    const std::string_view prefix = rest.substr(0, end);
    const std::string key = BELLJAR_TRY(walk("make directory", path, prefix));
    if (const auto there = nodes_.find(key); there != nodes_.end()) {
      if (there->second.type != FileType::kDirectory) return refused("make directory", path, ENOTDIR);
      continue;
    }
    BELLJAR_CHECK(may_change("make directory", path, parent_of(key)));
    nodes_[key] = {FileType::kDirectory, {}, mode.value_or(0755)};
    made.push_back(key);
  }
  return {};
}

Result<void> Tree::write(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  BELLJAR_CHECK(check_mode(options.mode));
  const std::string rest = BELLJAR_TRY(relative(path));
  if (rest.ends_with('/')) return refused("write", path, EISDIR);
  const std::size_t slash = rest.rfind('/');
  std::vector<std::string> made;
  Result<void> done;
  if (slash != std::string::npos && options.parents == Parents::kCreate)
    done = make_parents(path, std::string_view(rest).substr(0, slash), {}, made);
  if (done) done = write_there(path, bytes, options);
  // A write that is refused leaves nothing.
  for (const std::string& key : made) {
    if (!done) nodes_.erase(key);
  }
  return done;
}

Result<void> Tree::write_there(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  const Site site = BELLJAR_TRY(find_site("write", path));
  const auto there = nodes_.find(site.key);
  const bool exists = there != nodes_.end(), atomic = options.how == WriteMode::kAtomic;
  if (exists && there->second.type != FileType::kFile) return refused("write", path, EISDIR);
  if (!exists || atomic) BELLJAR_CHECK(may_change("write", path, site.parent));
  if (exists && !atomic && (there->second.mode & kMayWrite) == 0) return refused("write", path, EACCES);
  Node& node = nodes_[site.key];
  if (options.how == WriteMode::kAppend) node.bytes.append(bytes);
  else node.bytes = bytes;
  if (options.mode) node.mode = *options.mode;
  return {};
}

Result<void> Tree::make_dir(const std::string& path, const MakeDirOptions& options) {
  BELLJAR_CHECK(check_mode(options.mode));
  if (options.parents == Parents::kCreate) {
    std::string rest = BELLJAR_TRY(relative(path));
    while (rest.size() > 1 && rest.back() == '/') rest.pop_back();
    std::vector<std::string> made;
    return make_parents(path, rest, options.mode, made);
  }
  const Site site = BELLJAR_TRY(find_site("make directory", path));
  if (nodes_.contains(site.key)) return refused("make directory", path, EEXIST);
  BELLJAR_CHECK(may_change("make directory", path, site.parent));
  nodes_[site.key] = {FileType::kDirectory, {}, options.mode.value_or(0755)};
  return {};
}

Result<void> Tree::rename(const std::string& from, const std::string& to) {
  const Site source = BELLJAR_TRY(find_site("rename", from));
  const Site target = BELLJAR_TRY(find_site("rename", to));
  const auto moved = nodes_.find(source.key);
  if (moved == nodes_.end()) return refused("rename", from, ENOENT);
  const bool is_dir = moved->second.type == FileType::kDirectory;
  if (source.key == target.key) return {};
  BELLJAR_CHECK(may_change("rename", from, source.parent));
  BELLJAR_CHECK(may_change("rename", to, target.parent));
  if (is_dir && source.parent != target.parent && (moved->second.mode & kMayWrite) == 0)
    return refused("rename", from, EACCES);  // its ".." would change
  if (is_below(target.key, source.key)) return refused("rename", from, EINVAL);
  if (is_below(source.key, target.key)) return refused("rename", from, ENOTEMPTY);
  if (const auto there = nodes_.find(target.key); there != nodes_.end()) {
    const bool onto_dir = there->second.type == FileType::kDirectory;
    if (is_dir != onto_dir) return refused("rename", from, is_dir ? ENOTDIR : EISDIR);
    if (onto_dir && is_full(target.key)) return refused("rename", from, ENOTEMPTY);
  }
  std::map<std::string, Node> renamed;
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    if (!is_below(at->first, source.key)) {
      ++at;
      continue;
    }
    renamed[target.key + at->first.substr(source.key.size())] = std::move(at->second);
    at = nodes_.erase(at);
  }
  nodes_.erase(target.key);
  nodes_.merge(renamed);
  return {};
}

Result<void> Tree::remove(const std::string& path, const RemoveOptions& options) {
  const Site site = BELLJAR_TRY(find_site("remove", path));
  const auto there = nodes_.find(site.key);
  if (there == nodes_.end()) return refused("remove", path, ENOENT);
  BELLJAR_CHECK(may_change("remove", path, site.parent));
  if (there->second.type == FileType::kDirectory && options.depth == Depth::kOne && is_full(site.key))
    return refused("remove", path, ENOTEMPTY);
  std::erase_if(nodes_, [&](const auto& entry) { return is_below(entry.first, site.key); });
  return {};
}

}  // namespace belljar::mock
