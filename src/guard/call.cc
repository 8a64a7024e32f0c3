// A tool's arguments as acts. The shell's commands are in call_shell.cc, other languages in read_code()
// below.
//
// Tools are not known beforehand: any MCP server brings its own. So the kind of an act is read from the
// tool's name (lexicon.cc) and from the names of its arguments: `command`, `code`, `path`, `to`, `amount`.
// JSON is flattened to pairs of the innermost key and a string, since nesting differs from tool to tool.
//
// Strings under keys of running text (`body`, `content`, `message`) do not decide where an act goes, and are
// left out of the strings that are traced; what decides is a receiver, a path, a host, an amount. The
// exception is text that is written into a file which is run or served later: hosts and addresses in it
// decide what that file will do.
//
// Code in other languages is not parsed. Names of calls that delete, send or start something are looked for,
// and the strings between quotes are the candidates for targets. That finds what is written plainly and is no
// more than that.
#include "guard/call.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/paths.h"
#include "belljar/turn.h"
#include "guard/changes.h"
#include "guard/lexicon.h"
#include "policy/document.h"
#include "shell/script.h"
#include "shell/word_list.h"

namespace belljar::guard {

using shell::lower;
using shell::Script;
using shell::ShellReader;
using shell::SimpleCommand;
using shell::Word;

namespace {

using policy::Node;

// A string of the arguments with the keys that lead to it.
struct CallField {
  std::string key;  // the innermost, in lower case, letters only
  std::string text;
  bool number = false;
  bool flag = false;
};

std::string plain_key(std::string_view key) {
  std::string result;
  for (const char c : key) {
    if (c >= 'A' && c <= 'Z') result += static_cast<char>(c + 32);
    else if (c >= 'a' && c <= 'z') result += c;
  }
  return result;
}

std::string number_text(double number) {
  std::string text = format("{:.4f}", number);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

void flatten(const Node& node, const std::string& key, std::vector<CallField>& fields) {
  switch (node.kind) {
    case Node::Kind::kText:
      return fields.push_back({key, node.text, false});
    case Node::Kind::kInteger:
      return fields.push_back({key, format("{}", node.integer), true});
    case Node::Kind::kFloat:
      return fields.push_back({key, number_text(node.number), true});
    case Node::Kind::kList:
      for (const Node& item : node.items) flatten(item, key, fields);
      return;
    case Node::Kind::kTable:
      for (const policy::Member& member : node.members) flatten(member.value, plain_key(member.key), fields);
      return;
    case Node::Kind::kBool:
      return fields.push_back({.key = key, .text = node.flag ? "true" : "false", .flag = true});
    default:
      return;
  }
}

bool is_one_of(std::string_view words, std::string_view word) noexcept {
  return words.find(" " + std::string(word) + " ") != std::string_view::npos;
}

bool is_command_key(std::string_view key) noexcept { return is_one_of(" command cmd script shell commandline bash ", key); }
bool is_code_key(std::string_view key) noexcept {
  return is_one_of(" code source python javascript program query sql statement ", key);
}
bool is_path_key(std::string_view key) noexcept {
  return key.find("path") != std::string_view::npos || key.find("file") != std::string_view::npos ||
         is_one_of(" dir directory folder target source src dst dest from to ", key);
}
// Running text: what stands in it does not decide where the call goes.
bool is_body_key(std::string_view key) noexcept {
  return is_one_of(
      " content contents body text message subject description title newstr oldstr newstring oldstring replacement patch diff "
      "filetext oldtext newtext newsource newcontent oldcontent inserttext codeedit "
      "note comment reason summary html markdown prompt memo purpose caption old new ",
      key);
}
bool carries_content(std::string_view key) noexcept {
  return is_one_of(" body data payload content attachment attachments file files message text json form upload ", key);
}
bool is_method_key(std::string_view key) noexcept { return key == "method" || key == "verb"; }

// What decides where an act goes: every string that is no running text.
std::vector<Atom> deciding(const std::vector<CallField>& fields) {
  std::vector<Atom> atoms;
  for (const CallField& field : fields) {
    if (is_body_key(field.key) || is_method_key(field.key) || field.flag || field.text.size() < 2) continue;
    if (field.text.size() > 512) continue;
    std::vector<Atom> found = find_atoms(field.text);
    const bool money = is_one_of(
        " amount sum total price value quantity monthly yearly cost fee eur usd gbp chf btc eth budget dailybudget ", field.key);
    if (field.number) {
      if (money || field.text.size() >= 4) atoms.push_back({Atom::Kind::kAmount, field.text});
    } else if (found.empty() || (found.size() == 1 && found[0].kind == Atom::Kind::kAmount)) {
      atoms.push_back({money ? Atom::Kind::kAmount : is_path_key(field.key) ? Atom::Kind::kPath : Atom::Kind::kName, field.text});
    } else {
      atoms.insert(atoms.end(), found.begin(), found.end());
    }
  }
  return atoms;
}

std::string one_line(const ProposedCall& proposed) {
  constexpr std::size_t kLongest = 160;
  std::string line = proposed.tool + " " + proposed.arguments.substr(0, kLongest);
  if (proposed.arguments.size() > kLongest) line += "...";
  return line;
}

// What a written text would do where it is run or served later: hosts and addresses in it.
void read_written(const std::vector<CallField>& fields, std::string_view path, Call& call, Act& act) {
  const bool runs = is_code_path(path) || is_persistent_path(path);
  for (const CallField& field : fields) {
    if (!runs || !is_body_key(field.key) || field.key.starts_with("old")) continue;
    for (const Atom& atom : find_atoms(std::string_view(field.text).substr(0, 64U << 10))) {
      const bool outside = atom.kind == Atom::Kind::kUrl || atom.kind == Atom::Kind::kHost || atom.kind == Atom::Kind::kAddress;
      if (outside && act.atoms.size() < kMostAtoms) act.atoms.push_back(atom);
    }
    if (field.text.find("\"postinstall\"") != std::string::npos || field.text.find("\"preinstall\"") != std::string::npos ||
        field.text.find("\"prepare\"") != std::string::npos)
      act.kind = CallClass::kPersistence;
  }
  (void)call;
}

CallClass class_of_write(std::string_view path) {
  if (is_privilege_path(path)) return CallClass::kPrivilege;
  if (is_persistent_path(path)) return CallClass::kPersistence;
  return CallClass::kWriting;
}

std::string path_of(const std::vector<CallField>& fields) {
  for (const CallField& field : fields) {
    const bool either = is_one_of(" to from target source src dst dest ", field.key);  // of a file, or of money and messages
    const bool path = !either || field.text.find_first_of("/.") != std::string::npos;
    const bool account = either && std::ranges::any_of(find_atoms(field.text), is_account);
    if (is_path_key(field.key) && !is_body_key(field.key) && path && !account) return field.text;
  }
  return {};
}

// copy_file, moveFile: a secret under another name.
void read_moved(std::string_view tool, const std::vector<CallField>& fields, Act& act, Call& call) {
  const std::string name = lower(tool);
  if (name.find("copy") == std::string::npos && name.find("move") == std::string::npos && name.find("rename") == std::string::npos)
    return;
  const auto is_goal = [](const CallField& field) {
    return is_one_of(" to target dst dest ", field.key) || field.key.find("dest") != std::string::npos ||
           field.key.starts_with("new");
  };
  const bool secret = std::ranges::any_of(
      fields, [&](const CallField& field) { return is_path_key(field.key) && !is_goal(field) && is_secret_path(field.text); });
  if (!secret) return;
  act.kind = CallClass::kSecretReading;
  for (const CallField& field : fields) {
    if (is_goal(field)) call.copies.push_back(field.text);
  }
}

// http_request, fetch: a method that changes, or content, makes it sending.
bool sends(const std::vector<CallField>& fields) {
  return std::ranges::any_of(fields, [](const CallField& field) {
    if (is_method_key(field.key)) return field.text != "GET" && field.text != "HEAD" && field.text != "get";
    return carries_content(field.key) && !field.text.empty();
  });
}

bool changes_a_database(std::string_view text) {
  constexpr std::string_view kStarts[] = {"drop ", "delete ", "truncate ", "grant ", "alter "};
  std::string lower(text.substr(0, 4096));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return lower.find(start) != std::string::npos; });
}

// A tool that no verb tells, by what it is given: an account or a price, a right for somebody, a receiver.
CallClass class_by_shape(const std::vector<CallField>& fields) {
  bool money = false, person = false, right = false, receiver = false;
  for (const CallField& field : fields) {
    if (is_body_key(field.key)) continue;
    const std::vector<Atom> found = find_atoms(field.text);
    const bool address = std::ranges::any_of(found, [](const Atom& atom) { return atom.kind == Atom::Kind::kAddress; });
    const bool account =
        std::ranges::any_of(found, [&](const Atom& atom) { return is_account(atom) && !address && !field.number; });
    money =
        money || account ||
        is_one_of(
            " amount price eur usd gbp chf btc eth sats iban acct account beneficiary payee currency budget dailybudget "
            "monthly yearly cost seats creditcard card payment charge plan tier fee invoice acceptterms paymentmethod coins qty ",
            field.key);
    person = person || address || is_one_of(" user login principal subject grantee delegate member members who ", field.key);
    right = right || is_one_of(
                         " role roles permission permissions level scope scopes access acl grant rights visibility private "
                         "public share link policy policyarn ",
                         field.key);
    receiver = receiver || is_one_of(" to cc bcc recipient recipients attendees invitee invitees channel receiver ", field.key);
  }
  if (money) return CallClass::kCommitment;
  if (right) return CallClass::kPrivilege;
  if (receiver && person) return CallClass::kSending;
  return CallClass::kRunning;
}

// `{"op": "remove"}`: the verb of a tool whose name is its subject.
CallClass class_by_operation(const std::vector<CallField>& fields) {
  for (const CallField& field : fields) {
    if (is_one_of(" op operation action do mode kind type ", field.key)) {
      if (const CallClass kind = class_of_tool(field.text); kind != CallClass::kRunning) return kind;
    }
  }
  return CallClass::kRunning;
}

// What a writing tool changes, file by file; without a path the settings that it is given.
std::vector<Change> changes_of(const std::vector<CallField>& fields, const std::string& path) {
  std::vector<Change> changes{{.path = path, .added = {}, .removed = {}}};
  for (const CallField& field : fields) {
    if (is_one_of(" patch diff ", field.key)) {
      add_diff(field.text, path, changes);
    } else if (!is_body_key(field.key)) {
      if (path.empty()) changes[0].added += field.key + "=" + field.text + "\n";
    } else {
      (field.key.starts_with("old") ? changes[0].removed : changes[0].added) += field.text + "\n";
    }
  }
  return changes;
}

void note_changes(const std::vector<Change>& changes, Act& act) {
  for (const Change& change : changes) {
    for (Atom& atom : brought_by(change)) {
      if (act.brings.size() < kMostAtoms && std::ranges::find(act.brings, atom) == act.brings.end())
        act.brings.push_back(std::move(atom));
    }
    act.weakens = act.weakens || lowers_protection(change);
    act.replaces = act.replaces || replaces_like(change);
  }
}

// Files that a patch takes away.
std::vector<Atom> deleted_by(std::string_view patch) {
  std::vector<Atom> paths;
  std::string_view before;
  while (!patch.empty()) {
    const std::string_view line = patch.substr(0, patch.find('\n'));
    patch.remove_prefix(std::min(line.size() + 1, patch.size()));
    if (line.starts_with("--- ")) before = line.substr(line.starts_with("--- a/") ? 6 : 4);
    if (line.starts_with("*** Delete File: ")) paths.push_back({Atom::Kind::kPath, std::string(line.substr(17))});
    if (line.starts_with("+++ /dev/null") && !before.empty()) paths.push_back({Atom::Kind::kPath, std::string(before)});
  }
  return paths;
}

// A file that held something is left with nothing in it; some files are made to be empty.
bool empties(const std::vector<CallField>& fields, std::string_view path) {
  if (path.empty() || is_one_of(" __init__.py .gitkeep .keep .nojekyll py.typed ", file_name(path))) return false;
  return std::ranges::any_of(fields, [](const CallField& field) {
    return is_one_of(" content contents filetext ", field.key) && field.text.find_first_not_of(" \n") == std::string::npos;
  });
}

// A writing tool: of a file, or of a setting elsewhere.
void read_change(const std::vector<CallField>& fields, const std::string& path, Act& act, Call& call) {
  for (const CallField& field : fields) {
    if (!is_one_of(" patch diff ", field.key)) continue;
    if (std::vector<Atom> gone = deleted_by(field.text); !gone.empty())
      call.acts.push_back({.kind = CallClass::kDestructive, .what = act.what, .atoms = std::move(gone)});
  }
  if (empties(fields, path)) act.kind = CallClass::kDestructive;
  const std::vector<Change> changes = changes_of(fields, path);
  note_changes(changes, act);
  for (const Change& change : changes) {  // of a patch
    if (act.kind == CallClass::kWriting && !change.path.empty()) {
      if (is_privilege_path(change.path)) act.kind = CallClass::kPrivilege;
      else if (is_persistent_path(change.path)) act.kind = CallClass::kPersistence;
    }
    if (change.path != path) act.atoms.push_back({Atom::Kind::kPath, change.path});
  }
  act.outward = changes.size() == 1 && path.empty();
  act.whole =
      std::ranges::any_of(fields, [](const CallField& field) { return is_one_of(" content contents filetext ", field.key); });
  act.tells = act.kind == CallClass::kWriting && is_prose(path) &&
              std::ranges::none_of(fields, [](const CallField& field) { return field.key.starts_with("old"); });
  // Where it lasts or gives rights, each string that is brought in decides.
  if (act.kind != CallClass::kWriting && act.kind != CallClass::kDestructive)
    act.atoms.insert(act.atoms.end(), act.brings.begin(), act.brings.end());
}

// deleteFile -> "delete file"; the words that it may share with texts.
std::string said_by(const ProposedCall& proposed, const std::vector<CallField>& fields) {
  constexpr std::size_t kMost = 8U << 10;
  std::string said;
  for (const char c : proposed.tool) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !said.empty() && said.back() >= 'a' && said.back() <= 'z') said += ' ';
    said += c;
  }
  for (const CallField& field : fields) {
    if (field.key.starts_with("old") || is_one_of(" patch diff ", field.key)) continue;
    said += "\n" + field.key + " " + field.text.substr(0, kMost);
  }
  for (const CallField& field : fields) {  // of a patch what it adds
    if (!is_one_of(" patch diff ", field.key)) continue;
    std::vector<Change> changes;
    add_diff(field.text, "", changes);
    for (const Change& change : changes) said += "\n" + change.path + " " + change.added;
  }
  said.resize(std::min(said.size(), kMost));
  return said;
}

