// A transaction as a patch that `git apply` takes. Text goes as hunks; what is binary goes as "GIT binary patch", both contents
// whole and deflated, which names them by their blob ids (gitformat-pack(5), apply.c of git).
#define OPENSSL_SUPPRESS_DEPRECATED  // git's ids are SHA-1; the small interface keeps the static program small
#include <openssl/sha.h>
#include <strings.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "base/format.h"
#include "belljar/result.h"
#include "belljar/txn.h"
#include "txn/base.h"
#include "txn/compare.h"
#include "txn/files.h"
#include "txn/lines.h"
#include "txn/store.h"
#include "txn/walk.h"

namespace belljar::txn {
namespace {

constexpr std::uint64_t kMostPatched = 1U << 30;  // bytes of one file
constexpr std::string_view kNoWord = "git has no word for the mode";
constexpr std::string_view kNoBlob = "0000000000000000000000000000000000000000";

std::string blob_id(std::string_view content) {
  SHA_CTX context;
  SHA1_Init(&context);
  const std::string header = format("blob {}", content.size());
  SHA1_Update(&context, header.c_str(), header.size() + 1);
  SHA1_Update(&context, content.data(), content.size());
  std::string digest(SHA_DIGEST_LENGTH, '\0');
  SHA1_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return to_hex(digest);
}

// Git quotes names like C strings (quote.c): `"a/tab\there"`.
std::string git_name(std::string_view prefix, std::string_view path) {
  std::string whole = std::string(prefix) + std::string(path);
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x7f;
  };
  if (std::ranges::all_of(whole, plain)) return whole;
  std::string text = "\"";
  for (const char c : whole) {
    if (plain(c)) text += c;
    else if (c == '"' || c == '\\') (text += '\\') += c;
    else text += format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return text + "\"";
}

// "literal SIZE", then lines of at most 52 bytes: their number as a letter, then base85 (base85.c).
std::string binary_half(std::string_view content) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
  uLongf size = ::compressBound(content.size());
  std::string deflated(size, '\0');
  ::compress2(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(content.data()), content.size(), 6);
  deflated.resize(size);
  std::string text = format("literal {}\n", content.size());
  for (std::size_t at = 0; at < deflated.size(); at += 52) {
    const std::size_t count = std::min<std::size_t>(52, deflated.size() - at);
    text += static_cast<char>(count <= 26 ? 'A' + count - 1 : 'a' + count - 27);
    for (std::size_t i = 0; i < count; i += 4) {
      std::uint32_t word = 0;
      for (std::size_t k = 0; k < 4; ++k)
        word = word << 8U | (i + k < count ? static_cast<unsigned char>(deflated[at + i + k]) : 0U);
      char digits[5];
      for (int k = 4; k >= 0; --k, word /= 85) digits[k] = kDigits[word % 85];
      text.append(digits, sizeof digits);
    }
    text += '\n';
  }
  return text + "\n";
}

// One side of a change as git sees it.
struct Side {
  std::string mode;  // "100644", "100755", "120000"; empty: nothing there
  std::string content;
};

class Writer {
 public:
  Writer(const Store& store, const std::vector<Delta>& deltas) : store_(store) {
    for (const Delta& delta : deltas) by_path_[delta.path] = &delta;
  }

