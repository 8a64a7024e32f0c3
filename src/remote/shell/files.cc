// File calls as scripts of a POSIX sh. Each call is one script where the bytes fit, since the way to the cloud
// costs more than the work.
//
// Names come as arguments ("$1") or quoted, and they are absolute, so none can be taken for an option or for
// shell text. Exits above 30 are ours and tell kinds of files apart; any other failure is read from the
// message. A test for a FIFO comes before every open, as an open would wait for the other end.
//
// GNU find prints a record of all fields itself (-printf). busybox has no -printf, so there stat(1) is called
// per file with a format both know; parse_record() reads the two forms. Names may hold anything but NUL, which
// therefore ends each record's name and target.
#include "remote/shell/files.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/patience.h"
#include "belljar/error.h"
#include "belljar/files.h"
#include "belljar/result.h"
#include "remote/paths.h"
#include "remote/search.h"
#include "remote/shell/scripts.h"
#include "remote/shell/shell_instance.h"

namespace belljar::remote::shell {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLargestRead = 256ULL << 20;
constexpr std::chrono::milliseconds kPatience = 10min;
constexpr std::chrono::milliseconds kClearing = 1s;
constexpr std::uint64_t kMostTree = 64U << 20;
constexpr std::size_t kFirst = 48U << 10;  // of a file, which a service's own call may bring faster

// Exits of the scripts below.
constexpr int kIsDirectory = 31;
constexpr int kIsSpecial = 32;
constexpr int kTooLarge = 34;

// PATH OFFSET LIMIT LARGEST: its size in a line, then the bytes. A FIFO is not opened.
constexpr char kRead[] = R"sh([ -d "$1" ] && exit 31
[ ! -e "$1" ] || [ -f "$1" ] || exit 32
[ -r "$1" ] || { cat -- "$1"; exit 1; }
n=$(wc -c <"$1") || exit 1
echo $((n+0))
[ $((n-$2)) -gt "$4" ] && exit 34
[ "$2" = 0 ] && exec head -c "$3" -- "$1"
tail -c "+$(($2+1))" -- "$1" | head -c "$3"
)sh";