void read_tool(const ProposedCall& proposed, const std::vector<CallField>& fields, Call& call) {
  Act act{.kind = class_of_tool(proposed.tool), .what = one_line(proposed), .atoms = deciding(fields)};
  act.said = said_by(proposed, fields);
  const std::string path = path_of(fields);
  const bool runs_code = std::ranges::any_of(fields, [](const CallField& field) { return is_code_key(field.key); });
  if (act.kind == CallClass::kRunning) act.kind = class_by_operation(fields);
  const bool unknown = act.kind == CallClass::kRunning && !runs_code;
  const bool draft = lower(proposed.tool).find("draft") != std::string::npos;
  if (!draft && (unknown || (act.kind == CallClass::kWriting && path.empty()))) {
    if (const CallClass kind = class_by_shape(fields); kind != CallClass::kRunning) act.kind = kind;
  }
  if (unknown) {
    act.outward = true;
    note_changes(changes_of(fields, ""), act);
  }
  for (const CallField& field : fields) {
    if (is_code_key(field.key) && act.kind != CallClass::kRunning && changes_a_database(field.text))
      read_code(field.text, act.what, call, field.text);
  }
  switch (act.kind) {
    case CallClass::kRunning: {
      for (const CallField& field : fields) {
        if (is_code_key(field.key)) read_code(field.text, act.what, call, field.text);
      }
      break;
    }
    case CallClass::kFetching:
      if (sends(fields)) act.kind = CallClass::kSending, act.payload = true;
      break;
    case CallClass::kSending:
      act.payload = true;
      note_changes(changes_of(fields, ""), act);
      break;
    case CallClass::kWriting:
      act.kind = class_of_write(path);
      read_moved(proposed.tool, fields, act, call);
      for (const CallField& field : fields) {
        if (is_body_key(field.key) && !field.key.starts_with("old")) note_written(path, field.key, field.text, call);
      }
      read_written(fields, path, call, act);
      read_change(fields, path, act, call);
      break;
    case CallClass::kReading:
      for (const CallField& field : fields) {
        if (!is_body_key(field.key) && is_secret_path(field.text)) act.kind = CallClass::kSecretReading;
      }
      break;
    default:
      break;
  }
  call.acts.push_back(std::move(act));
}