  void add(const Change& change) {
    const Delta& delta = *by_path_.at(change.path);
    if (change.attributes) leave_out(change.path, "its extended attributes");
    if (!git_knows(change.path, change.before) || !git_knows(change.path, change.after)) return;
    if (change.kind == ChangeKind::kRenamed) {
      if (!git_knows_mode(change)) leave_out(change.path, kNoWord);
      return add_rename(change);
    }
    const bool before = is_blob(change.before);
    const bool after = is_blob(change.after);
    // A file that became a link, or the other way round, is two patches for git.
    const bool split = before && after && change.before.kind != change.after.kind;
    const auto left = before ? old_side(change.path, change.before) : Side();
    const auto right = after ? new_side(delta, change.after) : Side();
    // One file that may not be read takes no other out of the patch.
    if (!left || !right) {
      const Error& why = (left ? right : left).error();
      leave_out(change.path, format("it cannot be read{}: {}", left ? "" : " on the host",
                                    why.errnum() != 0 ? std::strerror(why.errnum()) : why.reason()));
      return;
    }
    if (!git_knows_mode(change)) leave_out(change.path, kNoWord);
    if (split) {
      put(change.path, *left, Side());
      put(change.path, Side(), *right);
    } else if (before || after) {
      put(change.path, *left, *right);
    }
  }

  Patch take() { return std::move(patch_); }

 private:
  static bool is_blob(const FileState& state) { return state.kind == FileKind::kFile || state.kind == FileKind::kSymlink; }

  void leave_out(const std::string& path, std::string_view what) {
    patch_.left_out.push_back(format("{}: {}", escaped(path.empty() ? "." : path), what));
  }

  bool git_knows(const std::string& path, const FileState& state) {
    if (state.kind == FileKind::kOther) {
      leave_out(path, "it is neither a file, a directory nor a link");
      return false;
    }
    if (state.kind == FileKind::kFile && state.size > kMostPatched) {
      leave_out(path, "it is larger than 1 GiB");
      return false;
    }
    return true;
  }

  // Git knows 644 and 755, and where a file stays the one or the other, its mode is left as it is.
  static bool git_knows_mode(const Change& change) {
    if (change.after.kind != FileKind::kFile) return true;
    const bool runs = (change.after.mode & S_IXUSR) != 0;
    const bool stays = change.before.kind == FileKind::kFile && ((change.before.mode & S_IXUSR) != 0) == runs;
    return change.after.mode == (stays ? change.before.mode : runs ? 0755U : 0644U);
  }

  Result<Side> old_side(const std::string& path, const FileState& state) { return side(store_.workspace(), path, state); }
  Result<Side> new_side(const Delta& delta, const FileState& state) {
    return side(store_.layers(), layer_path(delta.layer, delta.path), state);
  }

  static Result<Side> side(int root, const std::string& path, const FileState& state) {
    Side result;
    if (state.kind == FileKind::kSymlink) {
      const ParentAndName spot = BELLJAR_TRY(open_parent(root, path));
      result.mode = "120000";
      result.content = read_link(spot.parent.get(), spot.name);
      return result;
    }
    result.mode = (state.mode & S_IXUSR) != 0 ? "100755" : "100644";
    result.content = BELLJAR_TRY(read_whole(root, path, kMostPatched));
    return result;
  }

  void add_rename(const Change& change) {
    const auto mode = [](const FileState& state) { return (state.mode & S_IXUSR) != 0 ? "100755" : "100644"; };
    patch_.text += format("diff --git {} {}\n", git_name("a/", change.from), git_name("b/", change.path));
    if (std::string_view(mode(change.before)) != mode(change.after))
      patch_.text += format("old mode {}\nnew mode {}\n", mode(change.before), mode(change.after));
    patch_.text +=
        format("similarity index 100%\nrename from {}\nrename to {}\n", git_name("", change.from), git_name("", change.path));
  }

