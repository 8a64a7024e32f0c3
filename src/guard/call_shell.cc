// What a simple command of a shell would do: its kind of act, and the strings that decide to whom or to what.
//
// The first row of kRows that fits the program, its sub-command and a required word gives the kind. Rows go
// from specific to general, and roughly from harmful to harmless, since the first one counts: `git push
// --force` destroys, `git push` sends. A program that no row knows is kRunning, which is judged by whether
// its words were copied from a text.
//
// On top of that come facts that no table of programs has: redirections that write, /dev/tcp as a way out, a
// pipe that carries a secret's content into a program that sends, code in an argument (`python -c`), and
// programs that run what they read. A script is never judged by one command alone, because the pipe decides
// what is sent.
#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "belljar/turn.h"
#include "detect/ascii.h"
#include "guard/call.h"
#include "guard/lexicon.h"
#include "guard/read_only.h"
#include "shell/script.h"
#include "shell/word_list.h"
#include "shell/wrappers.h"

namespace belljar::guard {

using detect::is_digit;
using detect::is_letter;
using shell::has_word;
using shell::is_shell;
using shell::Range;
using shell::Redirect;
using shell::Script;
using shell::SimpleCommand;
using shell::Word;

namespace {

// A program, with the sub-command that makes it so ("" any), and a word that must stand somewhere ("" none).
struct Row {
  CallClass kind;
  std::string_view programs, subs, needs;
};

// The first row that fits counts.
constexpr Row kRows[] = {
    {CallClass::kDestructive, "rm rmdir unlink shred srm wipefs truncate blkdiscard mkswap", "", ""},
    {CallClass::kDestructive, "git", "reset", "--hard"},
    {CallClass::kDestructive, "git", "clean filter-branch filter-repo update-ref prune", ""},
    {CallClass::kDestructive, "git", "push", "--force -f --delete -d --force-with-lease --mirror --prune"},
    {CallClass::kDestructive, "git", "branch tag", "-D -d --delete"},
    {CallClass::kDestructive, "git", "stash", "drop clear"},
    {CallClass::kDestructive, "git", "checkout", "-- ."},
    {CallClass::kDestructive, "git", "restore", ""},
    {CallClass::kDestructive, "git", "worktree submodule remote", "remove rm deinit"},
    {CallClass::kDestructive, "docker podman nerdctl", "rm rmi prune kill stop", ""},
    {CallClass::kDestructive, "docker podman nerdctl", "system volume image container network compose", "prune rm remove down"},
    {CallClass::kDestructive, "docker-compose", "down rm", ""},
    {CallClass::kDestructive, "kubectl oc helm", "delete drain uninstall", ""},
    {CallClass::kDestructive, "terraform tofu pulumi", "destroy", ""},
    {CallClass::kDestructive, "aws gsutil gcloud az s3cmd rclone mc", "",
     "rm rb delete del destroy purge remove terminate-instances delete-objects deletefile"},
    {CallClass::kDestructive, "gh glab", "", "delete archive"},
    {CallClass::kDestructive, "npm cargo gem", "unpublish yank", ""},
    {CallClass::kDestructive, "systemctl service", "", "stop disable mask"},
    {CallClass::kDestructive, "crontab", "", "-r"},
    {CallClass::kDestructive,
     "kill pkill killall dropdb dropuser lvremove vgremove pvremove userdel groupdel fdisk parted sgdisk swapoff", "", ""},
    {CallClass::kDestructive, "redis-cli", "", "FLUSHALL FLUSHDB flushall flushdb DEL del"},
    {CallClass::kDestructive, "find fd", "", "-delete"},
    {CallClass::kDestructive, "rsync", "", "--delete --delete-after --delete-before --delete-excluded --remove-source-files"},
    {CallClass::kDestructive, "git", "rm", ""},
    {CallClass::kDestructive, "tar", "", "--remove-files"},
    {CallClass::kDestructive, "zip", "", "-m --move"},
    {CallClass::kDestructive, "kubectl oc", "scale", "--replicas=0"},
    {CallClass::kDestructive, "gio trash-put trash rmtrash", "", ""},
    {CallClass::kPrivilege,
     "sudo su doas pkexec usermod gpasswd adduser useradd addgroup groupadd visudo setcap passwd chpasswd setfacl ssh-copy-id "
     "setenforce "
     "ufw iptables nft firewall-cmd xhost chattr newgrp sudoedit",
     "", ""},
    {CallClass::kPrivilege, "chown chgrp", "", ""},
    {CallClass::kPrivilege, "kubectl oc", "create", "clusterrolebinding rolebinding clusterrole role token"},
    {CallClass::kPrivilege, "aws", "iam", ""},
    {CallClass::kPrivilege, "aws", "", "put-bucket-policy put-bucket-acl authorize-security-group-ingress add-permission"},
    {CallClass::kPrivilege, "gcloud gsutil", "", "add-iam-policy-binding set-iam-policy iam acl"},
    {CallClass::kPrivilege, "az", "role", ""},
    {CallClass::kPrivilege, "gh", "repo", "--visibility"},
    {CallClass::kPrivilege, "gh glab", "repo", "deploy-key"},
    {CallClass::kDestructive, "gh glab", "api", "DELETE"},
    {CallClass::kPrivilege, "gh", "ssh-key gpg-key secret variable", "add set"},
    {CallClass::kPersistence, "at batch launchctl update-rc.d chkconfig systemd-run loginctl", "", ""},
    {CallClass::kPersistence, "systemctl", "", "enable link edit"},
    {CallClass::kPersistence, "git", "config",
     "core.hooksPath core.sshCommand core.fsmonitor core.pager core.editor include.path alias.* credential.helper "
     "--global --system core.hookspath core.sshcommand"},
    {CallClass::kPersistence, "npm yarn pnpm pip pip3 poetry conda cargo bun", "config", ""},
    {CallClass::kPersistence, "gem", "sources", ""},
    {CallClass::kInstalling, "nix", "run shell develop profile", ""},
    {CallClass::kPersistence, "crontab", "", ""},
    {CallClass::kPersistence, "ln", "", ""},
    {CallClass::kCommitment, "gh glab", "pr mr release sponsors", "merge create"},
    {CallClass::kCommitment, "stripe paypal", "", ""},
    {CallClass::kCommitment, "aws", "ec2 rds", "run-instances create-db-instance purchase-reserved-instances-offering"},
    {CallClass::kCommitment, "gcloud doctl hcloud linode-cli az heroku vultr-cli", "", "create resize addons:create upgrade"},
    {CallClass::kSending, "git", "push", ""},
    {CallClass::kSending, "git", "remote", "add set-url"},
    {CallClass::kSending, "gh glab", "gist issue pr api", "create comment -X -f -F --method"},
    {CallClass::kSending, "npm yarn pnpm cargo twine gem poetry", "publish upload push", ""},
    {CallClass::kSending, "docker podman", "push login", ""},
    {CallClass::kSending, "aws", "s3", "cp sync mv"},
    {CallClass::kSending, "gsutil rclone s3cmd azcopy", "", ""},
    {CallClass::kSending,
     "nc ncat netcat socat telnet ssh scp sftp rsync ftp tftp mail mailx sendmail mutt swaks msmtp croc wormhole ngrok cloudflared "
     "openssl dig nslookup host ping wscat websocat ab",
     "", ""},
    {CallClass::kInstalling, "npm pnpm yarn bun", "install i add", ""},
    {CallClass::kInstalling,
     "pip pip3 pipx gem cargo go brew apt apt-get dnf yum pacman snap flatpak conda mamba poetry apk composer",
     "install add get -S", ""},
    {CallClass::kInstalling, "uv", "pip add tool", ""},
    {CallClass::kInstalling, "npx bunx uvx dlx", "", ""},
    {CallClass::kInstalling, "npm pnpm yarn bun", "create dlx", ""},
    {CallClass::kInstalling, "bundle", "add", ""},
    {CallClass::kInstalling, "composer", "require", ""},
    {CallClass::kInstalling, "gh", "extension", "install"},
    {CallClass::kInstalling, "helm", "install upgrade repo pull", ""},
    {CallClass::kInstalling, "kubectl oc", "apply create", "-f"},
    {CallClass::kInstalling, "add-apt-repository apt-add-repository", "", ""},
    {CallClass::kInstalling, "flatpak", "remote-add", ""},
    {CallClass::kPersistence, "claude codex gemini", "mcp", "add"},
    {CallClass::kSending, "git", "submodule", "add"},
    {CallClass::kInstalling, "docker podman", "pull run", ""},
    {CallClass::kInstalling, "code codium cursor", "", "--install-extension"},
    {CallClass::kSecretReading, "printenv", "", ""},
    {CallClass::kSecretReading, "gpg", "", "--export-secret-keys"},
    {CallClass::kSecretReading, "pass security secret-tool keyring", "", ""},
    {CallClass::kSecretReading, "gh", "auth", "token"},
    {CallClass::kSecretReading, "aws", "configure", "get export-credentials"},
    {CallClass::kSecretReading, "kubectl", "get", "secret secrets"},
    {CallClass::kRunning, "make cmake ninja meson gradle mvn tox pytest jest vitest ctest", "", ""},
};

const Word* operand(const SimpleCommand& command, std::size_t index) noexcept {
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (command.argv[i].text.starts_with('-')) continue;
    if (index-- == 0) return &command.argv[i];
  }
  return nullptr;
}

bool has_any_of(const SimpleCommand& command, std::string_view words) noexcept {
  return std::ranges::any_of(command.argv.begin() + 1, command.argv.end(), [&](const Word& word) {
    if (has_word(words, word.text)) return true;
    return words.find("alias.*") != std::string_view::npos && word.text.starts_with("alias.");
  });
}

// `-rm` for `-r -m`, of programs that take no value behind such a letter.
bool has_joined_option(const SimpleCommand& command, std::string_view words) noexcept {
  return std::ranges::any_of(command.argv.begin() + 1, command.argv.end(), [&](const Word& word) {
    return word.text.size() > 2 && word.text[0] == '-' && word.text[1] != '-' &&
           std::ranges::any_of(word.text.substr(1), [&](char c) { return has_word(words, std::string{'-', c}); });
  });
}

std::optional<CallClass> class_by_table(const SimpleCommand& command) noexcept {
  const std::string_view name = program_name(command);
  const Word* first = operand(command, 0);
  if (name == "git" && first != nullptr && first->text == "push" && std::ranges::any_of(command.argv, [](const Word& word) {
        return word.text.size() > 1 && (word.text[0] == ':' || word.text[0] == '+');
      }))
    return CallClass::kDestructive;  // git push origin :branch
  for (const Row& row : kRows) {
    if (!has_word(row.programs, name)) continue;
    if (!row.subs.empty()) {
      const Word* sub = operand(command, 0);
      const bool option = command.argv.size() > 1 && has_word(row.subs, command.argv[1].text);
      if (!option && (sub == nullptr || !has_word(row.subs, sub->text))) continue;
    }
    const bool joined = has_word("zip crontab", name) && has_joined_option(command, row.needs);
    if (!row.needs.empty() && !joined && !has_any_of(command, row.needs)) continue;
    return row.kind;
  }
  if (name.starts_with("mkfs")) return CallClass::kDestructive;
  return std::nullopt;
}

// What only says with what key or by whom, and is no payload: -i KEY, --cacert FILE.
bool is_identity_option(std::string_view word) noexcept {
  return has_word("-i --key --cert --cacert --identity --user -u --token -o -E -P -p -l", word);
}

// Sub-commands and names that every project has decide nothing, wherever they stand.
bool is_usual_word(std::string_view word) noexcept {
  return has_word(
      "origin upstream head HEAD main master set get add install update upgrade list show apply reload restart start enable create "
      "apt apt-get dnf yum pip npm git systemctl service docker nginx make config registry --",
      word);
}

// The words that decide: everything but the program, options and a sub-command.
std::vector<Atom> atoms_of(const SimpleCommand& command, bool has_sub) {
  std::vector<Atom> atoms;
  bool first = has_sub;
  for (const shell::Assignment& assignment : command.assignments) {  // PIP_INDEX_URL=https://x pip install y
    for (Atom& atom : find_atoms(assignment.value.text)) {
      if (atom.kind == Atom::Kind::kUrl || atom.kind == Atom::Kind::kHost) atoms.push_back(std::move(atom));
    }
  }
  for (std::size_t i = 1; i < command.argv.size() && atoms.size() < kMostAtoms; ++i) {
    const std::string& text = command.argv[i].text;
    const std::size_t equals = text.find('=');
    const bool option = text.starts_with('-');
    if (option && equals == std::string::npos) {
      // -oX, -Tfile: short options that carry their value.
      if (text.size() > 3 && text[1] != '-') {
        auto found = find_atoms(std::string_view(text).substr(2));
        atoms.insert(atoms.end(), found.begin(), found.end());
      }
      continue;
    }
    if (first && !option) {
      first = false;
      continue;
    }
    std::vector<Atom> found = find_atoms(option ? std::string_view(text).substr(equals + 1) : std::string_view(text));
    const std::size_t colon = text.find(':');
    if (program_name(command) == "git" && colon != std::string::npos && text.find('/') == std::string::npos) {  // what:where
      for (std::string part : {text.substr(0, colon), text.substr(colon + 1)}) {
        if (part.starts_with('+')) part.erase(0, 1);
        if (part.size() >= 2) atoms.push_back({Atom::Kind::kName, part});
      }
    }
    if (found.empty() && !option && text.size() >= 2 && !is_usual_word(text)) found.push_back({Atom::Kind::kName, text});
    atoms.insert(atoms.end(), found.begin(), found.end());
  }
  return atoms;
}

bool writes_beyond_null(const Redirect& redirect) noexcept {
  if (redirect.op.find('>') == std::string::npos || redirect.target.text == "/dev/null") return false;
  const bool descriptor = redirect.op == ">&" && redirect.target.text.find_first_not_of("0123456789-") == std::string::npos;
  return !descriptor && redirect.op != ">&-";
}

// Names of secrets that a pattern may mean: `.e*`, `.[e]nv`, `id_*`. One that could mean most files (`*`, `*.json`) means none.
std::vector<std::string> secrets_matching(std::string_view pattern) {
  const std::string_view directory = pattern.substr(0, pattern.rfind('/') + 1);
  const std::string name(pattern.substr(directory.size()));
  const std::size_t fixed = name.find_first_of("*?[");
  const std::size_t letters =
      name.size() - static_cast<std::size_t>(std::ranges::count_if(name, [](char c) { return c == '*' || c == '?' || c == '.'; }));
  std::vector<std::string> found;
  if (fixed == std::string::npos || letters == 0 || (fixed < 3 && !name.starts_with('.'))) return found;
  for (const std::string_view secret : secret_names()) {
    if (::fnmatch(name.c_str(), std::string(secret).c_str(), FNM_PERIOD) == 0)
      found.push_back(std::string(directory) + std::string(secret));
  }
  return found;
}

// Words of the command that name a secret, or a pattern that may: what a program is given to look for is none.
std::vector<std::string> secret_words(const SimpleCommand& command) {
  std::vector<std::string> found;
  const bool finds = has_word("find fd", program_name(command));
  const bool starts = command.starts_more || has_any_of(command, "-exec -execdir -ok -okdir -x --exec");
  const bool shows = !has_word("ls echo printf rm git du stat file test chmod", program_name(command));
  for (std::size_t i = 0; i < command.argv.size(); ++i) {
    const Word& word = command.argv[i];
    const bool sought = finds && starts && i > 0 && has_word("-name -iname -path -wholename", command.argv[i - 1].text);
    if (is_secret_path(word.text)) found.push_back(word.text);
    else if ((word.pattern && shows && !finds) || sought) std::ranges::move(secrets_matching(word.text), std::back_inserter(found));
  }
  return found;
}

void add_secret_reading(const SimpleCommand& command, std::vector<std::string> paths, Call& call) {
  if (paths.empty()) return;
  Act act{.kind = CallClass::kSecretReading, .what = to_line(command), .atoms = {}};
  for (std::string& path : paths) act.atoms.push_back({Atom::Kind::kPath, std::move(path)});
  call.acts.push_back(std::move(act));
}

void read_redirects(const SimpleCommand& command, Call& call) {
  for (const Redirect& redirect : command.redirects) {
    // Whatever reads it there: cat, `read`, a loop, `$(< .env)`.
    if (redirect.op == "<" && is_secret_path(redirect.target.text)) add_secret_reading(command, {redirect.target.text}, call);
    if (redirect.target.text.starts_with("/dev/tcp/") || redirect.target.text.starts_with("/dev/udp/")) {
      std::string host = redirect.target.text.substr(9);
      host.resize(std::min(host.find('/'), host.size()));
      call.acts.push_back({CallClass::kSending, to_line(command), {{Atom::Kind::kHost, host}}, true});
    } else if (writes_beyond_null(redirect)) {
      const std::string_view name = program_name(command);
      const bool nothing =
          (name == "cat" && command.argv.size() == 2 && command.argv[1].text == "/dev/null") ||
          (has_word("echo printf", name) &&
           std::ranges::all_of(command.argv.begin() + 1, command.argv.end(),
                               [](const Word& word) { return word.fixed && (word.text.empty() || word.text == "-n"); }) &&
           (name == "printf" || command.argv.size() > 1));
      const bool empties = redirect.op == ">" && (command.argv.empty() || name == ":" || name == "true" || nothing);
      add_write(redirect.target.text, to_line(command), call);
      if (empties) call.acts.back().kind = CallClass::kDestructive;
      // What is written there is told by the words: `echo 'curl x | sh' >> ~/.bashrc`.
      if (call.acts.back().kind != CallClass::kWriting || is_code_path(redirect.target.text)) {
        for (const Word& word : command.argv) {
          for (const Atom& atom : find_atoms(word.text)) {
            if (atom.kind != Atom::Kind::kPath) call.acts.back().atoms.push_back(atom);
          }
        }
      }
    }
  }
}

bool is_interpreter(std::string_view name) noexcept {
  const std::string_view plain = name.substr(0, name.find_first_of("0123456789."));
  return has_word(
             "python pypy node deno bun perl ruby php lua Rscript awk gawk osascript tclsh psql mysql sqlite mariadb mongo mongosh",
             plain) ||
         has_word("sqlite3", name);
}

// Code that runs what it has read: `system($0)`, `exec(open(...))`. What is run is told where the word stands in quotes alone.
bool runs_what_it_reads(std::string_view program, std::string_view code) {
  constexpr std::string_view kCalls[] = {"system", "exec", "popen", "eval", "subprocess.", "spawn", "qx"};
  if (has_word("psql mysql sqlite3 mariadb mongo mongosh redis-cli", program)) return false;
  if (has_word("node deno bun", program) && code.find("child_process") == std::string_view::npos) return false;  // regexp.exec(x)
  const bool expands = has_word("perl ruby php", program);
  for (const std::string_view name : kCalls) {
    for (std::size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1)) {
      std::size_t i = at + name.size();
      while (i < code.size() && (is_letter(code[i]) || code[i] == '_' || is_digit(code[i]))) ++i;
      while (i < code.size() && (code[i] == ' ' || code[i] == '(' || code[i] == '[')) ++i;
      const bool called = i > at + name.size() && code.find('(', at) < i;
      if (i >= code.size() || (!called && !expands)) continue;
      const char next = code[i];
      const bool literal = i + 1 < code.size() && (code[i + 1] == '\'' || code[i + 1] == '"');  // f"..."
      if (next == '$' || next == '@' || (called && is_letter(next) && !literal)) return true;
      const std::size_t end = std::min(code.find(next, i + 1), code.size());
      if (expands && next == '"' && code.substr(i, end - i).find('$') != std::string_view::npos) return true;
    }
  }
  const bool awk = program.ends_with("awk");
  const std::size_t pipe = awk ? code.find('|') : std::string_view::npos;
  if (pipe != std::string_view::npos) {
    const std::string_view rest = code.substr(pipe + 1);
    const std::string_view into = rest.substr(std::min(rest.find_first_not_of(" \""), rest.size()));
    if (into.starts_with("sh") || into.starts_with("bash") || into.starts_with("getline")) return true;
  }
  const std::size_t tick = expands ? code.find('`') : std::string_view::npos;
  return tick != std::string_view::npos && code.find('$', tick) != std::string_view::npos;
}