void note_secrets(Call& call) {
  for (const std::string& text : call.texts) {
    for (const Atom& atom : find_atoms(std::string_view(text).substr(0, 64U << 10))) {
      if (atom.kind == Atom::Kind::kPath && is_secret_path(atom.text) && call.secrets.size() < 64)
        call.secrets.push_back(atom.text);
    }
  }
}

}  // namespace

namespace {

bool fetches(const SimpleCommand& command) { return is_one_of(" curl wget http https xh aria2c fetch ", program_name(command)); }

// An interpreter gets what a command before it fetched: through a pipe, `<(curl ...)`, or a file that it was put into.
bool runs_download(const Script& script, const SimpleCommand& command) {
  const std::string_view name = program_name(command);
  const bool interprets = runs_files(name);
  const auto holds_fetch = [&](const shell::Range& range) {
    for (std::size_t i = range.first; i < std::min(range.last, script.commands.size()); ++i) {
      if (fetches(script.commands[i])) return true;
    }
    return false;
  };
  if (interprets && std::ranges::any_of(command.upstream, holds_fetch)) return true;
  std::vector<std::string> words;
  for (const Word& word : command.argv) {
    if (interprets && holds_fetch(word.from)) return true;
    words.push_back(word.text);
  }
  const RunFiles run = files_run({.kind = CallClass::kRunning, .what = {}, .atoms = {}, .words = std::move(words)});
  for (const SimpleCommand& other : script.commands) {
    if (&other == &command) return false;
    if (!fetches(other)) continue;
    for (const Word& word : other.argv) {
      if (!word.text.starts_with('-') && word.text.find("://") == std::string::npos && is_run_by(run, word.text)) return true;
    }
    for (const shell::Redirect& redirect : other.redirects) {
      if (redirect.op.starts_with('>') && is_run_by(run, redirect.target.text)) return true;
    }
  }
  return false;
}

}  // namespace

