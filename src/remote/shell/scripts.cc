// The shell text that runs beside a command: `watch` starts it and looks after it, `look` says how it goes,
// `put` brings a piece of its stdin. POSIX sh, since the image may have dash, bash or busybox.
//
// They talk by files in the command's directory. A file that is read as a whole appears by mv(1), so nobody
// reads half of it (status, at, i.N). Other files say all by their presence (late, left, closed, broken).
//
// Output goes to a chain of files and not to one: what was read can be removed while the command writes on, so
// the disk holds a bounded amount, and a look can be repeated from any offset whose file is not removed yet.
#include "remote/shell/scripts.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/encoding.h"
#include "belljar/command.h"
#include "remote/marked.h"

namespace belljar::remote::shell {
namespace {

// Looks after one command; `setsid sh ../watch MARK SECONDS GRACE`, in the directory of the command. Its session is its own, so
// that at last it ends all its helpers by `kill 0`; the command has another one.
//
// keep: one stream, into files that are named by the offset of their first byte. At most nine of at most 4 MiB each wait for
// being read, then it stops, and with it, by the pipe, the command. Of what was `left` all is dropped.
// feed: pieces of stdin, i.0, i.1 ..., each once; `at` is the next. It alone holds the pipe's end for writing. While it `feeds`
// a piece the status waits, that what the command read last counts as taken; but not for long: what it left may hold the pipe.
// clock: nobody outside is needed for a timeout. `late` says that it was one.
// An open of a FIFO that has to wait may fail with EINTR: so the other ends are open before.
// drained: the command has ended, what it wrote has been read. A process that it left may hold the pipe: then a reader that sleeps
// found it empty.
// What the shell itself says of a child that a signal ended ("Killed") tells this from an exit with 128 + n.
constexpr char kWatch[] = R"sh(exec 2>say
mark=$1
keep() {
s=$1; shift
at=0
while [ ! -e left ]; do
sh -c 'echo $$ >"$1"; exec dd bs=16384 count=256 2>/dev/null' sh "$s.dd" >"$s.$at"
n=$(wc -c <"$s.$at")
[ "$n" -gt 0 ] || break
set -- "$@" "$at"
at=$((at+n))
[ $# -lt 9 ] && continue
while [ -e "$s.$1" ] && [ ! -e left ]; do : >"$s.full"; sleep 0.05; done
rm -f "$s.full"
shift
done
[ -e left ] && cat >/dev/null
: >"$s.done"
}
feed() {
exec 8<>in 9>in
exec 8<&- 7<>wake
n=0
while :; do
while [ -e "i.$n" ]; do
: >feeds
cat "i.$n" >&9 || { : >broken; rm -f feeds; return; }
echo $((n+1)) >at.new && mv at.new at
rm -f "i.$n" feeds
n=$((n+1))
done
[ -e closed ] && [ ! -e "i.$n" ] && return
read -r x <&7
done
}
clock() {
sleep "$1"
[ -e left ] && return
: >late
sh ../end "$mark" 15
sleep "$2"
sh ../end "$mark" 9
}
drained() {
[ -e "$1.done" ] && return 0
{ read -r p <"$1.dd" && read -r l <"/proc/$p/stat"; } 2>/dev/null || return 1
case ${l##*) } in S*) return 0;; esac
return 1
}
echo $$ >watch
mkfifo o e
exec 5<>o 6<>e
exec 7<o 8<e
keep o <&7 2>/dev/null 5<&- 6<&- 7<&- 8<&- &
keep e <&8 2>/dev/null 5<&- 6<&- 7<&- 8<&- &
exec 7<&- 8<&-
[ -p in ] && feed 2>/dev/null 5<&- 6<&- &
[ "$2" = - ] || clock "$2" "$3" 2>/dev/null 5<&- 6<&- &
BELLJAR_COMMAND=$mark setsid sh ./go </dev/null >o 4>e 5<&- 6<&-
c=$?
exec 5<&- 6<&-
if [ $c = 130 ] || [ $c = 141 ] || { [ $c -gt 128 ] && [ -s say ]; }; then c="$c signal"; fi
[ -e late ] && sh ../end "$mark" 9
t=0
until drained o && drained e || [ -e left ] || [ $t -gt 6000 ]; do
[ $t -gt 1500 ] && [ ! -e o.full ] && [ ! -e e.full ] && break
sleep 0.02; t=$((t+1))
done
t=0
while [ -e feeds ] && [ $t -lt 100 ]; do sleep 0.02; t=$((t+1)); done
echo "$c" >status.new && mv status.new status
[ -e left ] && cd .. && rm -rf "$OLDPWD"
kill 0
)sh";

// Looks at one command: `sh ../look UNTIL MILLISECONDS MOST ENOUGH OBASE OAT OCOUNT EBASE EAT ECOUNT`, in its directory. Waits
// until there are ENOUGH new bytes (UNTIL pid: until its pid is known; end: until its end) or it has ended, and says what there is:
// at most MOST bytes from the offset AT, which the file of offset BASE holds; COUNT 1: only how many. Files before BASE are not
// asked for any more. All of it can be asked again.
//
//   s PID STATUS SIGNALLED LATE FAILED BROKEN
//   o BASE BYTES MORE        and the bytes as base64 in the lines after it; the same for e
//   .
constexpr char kLook[] = R"sh(until=$1 wait=$2 most=$3 enough=$4
ob=$5 oa=$6 oc=$7 eb=$8 ea=$9
shift 9
ec=$1
walk() {
base=$2 at=$3 left=$4 more=0 parts=
while [ -e "$1.$base" ]; do
end=$((base+$(wc -c <"$1.$base")))
n=$((end-at))
[ $n -gt $left ] && n=$left more=1
[ $n -gt 0 ] && parts="$parts $base:$((at-base)):$n" at=$((at+n)) left=$((left-n))
[ $more = 0 ] && [ $end -gt $base ] && [ -e "$1.$end" ] || return
base=$end
done
}
news() {
[ "$2" != "$3" ] || [ -s "$1.$2" ]
}
drop() {
rm -f "$1.full"
for f in "$1".[0-9]*; do [ "${f#*.}" -lt "$2" ] 2>/dev/null && rm -f "$f"; done
}
show() {
echo "$1 $base $((at-$2)) $more"
[ "$3" = 1 ] || for p in $parts; do
b=${p%%:*} p=${p#*:}
tail -c +$((${p%:*}+1)) "$1.$b" | head -c "${p#*:}"
done | base64
}
runs() {
{ read -r l <"/proc/$1/stat"; } 2>/dev/null || return 1
case ${l##*) } in Z*|X*) return 1;; esac
}
[ "$ob" = 0 ] || drop o "$ob"
[ "$eb" = 0 ] || drop e "$eb"
all=1000000000
t=0
while :; do
status='- -' pid=0
[ -e status ] && read -r status <status
[ -e pid ] && read -r pid <pid
[ -n "$pid" ] || pid=0
[ "$status" = '- -' ] || break
[ -e watch ] && read -r w <watch && ! runs "$w" && [ ! -e status ] && { status='lost -'; break; }
case $until in
pid) [ "$pid" = 0 ] || break;;
esac
if [ "$enough" -gt 0 ] && { news o "$ob" "$oa" || news e "$eb" "$ea"; }; then
walk o "$ob" "$oa" $all; new=$((at-oa))
walk e "$eb" "$ea" $all
[ $((new+at-ea)) -ge "$enough" ] && break
fi
[ -e o.full ] || [ -e e.full ] && break
[ $t -ge "$wait" ] && break
if [ $t -lt 60 ]; then sleep 0.01; t=$((t+12))
elif [ $t -lt 1000 ]; then sleep 0.05; t=$((t+55))
else sleep 0.2; t=$((t+205)); fi
done
set -- $status -
late=0; [ -e late ] && late=1
failed=-; [ -e failed ] && read -r failed <failed
echo "s $pid $1 $2 $late $failed"
n=$most; [ "$ec" = 1 ] && n=$all; [ "$ec" = 1 ] || n=$((most/2))
walk e "$eb" "$ea" "$n"
[ "$ec" = 1 ] || most=$((most-(at-ea)))
ebase=$base eend=$at emore=$more eparts=$parts
[ "$oc" = 1 ] && most=$all
walk o "$ob" "$oa" "$most"
show o "$oa" "$oc"
base=$ebase at=$eend more=$emore parts=$eparts
show e "$ea" "$ec"
echo .
)sh";

// `sh ../put N MILLISECONDS` with piece N of stdin on its own, in the directory of a command. Says whether it was taken; asked
// again, nothing is put twice.
constexpr char kPut[] = R"sh(at=0
[ -e at ] && read -r at <at
[ "$at" -gt "$1" ] || [ -e "i.$1" ] || { cat >"new.$$" && mv "new.$$" "i.$1"; }
echo 1<>wake
t=0
while :; do
at=0
[ -e at ] && read -r at <at
[ "$at" -gt "$1" ] && { echo taken; exit; }
[ -e broken ] && { echo broken; exit; }
[ -e status ] && {
[ -e at ] && read -r at <at
[ "$at" -gt "$1" ] && echo taken || echo ended
exit
}
[ $t -ge "$2" ] && { echo waiting; exit; }
if [ $t -lt 60 ]; then sleep 0.01; t=$((t+12)); else sleep 0.05; t=$((t+55)); fi
done
)sh";

bool is_plain(char c) { return (c >= ' ' && c <= '~') || c == '\n'; }

// What every shell exports as it is. Others are set by env(1): names that are no names to sh, and those that a shell keeps to
// itself.
bool is_exported(const std::string& name) {
  static constexpr std::string_view kOwn[] = {"UID",           "EUID",   "PPID",   "SHELLOPTS", "BASHOPTS",
                                              "BASH_VERSINFO", "GROUPS", "RANDOM", "LINENO",    "_",
                                              "SECONDS",       "IFS",    "OPTIND", "DIRSTACK",  "d"};
  if (is_digit(name[0]) || std::ranges::find(kOwn, name) != std::end(kOwn)) return false;
  return std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '_'; });
}

}  // namespace