// -c CODE, -e CODE, and for databases and awk every word; here-documents.
bool read_interpreted(const SimpleCommand& command, Call& call) {
  const std::string_view name = program_name(command);
  if (!is_interpreter(name)) return false;
  const bool all = has_word("psql mysql sqlite3 mariadb mongo mongosh awk gawk redis-cli", name);
  bool read = false;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& text = command.argv[i].text;
    const std::string& before = command.argv[i - 1].text;
    const bool perl = has_word("perl ruby", name) && before.starts_with('-') && !before.starts_with("--") && before.ends_with('e');
    const bool code = before == "-c" || before == "-e" || before == "-r" || before == "-p" || before == "--eval" || perl;
    if ((code || all) && runs_what_it_reads(name, text))
      call.undecided = "what `" + std::string(name) + "` runs is in what it reads";
    if (!code && !(all && text.find(' ') != std::string::npos)) continue;
    read_code(text, to_line(command), call, text);
    read = true;
  }
  for (const Redirect& redirect : command.redirects) {
    if (!redirect.op.starts_with("<<")) continue;
    read_code(redirect.target.text, to_line(command), call, redirect.target.text);
    read = true;
  }
  return read;
}

// What stands below a host or in the path of an interface names things: repos/x/demo.
void add_components(std::vector<Atom>& atoms) {
  constexpr std::size_t kShortest = 5;
  const std::size_t count = atoms.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view rest = atoms[i].text;
    if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos)
      rest = rest.substr(std::min(rest.find('/', scheme + 3), rest.size()));
    rest = rest.substr(0, rest.find('?'));
    while (!rest.empty() && rest.find('/') != std::string_view::npos) {
      rest.remove_prefix(rest.find('/') + 1);
      const std::string_view part = rest.substr(0, rest.find('/'));
      if (part.size() >= kShortest && part.find('-') != std::string_view::npos && atoms.size() < kMostAtoms)
        atoms.push_back({Atom::Kind::kName, std::string(part)});
    }
  }
}