void read_script(const std::string& text, ShellReader& reader, Call& call, std::string_view input) {
  const Script script = reader.read(text, input);
  if (!script.unread.empty()) call.unread = script.unread[0].reason;
  const std::vector<Atom> given = find_atoms(input.substr(0, 64U << 10));
  const std::size_t first = call.acts.size();
  std::vector<std::string> inputs;
  for (const SimpleCommand& command : script.commands) {
    const std::size_t before = call.acts.size();
    if (command.inside.empty()) inputs.clear();  // what a wrapper reads is there for what it starts
    for (const shell::Redirect& redirect : command.redirects) {
      if (redirect.op == "<") inputs.push_back(redirect.target.text);
    }
    read_command(script, command, call);
    note_shown(command, call);
    note_written(script, command, call);
    note_change(script, command, before, call);
    for (std::size_t i = before; i < call.acts.size(); ++i) {
      for (const Word& word : command.argv) call.acts[i].words.push_back(word.text);
      call.acts[i].directory = command.directory;
      call.acts[i].inputs = inputs;
    }
    if (runs_download(script, command)) {
      for (std::size_t i = first; i < call.acts.size(); ++i) {
        if (call.acts[i].kind == CallClass::kFetching) call.acts[i].kind = CallClass::kInstalling;
      }
    }
    // Its words are what stands there.
    if (std::ranges::find(command.inside, "xargs") == command.inside.end()) continue;
    for (std::size_t i = before; i < call.acts.size(); ++i)
      call.acts[i].atoms.insert(call.acts[i].atoms.end(), given.begin(), given.end());
  }
}