std::string word(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += "'\\''";
    else quoted += c;
  }
  return quoted + "'";
}

const std::vector<Helper>& helpers() {
  static const std::vector<Helper> all = {{"watch", kWatch}, {"look", kLook}, {"put", kPut}, {"end", kEndMarked}};
  return all;
}

// exec looks a program up in PATH and keeps its name, as execvp(3). It fails in three ways: dash and busybox exit through the trap,
// bash with execfail goes on; `failed` says that what stands in stderr is the shell's, not the command's.
std::string go_script(const Command& command, const std::string& cwd, bool stdin_file, bool piped) {
  std::string script = "[ -z \"$BASH_VERSION\" ] || shopt -s execfail\nd=$PWD\nexec 2>/dev/null\n";
  // Before its pid is known, and with it that it began: what is written to a pipe that nobody has opened would be lost.
  if (stdin_file || piped) script += "exec <in\n";
  // Nothing of what ended before it began begins.
  script += "echo $$ >pid\n[ -e stop ] && kill -9 $$\n";
  script += "cd " + word(cwd) + " || { if [ -d " + word(cwd) + " ]; then echo closed; elif [ -e " + word(cwd) +
            " ]; then echo file; else echo missing; fi >\"$d/failed\"; exit 125; }\n";
  std::string prefix;
  for (const auto& [name, text] : command.env) {
    if (is_exported(name)) script += "export " + name + "=" + word(text) + "\n";
    else prefix += " " + word(name + "=" + text);
  }
  std::string words;
  for (const std::string& argument : command.argv) words += " " + word(argument);
  if (!prefix.empty()) words = " env" + prefix + words;
  else if (command.argv[0].starts_with('-')) words = " --" + words;
  script += "failed() { [ $1 = 126 ] || [ $1 = 127 ] && echo $1 >\"$d/failed\"; }\n";
  script += "trap 'failed $?' EXIT\nexec" + words + " 2>&4 4>&-\nfailed $?\nexit 126\n";
  return script;
}

std::string armoured(std::string script) {
  if (std::ranges::all_of(script, is_plain)) return script;
  return "eval \"$(printf %s " + to_base64(script) + " | base64 -d)\"";
}

}  // namespace belljar::remote::shell