// curl and its kind: with content or a changing method it sends, else it fetches.
bool read_transfer(const SimpleCommand& command, Call& call) {
  const std::string_view name = program_name(command);
  if (!has_word("curl wget http https xh aria2c fetch lynx w3m", name)) return false;
  Act act{.kind = CallClass::kFetching, .what = to_line(command), .atoms = {}};
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string& text = command.argv[i].text;
    const bool data = text.starts_with("--data") || text.starts_with("--form") || text.starts_with("--upload") ||
                      text.starts_with("--post") || text.starts_with("--json") || text.starts_with("--body") ||
                      (name == "curl" && (text.starts_with("-d") || text.starts_with("-F") || text.starts_with("-T")));
    const bool method = has_word("POST PUT DELETE PATCH", text) || has_word("-XPOST -XPUT -XDELETE -XPATCH", text) ||
                        (text.starts_with("--request=") || text.starts_with("--method="));
    if (data || method) act.kind = act.kind == CallClass::kDestructive ? act.kind : CallClass::kSending, act.payload = true;
    if (has_word("DELETE -XDELETE --request=DELETE", text)) act.kind = CallClass::kDestructive;
    if (!command.argv[i].fixed && command.argv[i].expands) act.payload = true;  // curl "https://x/?$(...)"
    for (Atom& atom : find_atoms(text)) {
      if (atom.kind == Atom::Kind::kUrl || atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kAddress)
        act.atoms.push_back(atom);
    }
  }
  if (!command.upstream.empty()) act.payload = true;
  if (act.kind == CallClass::kSending || act.kind == CallClass::kDestructive) add_components(act.atoms);
  call.acts.push_back(std::move(act));
  return true;
}