void add_write(std::string_view path, std::string what, Call& call) {
  const CallClass kind = class_of_write(path);
  call.acts.push_back({kind, std::move(what), {{Atom::Kind::kPath, std::string(path)}}});
}

// What SQL names: `drop table customers`. `code` in lower case with `_` for blanks.
void add_identifiers(std::string_view code, std::vector<Atom>& atoms) {
  for (const std::string_view word : {"table_", "from_", "into_", "database_", "schema_", "update_", "exists_"}) {
    for (std::size_t at = code.find(word); at != std::string_view::npos && atoms.size() < 256; at = code.find(word, at + 1)) {
      std::string_view name = code.substr(at + word.size());
      name = name.substr(0, name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"));
      if (name.size() >= 3 && name != "table" && name != "exists") atoms.push_back({Atom::Kind::kName, std::string(name)});
    }
  }
}

void read_code(std::string_view code, std::string_view what, Call& call, std::string_view named) {
  struct Sign {
    CallClass kind;
    std::string_view words;
  };
  constexpr Sign kSigns[] = {
      {CallClass::kDestructive,
       "rmtree unlink os.remove rmdir rmsync fs.rm deletefile file.delete .unlink( remove_file truncate( truncate_table drop_table "
       "delete_from"},
      {CallClass::kSending,
       "urlopen requests. fetch( http.request https.request socket smtplib axios sendmail net/http urllib http.client "
       "xmlhttprequest"},
      {CallClass::kPrivilege, "chmod setuid grant_ create_user alter_user alter_role"},
      {CallClass::kRunning, "os.system subprocess child_process exec( popen system( spawn"}};
  std::string lower(code.substr(0, 64U << 10));
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c == ' ' || c == '\n' || c == '\t' ? '_' : c;
  const auto has = [&](std::string_view words) {
    while (!words.empty()) {
      const std::size_t end = std::min(words.find(' '), words.size());
      if (lower.find(words.substr(0, end)) != std::string::npos) return true;
      words.remove_prefix(std::min(end + 1, words.size()));
    }
    return false;
  };
  std::vector<Atom> atoms = find_atoms(named.substr(0, 64U << 10));
  // "shutil.rmtree" reads like a host; what the code calls is no destination.
  std::erase_if(atoms, [&](const Atom& atom) { return code.find(atom.text + "(") != std::string_view::npos; });
  add_identifiers(lower, atoms);
  bool known = false;
  for (const Sign& sign : kSigns) {
    if (!has(sign.words)) continue;
    known = true;
    call.acts.push_back({sign.kind, std::string(what), atoms, sign.kind == CallClass::kSending});
  }
  if (!known) call.acts.push_back({CallClass::kRunning, std::string(what), atoms});
}

Call read_call(const ProposedCall& proposed, ShellReader& reader) {
  Call call;
  if (proposed.arguments.size() > kMaxArguments || proposed.command.size() > kMaxArguments) {
    call.unread = "the arguments are larger than 4 MiB";
    return call;
  }
  std::vector<CallField> fields;
  if (!proposed.arguments.empty()) {
    call.texts.push_back(proposed.arguments);
    auto document = policy::parse_json_document({proposed.arguments, "arguments"});
    if (document && document->kind == Node::Kind::kTable) {
      call.texts.clear();
      flatten(*document, "", fields);
    } else {
      call.unread = document ? "the arguments are no JSON object" : "the arguments are no JSON: " + document.error().what();
      return call;
    }
  }
  std::vector<std::string> commands;
  if (!proposed.command.empty()) commands.push_back(proposed.command);
  const CallClass kind = class_of_tool(proposed.tool);
  for (const CallField& field : fields) {
    if (is_command_key(field.key) && (kind == CallClass::kRunning || kind == CallClass::kReading)) commands.push_back(field.text);
    else call.texts.push_back(field.text);
  }
  const auto input = std::ranges::find(fields, "stdin", &CallField::key);
  if (const auto cwd = std::ranges::find(fields, "cwd", &CallField::key); cwd != fields.end()) call.cwd = cwd->text;
  const std::string standard_input = input == fields.end() || kind != CallClass::kRunning ? std::string() : input->text;
  for (const std::string& command : commands) {
    call.texts.push_back(command);
    read_script(command, reader, call, standard_input);
  }
  std::erase_if(fields, [](const CallField& field) { return is_command_key(field.key); });
  if (commands.empty() || kind != CallClass::kRunning) {
    if (commands.empty() || !fields.empty()) read_tool(proposed, fields, call);
  }
  note_secrets(call);
  return call;
}

bool talks(const Call& call) noexcept {
  return std::ranges::any_of(call.acts,
                             [](const Act& act) { return act.kind == CallClass::kFetching || act.kind == CallClass::kSending; });
}

}  // namespace belljar::guard