  void put(const std::string& path, const Side& left, const Side& right) {
    const std::string old_name = git_name("a/", path);
    const std::string new_name = git_name("b/", path);
    if (left.mode == right.mode && left.content == right.content) return;
    std::string& text = patch_.text;
    text += format("diff --git {} {}\n", old_name, new_name);
    if (left.mode.empty()) text += format("new file mode {}\n", right.mode);
    else if (right.mode.empty()) text += format("deleted file mode {}\n", left.mode);
    else if (left.mode != right.mode) text += format("old mode {}\nnew mode {}\n", left.mode, right.mode);
    if (left.content == right.content && !left.mode.empty() && !right.mode.empty()) return;
    text += format("index {}..{}{}\n", left.mode.empty() ? std::string(kNoBlob) : blob_id(left.content),
                   right.mode.empty() ? std::string(kNoBlob) : blob_id(right.content),
                   left.mode == right.mode ? " " + left.mode : std::string());
    if (is_binary(left.content) || is_binary(right.content)) {
      text += "GIT binary patch\n" + binary_half(right.content) + binary_half(left.content);
      return;
    }
    const std::string hunks = unified_hunks(left.content, right.content);
    if (hunks.empty()) return;  // an empty file comes or goes
    // A tab ends the name where it holds a blank (diff.c).
    const auto ended = [](const std::string& name) { return name.find(' ') == std::string::npos ? name : name + "\t"; };
    text += format("--- {}\n+++ {}\n", left.mode.empty() ? "/dev/null" : ended(old_name),
                   right.mode.empty() ? "/dev/null" : ended(new_name));
    text += hunks;
  }

  const Store& store_;
  std::map<std::string_view, const Delta*> by_path_;
  Patch patch_;
};

// A component that git takes for a repository's own directory, on any file system (read-cache.c, verify_path()).
bool is_git_directory(std::string_view component) {
  constexpr std::string_view kNames[] = {".git", "git~1"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    return iequals(component.substr(0, name.size()), name) &&
           component.find_first_not_of(" .", name.size()) == std::string_view::npos;
  });
}

// `path` up to that component; empty where there is none. One such path, and git refuses the whole patch.
std::string_view git_directory_of(std::string_view path) {
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (is_git_directory(path.substr(start, end - start))) return path.substr(0, end);
    start = end + 1;
  }
  return {};
}

// What git does not say about directories: that one comes or goes empty, or has another mode.
void note_directories(const std::vector<Change>& changes, Patch& patch) {
  for (const Change& change : changes) {
    const bool came = change.after.kind == FileKind::kDirectory;
    const bool went = change.before.kind == FileKind::kDirectory;
    if (!came && !went) continue;
    const bool has_files = std::ranges::any_of(changes, [&](const Change& other) {
      const bool below = other.path != change.path && within(other.path, change.path);
      return below && (other.before.kind == FileKind::kFile || other.after.kind == FileKind::kFile ||
                       other.before.kind == FileKind::kSymlink || other.after.kind == FileKind::kSymlink);
    });
    if (change.unread) patch.left_out.push_back(format("{}/: its owner may not look into it", escaped(change.path)));
    else if (came && went) patch.left_out.push_back(format("{}/: its mode", escaped(change.path.empty() ? "." : change.path)));
    else if (!has_files) patch.left_out.push_back(format("{}/: an empty directory", escaped(change.path)));
  }
}

}  // namespace

Result<Patch> patch(const Place& place) {
  const Transaction transaction = BELLJAR_TRY(Transaction::open(place, Store::Open::kExisting, Access::kRead));
  std::vector<Delta> deltas = BELLJAR_TRY(walk_unsettled(transaction));
  std::vector<Delta> of_git;
  std::erase_if(deltas,
                [&](Delta& delta) { return !git_directory_of(delta.path).empty() && (of_git.push_back(std::move(delta)), true); });
  const std::vector<Change> changes = find_renames(transaction.store(), deltas, compare_all(transaction.store(), deltas));
  Writer writer(transaction.store(), deltas);
  for (const Change& change : changes) writer.add(change);
  Patch patch = writer.take();
  note_directories(changes, patch);
  std::set<std::string, std::less<>> repositories;
  for (const Change& change : compare_all(transaction.store(), of_git)) repositories.emplace(git_directory_of(change.path));
  for (const std::string& directory : repositories)
    patch.left_out.push_back(format("{}: git takes nothing of a repository's own directory from a patch", escaped(directory)));
  return patch;
}

}  // namespace belljar::txn