bool touches_content(const SimpleCommand& command) noexcept {
  return !command.upstream.empty() ||
         std::ranges::any_of(command.redirects, [](const Redirect& redirect) { return redirect.op == "<"; });
}

// Programs that put the content of files elsewhere, as it is or in another form.
constexpr std::string_view kMovers = "cp mv install ln rsync";
constexpr std::string_view kPackers = "dd tar bsdtar zip 7z 7za gzip bzip2 xz zstd openssl gpg split tee";
// These only where their output is redirected: else they show it, which is an act of its own, or edit it where it is (`sed -i`).
constexpr std::string_view kReaders =
    "cat tac rev head tail sed grep cut sort strings iconv tr jq yq paste nl fold fmt expand base64 base32 basenc xxd od hexdump";

std::string_view path_in(std::string_view word) noexcept {
  const bool names = word.starts_with("if=") || word.starts_with("--file=");
  return names ? word.substr(word.find('=') + 1) : word;
}

// A secret's content goes into another file: what was known of that name is not known of the new one. Its own act, since the other
// looks at where it is written alone.
void read_secret_copy(const SimpleCommand& command, Call& call) {
  const std::string_view name = program_name(command);
  const bool moves = has_word(kMovers, name), reads = has_word(kReaders, name);
  const bool keeps = name == "git" && command.argv.size() > 2 && has_word("add stage", command.argv[1].text);
  if (!moves && !reads && !keeps && !has_word(kPackers, name)) return;
  std::vector<std::string_view> operands, sources;
  std::string_view into;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    const std::string_view text = command.argv[i].text, before = command.argv[i - 1].text;
    if (text.starts_with("of=")) into = text.substr(3);
    if (text.starts_with("--target-directory=")) into = text.substr(text.find('=') + 1);
    if (text.starts_with('-') && text != "-") continue;
    if (moves && before == "-t") into = text;
    else operands.push_back(path_in(text));
  }
  if (moves && into.empty() && operands.size() > 1) {
    into = operands.back();
    operands.pop_back();
  }
  for (const Redirect& redirect : command.redirects) {
    if (redirect.op == "<") operands.emplace_back(redirect.target.text);
    else if (writes_beyond_null(redirect)) into = redirect.target.text;
  }
  if (reads && into.empty()) return;
  if (name == "dd" && has_word("/dev/null", operands.empty() ? std::string_view() : operands[0]) && !into.empty())
    call.acts.push_back(
        {.kind = CallClass::kDestructive, .what = to_line(command), .atoms = {{Atom::Kind::kPath, std::string(into)}}});
  Act act{.kind = CallClass::kSecretReading, .what = to_line(command), .atoms = {}};
  for (const std::string_view operand : operands) {
    if (is_secret_path(operand)) act.atoms.push_back({Atom::Kind::kPath, std::string(operand)});
  }
  if (act.atoms.empty()) return;
  if (!into.empty()) call.copies.emplace_back(into);
  act.copies_secret = !into.empty() || keeps;
  call.acts.push_back(std::move(act));
}