// PATH HOW MODE PARENTS NAME, and the bytes.
constexpr char kWrite[] = R"sh([ -d "$1" ] && exit 31
[ ! -e "$1" ] || [ -f "$1" ] || exit 32
up=${1%/*}
up=${up:-/}
if [ "$4" = create ]; then mkdir -p -- "$up" || exit 1; fi
ls -d -- "$up/." >/dev/null || exit 1
m=$3
[ -z "$m" ] || [ -e "$1" ] || umask 077
case $2 in
append) cat >>"$1" || exit 1;;
replace) cat >"$1" || exit 1;;
atomic)
[ -z "$m" ] && [ -f "$1" ] && m=$(stat -c %a -- "$1")
t=$up/$5
{ cat >"$t" && { [ -z "$m" ] || chmod "$m" -- "$t"; } && mv -f -- "$t" "$1"; } && exit
rm -f -- "$t"
exit 1;;
esac
[ -z "$m" ] || chmod "$m" -- "$1"
)sh";

// PATH MODE PARENTS
constexpr char kMakeDir[] = R"sh(up=${1%/*}
if [ "$3" = create ]; then
[ -d "$1" ] && exit 0
mkdir -p -- "$1" || exit 1
else
ls -d -- "${up:-/}/." >/dev/null || exit 1
mkdir -- "$1" || exit 1
fi
[ -z "$2" ] || chmod "$2" -- "$1"
)sh";

// FROM TO, as rename(2): nothing is moved into a directory because there is one.
constexpr char kRename[] = R"sh([ -L "$1" ] || ls -d -- "$1" >/dev/null || exit 1
up=${2%/*}
ls -d -- "${up:-/}/." >/dev/null || exit 1
if [ -d "$2" ] && [ ! -L "$2" ]; then
if [ ! -d "$1" ] || [ -L "$1" ]; then echo Is a directory >&2; exit 1; fi
elif [ -d "$1" ] && [ ! -L "$1" ] && [ -e "$2" ]; then echo Not a directory >&2; exit 1
fi
exec mv -fT -- "$1" "$2"
)sh";

// PATH DEPTH
constexpr char kRemove[] = R"sh([ -L "$1" ] || ls -d -- "$1" >/dev/null || exit 1
if [ "$2" = tree ]; then exec rm -rf -- "$1"; fi
if [ -d "$1" ] && [ ! -L "$1" ]; then exec rmdir -- "$1"; fi
exec rm -f -- "$1"
)sh";

// Where find has no -printf: a record by stat(1), which busybox has as well.
constexpr char kRecordScript[] = R"sh(for f do
set -- $(stat -c '%f %s %Y' -- "$f") && [ $# = 3 ] || continue
l=
[ -L "$f" ] && l=$(readlink -- "$f")
printf 'x%s %s %s %s\0%s\0' "$1" "$2" "$3" "${f#./}" "$l"
done)sh";

FileType type_of(char letter) {
  switch (letter) {
    case 'f':
      return FileType::kFile;
    case 'd':
      return FileType::kDirectory;
    case 'l':
      return FileType::kSymlink;
    default:
      return FileType::kOther;
  }
}

FileType type_of_mode(unsigned mode) {
  const unsigned kind = mode & 0170000U;
  return kind == 0100000   ? FileType::kFile
         : kind == 0040000 ? FileType::kDirectory
         : kind == 0120000 ? FileType::kSymlink
                           : FileType::kOther;
}

template <class Number>
bool take_number(std::string_view& rest, Number& number, int base = 10) {
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number, base);
  if (read.ec != std::errc() || read.ptr == rest.data()) return false;
  rest.remove_prefix(static_cast<std::size_t>(read.ptr - rest.data()));
  return true;
}

bool take_space(std::string_view& rest) {
  if (!rest.starts_with(' ')) return false;
  rest.remove_prefix(1);
  return true;
}

// "1700000000.0123456789": the last digits are more than a clock here has.
bool take_time(std::string_view& rest, std::chrono::system_clock::time_point& time) {
  std::int64_t whole = 0;
  if (!take_number(rest, whole)) return false;
  std::int64_t nanoseconds = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    int digits = 0;
    for (; !rest.empty() && rest[0] >= '0' && rest[0] <= '9'; rest.remove_prefix(1), ++digits) {
      if (digits < 9) nanoseconds = nanoseconds * 10 + (rest[0] - '0');
    }
    for (; digits < 9; ++digits) nanoseconds *= 10;
  }
  if (whole > 4'000'000'000 || whole < -4'000'000'000) whole = 0;  // what no clock says
  time = std::chrono::system_clock::time_point(
      std::chrono::seconds(whole) +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::nanoseconds(nanoseconds)));
  return true;
}

bool parse_record(std::string_view& rest, FileInfo& file) {
  if (rest.empty()) return false;
  const bool hex = rest[0] == 'x';
  if (!hex) file.type = type_of(rest[0]);
  rest.remove_prefix(1);
  unsigned mode = 0;
  if (hex ? !take_number(rest, mode, 16) : !take_space(rest)) return false;
  if (hex && !take_space(rest)) return false;
  if (!take_number(rest, file.size) || !take_space(rest)) return false;
  if (!hex && (!take_number(rest, mode, 8) || !take_space(rest))) return false;
  if (!take_time(rest, file.modified) || !take_space(rest)) return false;
  if (hex) file.type = type_of_mode(mode);
  file.mode = mode & 0777U;
  for (std::string* text : {&file.path, &file.target}) {
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return false;
    *text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  return true;
}

Error failed(const HelperResult& helped, std::string_view doing, const std::string& path) {
  if (helped.exit_code == kIsDirectory) return wrong_kind(doing, path, FileType::kDirectory);
  if (helped.exit_code == kIsSpecial) return wrong_kind(doing, path, FileType::kOther);
  return complaint_of(helped.err, doing, path);
}

std::string mode_word(std::optional<unsigned> mode) { return mode ? format("{:04o}", *mode) : ""; }

}  // namespace

const char* const kRecordText = kRecordScript;

bool parse_records(std::string_view text, std::vector<FileInfo>& files) {
  constexpr std::size_t kMostEntries = 1'000'000;  // as on this machine
  while (!text.empty()) {
    FileInfo file;
    if (files.size() >= kMostEntries || !parse_record(text, file)) return false;
    files.push_back(std::move(file));
  }
  return true;
}

Result<HelperResult> ShellFiles::call(const char* script, std::vector<std::string> words, std::string bytes) const {
  std::vector<std::string> argv = {"/bin/sh", "-c", script, "sh"};
  argv.insert(argv.end(), words.begin(), words.end());
  return instance_->help(std::move(argv), std::move(bytes), kPatience, end_, kLargestRead + 64);
}

Result<void> ShellFiles::change(const char* script, std::vector<std::string> words, std::string_view doing,
                                const std::string& path) const {
  const HelperResult helped = BELLJAR_TRY(call(script, std::move(words)));
  if (helped.exit_code == 0) return {};
  return failed(helped, doing, path);
}

// --- what changes nothing

// `depth`: of find.
std::string ShellFiles::walk_script(const char* depth) const {
  if (instance_->finds()) return format("exec find . {} -printf '%y %s %m %T@ %P\\0%l\\0'", depth);
  return format("exec find . {} -exec /bin/sh -c {} sh {{}} +", depth, "\"$2\"");
}

Result<FileInfo> ShellFiles::stat(const std::string& path) const {
  const std::string full = BELLJAR_TRY(below(instance_->workspace(), path));
  constexpr char kFind[] = R"(exec find "$1" -maxdepth 0 -printf '%y %s %m %T@ %p\0%l\0')";
  constexpr char kStat[] = R"({ [ -L "$1" ] || ls -d -- "$1" >/dev/null; } && exec /bin/sh -c "$2" sh "$1")";
  const HelperResult helped = BELLJAR_TRY(call(instance_->finds() ? kFind : kStat, {full, kRecordText}));
  if (helped.exit_code != 0) return failed(helped, "look at", path);
  std::vector<FileInfo> files;
  if (!parse_records(helped.out, files) || files.size() != 1)
    return Error(Code::kDataLoss, format("cannot look at {}", belljar::quoted(path))).reason("find inside says something else");
  files[0].path = path;
  return std::move(files[0]);
}

Result<std::vector<FileInfo>> ShellFiles::list(const std::string& path) const {
  const std::string full = BELLJAR_TRY(below(instance_->workspace(), path));
  const std::string script =
      "ls -d -- \"$1/.\" >/dev/null || exit 1\n[ -r \"$1\" ] || { echo Permission denied >&2; exit 1; }\n"
      "cd \"$1\" || exit 1\n" +
      walk_script("-mindepth 1 -maxdepth 1");
  const HelperResult helped = BELLJAR_TRY(call(script.c_str(), {full, kRecordText}));
  if (helped.exit_code != 0 && helped.out.empty()) return failed(helped, "list", path);
  std::vector<FileInfo> files;
  if (!parse_records(helped.out, files) || !helped.complete)
    return Error(Code::kDataLoss, format("cannot list {}", belljar::quoted(path))).reason("find inside says something else");
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

// For glob and grep.
Result<std::vector<FileInfo>> ShellFiles::tree(const WalkOptions& options, bool& complete) const {
  BELLJAR_CHECK(check_walk(options));
  std::vector<FileInfo> files;
  const std::string script = "cd \"$1\" || exit 1\n" + walk_script("-mindepth 1");
  const auto helped = instance_->help({"/bin/sh", "-c", script, "sh", instance_->workspace(), kRecordText}, {},
                                      bounded(options.timeout), options.cancel, kMostTree);
  complete = helped && helped->complete;
  if (!helped && helped.error().code() != Code::kDeadlineExceeded && helped.error().code() != Code::kCanceled)
    return helped.error();
  if (!helped) return files;
  if (helped->exit_code != 0 && helped->out.empty()) return complaint_of(helped->err, "search", instance_->workspace());
  complete = parse_records(helped->out, files) && complete;
  std::ranges::sort(files, {}, &FileInfo::path);
  return files;
}

Result<std::string> ShellFiles::read_part(const std::string& full, const std::string& path, std::uint64_t offset,
                                          std::uint64_t limit, bool whole, std::uint64_t& size) const {
  const std::uint64_t largest = whole ? kLargestRead : UINT64_MAX / 4;
  HelperResult helped = BELLJAR_TRY(call(kRead, {full, std::to_string(offset), std::to_string(limit), std::to_string(largest)}));
  const std::size_t line = helped.out.find('\n');
  std::string_view head = helped.out;
  if (helped.exit_code == kTooLarge && take_number(head, size))
    return Error(Code::kOutOfRange, format("cannot read {}", belljar::quoted(path)))
        .reason(format("it has {} bytes, and at most {} are read at once", size, kLargestRead))
        .next("read it in parts, with an offset and a limit");
  if (helped.exit_code != 0) return failed(helped, "read", path);
  if (line == std::string::npos || !take_number(head, size))
    return Error(Code::kDataLoss, format("cannot read {}", belljar::quoted(path))).reason("its size did not come");
  helped.out.erase(0, line + 1);
  return std::move(helped.out);
}

Result<std::string> ShellFiles::read(const std::string& path, const ReadOptions& options) const {
  const std::string full = BELLJAR_TRY(below(instance_->workspace(), path));
  std::uint64_t size = 0;
  // Offsets are numbers of sh.
  const std::uint64_t offset = std::min<std::uint64_t>(options.offset, INT64_MAX / 4);
  if (options.limit) return read_part(full, path, offset, std::min(*options.limit, kLargestRead), false, size);
  if (offset != 0) return read_part(full, path, offset, kLargestRead, true, size);
  std::string bytes = BELLJAR_TRY(read_part(full, path, 0, kFirst, true, size));
  if (bytes.size() < kFirst || size <= kFirst) return bytes;
  if (auto all = instance_->machine().read(full, end_.fd()); all && *all && (*all)->size() >= size) return **std::move(all);
  return bytes + BELLJAR_TRY(read_part(full, path, kFirst, kLargestRead, true, size));
}

// --- what does

Result<void> ShellFiles::write(const std::string& path, std::string_view bytes, const WriteOptions& options) const {
  static std::atomic<unsigned> serial{0};
  BELLJAR_CHECK(check_mode(options.mode));
  const std::string full = BELLJAR_TRY(named_below(instance_->workspace(), path));
  if (path.ends_with('/')) return wrong_kind("write", path, FileType::kDirectory);
  const char* how = options.how == WriteMode::kAppend ? "append" : options.how == WriteMode::kAtomic ? "atomic" : "replace";
  const std::string temporary = format(".belljar-{}{}.tmp", instance_->nonce(), serial++);
  const auto helped =
      call(kWrite, {full, how, mode_word(options.mode), options.parents == Parents::kCreate ? "create" : "exist", temporary},
           std::string(bytes));
  if (!helped && end_.cancelled() && options.how == WriteMode::kAtomic)  // what was ended cleared nothing up
    (void)instance_->machine().run(format("rm -f -- {}", word(parent_of(full) + "/" + temporary)), kClearing, -1);
  if (!helped) return helped.error();
  if (helped->exit_code == 0) return {};
  return failed(*helped, options.how == WriteMode::kAppend ? "append to" : "write", path);
}

Result<void> ShellFiles::make_dir(const std::string& path, const MakeDirOptions& options) const {
  BELLJAR_CHECK(check_mode(options.mode));
  const std::string full = BELLJAR_TRY(below(instance_->workspace(), path));
  const bool alone = options.parents == Parents::kMustExist;
  auto made = change(kMakeDir, {full, mode_word(options.mode), alone ? "exist" : "create"}, "make directory", path);
  if (!made && made.error().code() == Code::kAlreadyExists && !alone)  // a file has the name
    return Error(Code::kFailedPrecondition, made.error().what()).reason(made.error().reason());
  return made;
}

Result<void> ShellFiles::rename(const std::string& from, const std::string& to) const {
  const std::string source = BELLJAR_TRY(named_below(instance_->workspace(), from));
  const std::string target = BELLJAR_TRY(named_below(instance_->workspace(), to));
  return change(kRename, {source, target}, "rename", from);
}

Result<void> ShellFiles::remove(const std::string& path, const RemoveOptions& options) const {
  const std::string full = BELLJAR_TRY(named_below(instance_->workspace(), path));
  return change(kRemove, {full, options.depth == Depth::kTree ? "tree" : "one"}, "remove", path);
}

}  // namespace belljar::remote::shell