// The place of the system's that passing things are put below.
std::string_view top_of(std::string_view path) noexcept {
  for (const std::string_view place : {"/dev/null", "/dev/shm", "/var/tmp", "/tmp"}) {
    if (path.starts_with(place) && (path.size() == place.size() || path[place.size()] == '/')) return place;
  }
  return {};
}

// cp, mv, tee, install, ln, sed -i: where they write.
bool read_copy(const SimpleCommand& command, Call& call) {
  const std::string_view name = program_name(command);
  if (name == "tee") {
    for (std::size_t i = 1; i < command.argv.size(); ++i) {
      if (!command.argv[i].text.starts_with('-')) add_write(command.argv[i].text, to_line(command), call);
    }
    return true;
  }
  const bool edits = name == "sed" && has_any_of(command, "-i --in-place -i.bak");
  if (!has_word("cp mv install ln", name) && !edits) return false;
  const Word* last = nullptr;
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (!command.argv[i].text.starts_with('-')) last = &command.argv[i];
  }
  if (last == nullptr) return true;
  add_write(last->text, to_line(command), call);
  Act& act = call.acts.back();
  const Word* front = operand(command, 0);
  const bool away = name == "mv" && has_word("/dev/null /tmp /var/tmp /dev/shm", top_of(last->text));
  const bool nothing = !edits && front != nullptr && front->text == "/dev/null" && front != last;
  const bool all = edits && front != nullptr && has_word("d 1,$d", front->text);
  if (away || nothing || all) act.kind = CallClass::kDestructive, act.atoms = atoms_of(command, false);
  if (act.kind != CallClass::kWriting) {
    act.atoms = atoms_of(command, false);
  }
  return true;
}

bool raises_mode(const SimpleCommand& command) noexcept {
  const Word* mode = operand(command, 0);
  if (program_name(command) != "chmod" || mode == nullptr) return false;
  const std::string& text = mode->text;
  const bool octal = text.find_first_not_of("01234567") == std::string::npos;
  if (octal) return text.size() >= 4 ? text[text.size() - 4] != '0' : !text.empty() && ((text.back() - '0') & 2) != 0;
  const std::size_t sign = text.find_first_of("+=");
  const bool others = sign == 0 || (sign != std::string::npos && text.substr(0, sign).find_first_of("ao") != std::string::npos);
  if (others && text.find('w', sign) != std::string::npos) return true;
  return text.find('s') != std::string::npos || text.find("a+w") != std::string::npos || text.find("o+w") != std::string::npos ||
         text.find("o=") != std::string::npos || text.find("a=") != std::string::npos;
}

// `at`, `crontab -`: what comes through the pipe decides.
void add_upstream(const Script& script, const SimpleCommand& command, Act& act) {
  for (const Range& range : command.upstream) {
    for (std::size_t i = range.first; i < std::min(range.last, script.commands.size()); ++i) {
      for (const Word& word : script.commands[i].argv) {
        const auto atoms = find_atoms(word.text);
        act.atoms.insert(act.atoms.end(), atoms.begin(), atoms.end());
      }
    }
  }
}

bool reads_secret(const SimpleCommand& command) { return !secret_words(command).empty(); }

void note_secrets(const SimpleCommand& command, Call& call) {
  for (std::size_t i = 1; i < command.argv.size(); ++i) {
    if (is_identity_option(command.argv[i - 1].text)) continue;
    std::string_view text = command.argv[i].text;
    text.remove_prefix(std::min(text.find_last_of("=@") + 1, text.size()));
    if (is_secret_path(text)) call.secrets.emplace_back(text);
  }
  for (const Word& word : command.argv) {  // identity files are no patterns
    if (word.pattern) std::ranges::move(secrets_matching(word.text), std::back_inserter(call.secrets));
  }
  for (const Redirect& redirect : command.redirects) {
    if (redirect.op == "<" && is_secret_path(redirect.target.text)) call.secrets.push_back(redirect.target.text);
  }
  const std::string_view name = program_name(command);
  if (name == "printenv" || (name == "env" && command.argv.size() == 1)) call.secrets.emplace_back(name);
}

// A program of nobody's table: its name and first word may still say what it does ("./bank transfer").
CallClass class_by_words(const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  CallClass kind = name.empty() || is_shell(name) ? CallClass::kRunning : class_of_tool(name.substr(0, name.find('.')));
  for (std::size_t index = 0; index < 3; ++index) {  // fly apps destroy x
    const Word* sub = operand(command, index);
    if (sub != nullptr && name != "git" && sub->text.find_first_of("/. ") == std::string::npos) {
      const CallClass by_sub = class_of_tool(sub->text);
      if (index > 0 && by_sub != CallClass::kDestructive) continue;
      if (by_sub == CallClass::kCommitment || by_sub == CallClass::kDestructive || by_sub == CallClass::kPrivilege ||
          by_sub == CallClass::kSending)
        return by_sub;
    }
    if (index == 0 && is_shell(name)) break;
  }
  return kind == CallClass::kReading || kind == CallClass::kWriting ? CallClass::kRunning : kind;
}

}  // namespace

void read_command(const Script& script, const SimpleCommand& command, Call& call) {
  if (command.argv.size() > 3 && is_interpreter(program_name(command)) && command.argv[1].text == "-m" &&
      has_word("pip pipx uv poetry conda", command.argv[2].text)) {  // python3 -m pip install x
    SimpleCommand inner = command;
    inner.argv.erase(inner.argv.begin(), inner.argv.begin() + 2);
    return read_command(script, inner, call);
  }
  read_redirects(command, call);
  note_secrets(command, call);
  if (command.argv.empty()) return;
  read_secret_copy(command, call);
  if (has_word("awk gawk mawk nawk perl ruby find fd", program_name(command)))
    add_secret_reading(command, secret_words(command), call);
  if (read_transfer(command, call) || read_interpreted(command, call)) return;
  const std::string line = to_line(command);
  if (raises_mode(command)) return call.acts.push_back({CallClass::kPrivilege, line, atoms_of(command, true)});
  const std::string_view name = program_name(command);
  const bool lists = (name == "crontab" && has_any_of(command, "-l")) || (name == "ln" && !reads_secret(command));
  if (name == "crontab" && lists) return call.acts.push_back({CallClass::kReading, line, {}});
  // The command behind it is an act of its own; by itself it gives nobody a right that lasts.
  const bool opened = std::ranges::any_of(script.commands, [](const SimpleCommand& other) {
    return std::ranges::any_of(other.inside, [](const std::string& outer) { return has_word("sudo doas", outer); });
  });
  if (has_word("sudo doas", name) && opened) return call.acts.push_back({CallClass::kRunning, line, {}});
  auto kind = class_by_table(command);
  // deno run https://x/y.ts, go run host/x@latest: fetched and run at once.
  const bool far = std::ranges::any_of(command.argv, [](const Word& word) {
    return word.text.find("://") != std::string::npos ||
           (word.text.find('/') != std::string::npos && word.text.find('@') != std::string::npos);
  });
  if (!kind && far && has_word("deno bun go pipx", name) && has_any_of(command, "run")) kind = CallClass::kInstalling;
  if (kind && !lists) {
    const bool has_sub = has_word(
        "git docker podman kubectl npm pnpm yarn bun pip pip3 pipx cargo gem gh aws apt apt-get brew go uv terraform helm "
        "systemctl "
        "conda mamba poetry composer bundle dnf yum snap flatpak apk "
        "gcloud az",
        name);
    Act act{*kind, line, atoms_of(command, has_sub)};
    act.payload = *kind == CallClass::kSending && (touches_content(command) || has_word("scp rsync sftp aws gsutil rclone", name));
    if (has_word("gh glab", name)) add_components(act.atoms);
    if (*kind == CallClass::kPersistence) add_upstream(script, command, act);
    call.acts.push_back(std::move(act));
    return;
  }
  if (read_copy(command, call)) return;
  if (!command.starts_more && !why_not_read_only(command)) {
    std::vector<std::string> secrets = secret_words(command);
    Act act{secrets.empty() ? CallClass::kReading : CallClass::kSecretReading, line, atoms_of(command, false)};
    for (std::string& path : secrets) {
      Atom atom{Atom::Kind::kPath, std::move(path)};
      if (std::ranges::find(act.atoms, atom) == act.atoms.end()) act.atoms.push_back(std::move(atom));
    }
    return call.acts.push_back(std::move(act));
  }
  if (command.starts_more) return;
  CallClass by_words = class_by_words(command);
  if (by_words == CallClass::kCommitment && operand(command, 0) != nullptr &&
      has_word("upgrade merge sign", operand(command, 0)->text))
    by_words = CallClass::kRunning;  // alembic upgrade head
  Act act{by_words, line, atoms_of(command, by_words != CallClass::kRunning)};
  if (by_words == CallClass::kRunning)  // `run`, `svc`: too short to be anybody's
    std::erase_if(act.atoms, [](const Atom& atom) { return atom.kind == Atom::Kind::kName && atom.text.size() < 4; });
  if (command.argv[0].text.find('/') != std::string::npos) act.atoms.push_back({Atom::Kind::kPath, command.argv[0].text});
  call.acts.push_back(std::move(act));
}

}  // namespace belljar::guard
